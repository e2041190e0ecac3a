"""Split reasoning text into steps with character spans; the spans of steps and answer line rebuild any text.

A step is a piece of text, not an inference: nothing here understands it. Steps are split by the first of
these that gives at least two: markers ("Step 3:", "3.", "3)"), blank lines, lines, sentences. Code fences and LaTeX
blocks stay whole, and a line that only states the answer is separate. Linear in the length of the text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

from eldgr_dspy.channels.blocks import blocks, outside
from eldgr_dspy.channels.overlap import units
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.text.folding import drop_invisible
from eldgr_dspy.text.sentence_ends import sentence_starts

By = Literal["markers", "paragraphs", "lines", "sentences", "whole"]

LONGEST = 2_000
"""Characters; a longer step is split further if possible, and is undefined otherwise."""

MOST = 256
"""Steps; the rest of the text stays together in the last one."""

# Of a line that only states the answer; a longer one explains it.
_LONGEST_ANSWER = 120

_LEAD = r"[ \t>*_#-]*+"
_NUMBER = rf"{_LEAD}(?:\([0-9]{{1,3}}\)|[0-9]{{1,3}}[.)])[*_]*+[ \t]++(?=\S)"
_NAME = rf"{_LEAD}(?i:step)[ \t]*+[0-9]{{1,3}}[*_]*+[ \t]*+[:.)–—-][*_]*+[ \t]*+"
_NUMBER_LINE = re.compile(rf"^{_NUMBER}", re.MULTILINE)
_NAME_LINE = re.compile(rf"^{_NAME}", re.MULTILINE)
# Labels of ReAct are not scored. They do not split the text; their lines do.
_LABEL = r"(?:Thought|Action|Observation)(?:[ \t][0-9]{1,3})?:[ \t]*+"
_MARKER = re.compile(rf"\s*+(?:{_NAME}|{_NUMBER}|{_LABEL})")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANK = re.compile(r"(?:(?>\r\n|\r|\n)[ \t]*+){2,}")
_SIGN = re.compile(r"\S")
_LINE = re.compile(r"[^\r\n]++(?:\r\n|\r|\n)?")
_ANSWER = re.compile(
    r"""[\ \t>*_]*+ (?:\#{1,6}[\ \t*_]++)? (?: \#{4}(?!\#) | (?:A|(?i:(?:the\ )?(?:final\ )?answer)) [*_]*+ [:：]
        | (?i:the\ )?(?i:final\ answer\ is)\b | (?:Action(?:\ [0-9]+)?:\ )?Finish\[
        | \$*+\\boxed\s*+\{ (?=[^\r\n]*\}[.$\s]*+\Z) ) (?=.*\w)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Step:
    """A step: `text` is the slice `start:end` of the whole text, with its marker and the white space after it."""

    start: int
    end: int
    text: str

    @property
    def content(self) -> str:
        """The text without its marker and without white space around it: the part that is scored."""
        marker = _MARKER.match(self.text)
        return self.text[marker.end() if marker else 0 :].strip()


@dataclass(frozen=True, slots=True)
class Steps:
    """A text, split.

    Attributes:
        text: What was split.
        steps: In order; together with `answer` they cover the text without gap or overlap.
        answer: The line that only states the answer, or None. It may be between steps.
        by: How the steps were split.
    """

    text: str
    steps: tuple[Step, ...]
    answer: Step | None
    by: By

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Start and end of each step."""
        return tuple((step.start, step.end) for step in self.steps)


@dataclass(frozen=True, slots=True)
class StepInContext:
    """A step with the text before it and the passages to check it against: the input for claims and counterfactuals."""

    text: str
    question: str = ""
    earlier: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()


def split_steps(text: str, longest: int = LONGEST, most: int = MOST) -> Steps:
    """Split any reasoning text into steps; a blank one is one empty step.

    Args:
        text: The reasoning, without the question.
        longest: Characters of a step above which it is split by the next finer kind.
        most: Steps at most; 1 or more.

    Raises:
        ArgumentError: `longest` or `most` is below 1.
    """
    if longest < 1 or most < 1:
        raise ArgumentError(f"longest and most must be 1 or more; got longest={longest} and most={most}.")
    if not text.strip():
        return Steps(text, (Step(0, len(text), text),) if text else (), None, "whole")
    whole = blocks(text)
    answer = _answer_line(text, whole)
    parts = [(0, len(text))] if answer is None else [(0, answer[0]), (answer[1], len(text))]
    body = [part for part in parts if text[slice(*part)].strip()]
    by, pieces = _first_that_splits(text, body, whole)
    pieces = [finer for piece in pieces for finer in _refine(text, piece, by, longest, whole)]
    return _laid_out(text, pieces, answer, by, most)


def unmeasurable(text: str) -> Undefined | None:
    """Say why a step can't be scored, or None if it can: it is empty, one word, too long, or only code or LaTeX."""
    content = drop_invisible(text).strip()
    if len(content) > LONGEST:
        return Undefined(f"the step is longer than {LONGEST:,} characters")
    if not content:
        return Undefined("the step is empty")
    prose = " ".join(outside(content))
    if not prose.strip():
        return Undefined("the step is only code or LaTeX")
    n_words = len(units(prose))
    return Undefined("the step has one word" if n_words else "the step has no word") if n_words < 2 else None


# --- where a text may be cut ------------------------------------------------------------------------------------------

Span = tuple[int, int]


def _by_markers(text: str, start: int, end: int) -> list[int]:
    if starts := [match.start() for match in _NAME_LINE.finditer(text, start, end)]:
        return starts
    number_starts = [match.start() for match in _NUMBER_LINE.finditer(text, start, end)]
    return number_starts if len(number_starts) > 1 else []


def _by_ends(pattern: re.Pattern[str], text: str, start: int, end: int) -> list[int]:
    return [match.end() for match in pattern.finditer(text, start, end)]


_KINDS: dict[By, Callable[[str, int, int], Sequence[int]]] = {
    "markers": _by_markers,
    "paragraphs": partial(_by_ends, _BLANK),
    "lines": partial(_by_ends, _NEWLINE),
    "sentences": sentence_starts,
}


def _first_that_splits(text: str, body: list[Span], whole: list[Span]) -> tuple[By, list[Span]]:
    names_itself = any(_NAME_LINE.match(text, *part) for part in body)  # though it is one step
    for by in _KINDS:
        pieces = [piece for part in body for piece in _cut(text, part, by, whole)]
        if len(pieces) > max(1, len(body)) or (by == "markers" and names_itself):
            return by, pieces
    return "whole", body


def _cut(text: str, part: Span, by: By, whole: list[Span]) -> list[Span]:
    """The pieces of a part; it is not cut inside a block, or where only white space would be left."""
    start, end = part
    last = start + len(text[start:end].rstrip())
    edges, first = [start], _first_sign(text, start, end)
    for cut in _outside_blocks(_KINDS[by](text, start, end), whole):
        if first < cut < last:
            edges.append(cut)
            first = _first_sign(text, cut, end)
    return list(zip(edges, [*edges[1:], end], strict=True))


def _first_sign(text: str, start: int, end: int) -> int:
    """Where the white space that starts at `start` ends."""
    match = _SIGN.search(text, start, end)
    return match.start() if match else end


def _outside_blocks(cuts: Sequence[int], whole: list[Span]) -> Iterator[int]:
    at = 0
    for cut in cuts:
        while at < len(whole) and whole[at][1] <= cut:
            at += 1
        if at == len(whole) or cut <= whole[at][0]:
            yield cut


def _refine(text: str, piece: Span, by: By, longest: int, whole: list[Span]) -> list[Span]:
    """A piece that is too long, cut by the finer kinds one after the other."""
    if piece[1] - piece[0] <= longest:
        return [piece]
    kinds = list(_KINDS)
    for finer in kinds[kinds.index(by) + 1 :] if by in kinds else []:
        if len(parts := _cut(text, piece, finer, whole)) > 1:
            return [one for part in parts for one in _refine(text, part, finer, longest, whole)]
    return [piece]


def _answer_line(text: str, whole: list[Span]) -> Span | None:
    """The last line outside of code that only states an answer; None without one."""
    lines = [match.span() for match in _LINE.finditer(text)]
    starts = set(_outside_blocks([start for start, _ in lines], [span for span in whole if "\n" in text[slice(*span)]]))
    for start, end in reversed(lines):
        line = text[start:end]
        if start in starts and len(line.strip()) <= _LONGEST_ANSWER and _ANSWER.match(line):
            return start, end
    return None


def _laid_out(text: str, pieces: list[Span], answer: Span | None, by: By, most: int) -> Steps:
    """Give the white space between pieces to the pieces, so that the spans cover the text."""
    spans = pieces[:most]
    if len(pieces) > most and answer and answer[0] > spans[-1][0]:
        answer = answer if answer[0] > pieces[-1][0] else None  # else it is in the last step, which has the rest
    starts = sorted([start for start, _ in spans] + ([answer[0]] if answer else []))
    edges = [0, *starts[1:], len(text)] if starts else [0, len(text)]
    steps = [Step(start, end, text[start:end]) for start, end in pairwise(edges)]
    at = starts.index(answer[0]) if answer else None
    others = tuple(step for place, step in enumerate(steps) if place != at)
    return Steps(text, others, steps[at] if at is not None else None, by)
