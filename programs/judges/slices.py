"""A judge of reasoning, slice by slice, in the style of the generative adversarial reasoner (GAR).

Source: the discriminator of Liu et al. 2025 (arXiv 2512.16917). Kept: a reasoning is cut into slices of similar length,
each is judged sound or not, with a reason, and the mean of these judgments is the score. Lost: the paper trains the
discriminator together with the reasoner, as a reward, and drops it at inference. To choose by it at inference, without
training, is ours.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal, get_args

import dspy

from eldgr_dspy.consultations import split_candidate
from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.programs.consulting import Said
from eldgr_dspy.programs.fencing import fence
from eldgr_dspy.programs.judges.repeated_calls import RepeatedCalls, Rounds, answers_of, classes_of, require_read
from eldgr_dspy.programs.judges.slicing import slices_of
from eldgr_dspy.programs.judges.ties import highest
from eldgr_dspy.programs.one_call import OneCall, Request
from eldgr_dspy.questions import require_one_of
from eldgr_dspy.signatures import JudgeSlice

Combine = Literal["best", "vote"]


class SliceReader(OneCall):
    """Judges one slice with one LM call: `sound`, `slice_rationale`."""

    signature = JudgeSlice

    def show(self, *, question: str, evidence: Sequence[str], earlier: str, slice: str) -> dict[str, Any]:
        """Return the question, the evidence, the earlier part and the slice."""
        fenced = fence(question, evidence, earlier=[earlier], slice=[slice])
        texts = {label: shown for label, (shown,) in fenced.others.items()}
        return {"question": fenced.question, "evidence": fenced.evidence, **texts}


class SliceJudge(RepeatedCalls):
    """Prefers the candidate with the highest share of sound slices, each slice judged by itself.

        selector.judge = SliceJudge()
        selector.judge = SliceJudge(size=80, combine="vote")

    The text before the final answer is cut by `slices_of`; a candidate without reasoning has one slice, its answer. A
    slice is shown with the question, the evidence and the slices before it. Where each candidate has one slice this is
    a judge of one candidate a call; `slices` in the prediction says how many each had. `best` prefers the highest
    share, `vote` the answer whose candidates have the highest sum of shares. A tie goes to the answer with more votes,
    then to the earliest. Identical texts are asked once. A candidate without any text scores 0. If a slice's reply
    cannot be used, the whole is an abstention; a reply that cannot be parsed is treated like a plain judge's.

    Attributes:
        reader: (question, evidence, earlier, slice) -> sound, slice_rationale. size: The most tokens of a slice.
        combine: How scores choose.
    """

    def __init__(self, size: int = 320, combine: Combine = "best") -> None:
        """Set up the judge.

        Args:
            size: At least 1; the default is about the paper's. combine: `best` or `vote`.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__()
        if type(size) is not int or size < 1:
            raise ArgumentError(f"size must be a whole number of at least 1; got {size!r:.80}. Give 320, the default.")
        require_one_of("combine", combine, get_args(Combine))
        self.reader: dspy.Module = SliceReader()
        self.size = size
        self.combine: Combine = combine

    @property
    def facts(self) -> dict[str, bool]:
        """What the judge needs, as tables show it."""
        return {"gold_in_training": False, "logprobs": False, "positioned": True}

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Ask about each slice; `slices` in the verdict says how many each candidate has."""
        slices = self._slices(candidates)
        said = yield [Request(self.reader, fields) for fields in _inputs(question, evidence, slices)]
        return self._settled(said, slices, candidates)

    def most_calls(self, candidates: Sequence[str]) -> int:
        """Return the number of slices of all distinct texts."""
        return sum(map(len, self._slices(candidates).values()))

    def _slices(self, candidates: Sequence[str]) -> dict[str, list[str]]:
        return {text: slices_of(text, self.size) for text in map(_reasoning, candidates)}

    def _settled(
        self, said: Sequence[Said], slices: Mapping[str, list[str]], candidates: Sequence[str]
    ) -> dspy.Prediction:
        require_read(said)
        replies, texts = iter(said), [_reasoning(candidate) for candidate in candidates]
        contents = {text: [next(replies).content for _ in parts] for text, parts in slices.items()}
        fields = self._verdict([contents[text] for text in texts], answers_of(candidates))
        return dspy.Prediction(**fields, slices=[len(slices[text]) for text in texts], orders=[])

    def _verdict(self, contents: Sequence[Sequence[Mapping[str, Any]]], answers: Sequence[str]) -> dict[str, Any]:
        if not answers:
            return {"abstained": "there is no candidate to judge"}
        for index, own in enumerate(contents):
            for number, content in enumerate(own):
                if "abstained" in content or type(content.get("sound")) is not bool:
                    reason = content.get("abstained", f"sound={content.get('sound')!r:.80} is not true or false")
                    return {"abstained": f"{brief(reason)} (of candidate {index}, slice {number})"}
        sound = [sum(content["sound"] for content in own) for own in contents]
        shares = [n / len(own) if own else 0.0 for n, own in zip(sound, contents, strict=True)]
        preferred = highest(shares if self.combine == "best" else _summed(shares, answers), answers)
        rationale = f"{sound[preferred]} of {len(contents[preferred])} slices are sound"
        return {
            "preferred": preferred,
            "assessments": [{"scalar": share} for share in shares],
            "judge_rationale": rationale,
        }


def _reasoning(candidate: str) -> str:
    text, answer = split_candidate(candidate)
    return text if text.strip() else answer


def _inputs(question: str, evidence: Sequence[str], slices: Mapping[str, list[str]]) -> list[dict[str, object]]:
    about = {"question": question, "evidence": evidence}
    each = ([("".join(parts[:number]), part) for number, part in enumerate(parts)] for parts in slices.values())
    return [{**about, "earlier": earlier, "slice": part} for earlier, part in chain.from_iterable(each)]


def _summed(shares: Sequence[float], answers: Sequence[str]) -> list[float]:
    """Return for each candidate the sum of the shares of its answer's candidates; 0 for one without an answer."""
    classes = classes_of(answers)
    pairs = list(zip(shares, classes, strict=True))
    return [0.0 if key is None else math.fsum(share for share, other in pairs if other == key) for key in classes]
