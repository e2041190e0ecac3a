"""A judge of reasoning, slice by slice, in the style of the generative adversarial reasoner (GAR).

Source: the discriminator of Liu et al. 2025 (arXiv 2512.16917); `docs/reference/selectors.md` has what is lost. To
choose by it at inference, without training, is ours.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.programs.judges.frames import RepeatedCalls, Rounds, about_each, preferring
from eldgr_dspy.programs.lms.one_call import OneCall, Request
from eldgr_dspy.rule.consultations import Abstention, split_candidate
from eldgr_dspy.signatures import JudgeSlice


class SliceJudge(RepeatedCalls):
    """Prefers the candidate with the highest share of sound slices, each slice judged by itself.

        selector.judge = SliceJudge()

    The text before the final answer is cut by `slices_of`; a candidate without reasoning has one slice, its answer. A
    slice is shown with the question, the evidence and the slices before it. Where each candidate has one slice this is
    a judge of one candidate a call; `slices` in the prediction says how many each had. Ties are settled by
    `preferring`. A candidate without any text scores 0. If a slice's reply cannot be used, the whole is an abstention.

    Attributes:
        reader: (question, evidence, earlier, slice) -> sound, slice_rationale. size: The most tokens of a slice.
    """

    facts: Mapping[str, bool] = {"gold_in_training": False, "logprobs": False, "positioned": True}

    def __init__(self, size: int = 320) -> None:
        """Take the size, by default about the paper's; raise an ArgumentError unless it is a whole number from 1."""
        super().__init__()
        if type(size) is not int or size < 1:
            raise ArgumentError(f"size must be a whole number of at least 1; got {size!r:.80}. Give 320, the default.")
        self.reader: dspy.Module = OneCall(JudgeSlice)
        self.size = size

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Ask about each slice; `slices` in the verdict says how many each candidate has."""

        def about(text: str) -> list[Request]:
            slices, whole = slices_of(text, self.size), {"question": question, "evidence": evidence}
            return [
                Request(self.reader, {**whole, "earlier": "".join(slices[:number]), "slice": part})
                for number, part in enumerate(slices)
            ]

        contents = yield from about_each([*map(_reasoning, candidates)], about)
        return preferring(
            [_share(content) for content in contents],
            candidates,
            lambda index: f"{sum(one['sound'] for one in contents[index])} of {len(contents[index])} slices are sound",
            slices=[*map(len, contents)],
        )


def _reasoning(candidate: str) -> str:
    text, answer = split_candidate(candidate)
    return text if text.strip() else answer


def _share(contents: Sequence[Mapping[str, Any]]) -> float | Abstention:
    """Return the share of sound slices, 0 without any, or why one of them cannot be used."""
    for number, content in enumerate(contents):
        if "abstained" in content:
            return Abstention.from_content(f"{brief(content['abstained'])} in slice {number}", content)
        if type(sound := content.get("sound")) is not bool:
            return Abstention(f"sound={sound!r:.80} is not true or false in slice {number}", "invalid")
    return sum(content["sound"] for content in contents) / len(contents) if contents else 0.0


def slices_of(text: str, size: int) -> list[str]:
    """Cut a text into slices of at most `size` tokens, at line ends where possible; joined, they are the text."""
    # Source: ours. A token is a run of characters without white space, not one of a model's tokens. A line with more
    # than `size` tokens begins a slice and is cut between words.
    slices, room = list[str](), 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", text) if text.strip() else ():
        words = re.findall(r"\s*\S+(?:\s+\Z)?", line) if line.strip() else []  # or it takes quadratic time
        cut = ["".join(words[start : start + size]) for start in range(0, len(words), size)]
        for part in cut if len(words) > size else [line]:
            if (n := len(re.findall(r"\S+", part))) > room or not slices:
                slices.append("")
                room = size
            slices[-1] += part
            room -= n
    return slices
