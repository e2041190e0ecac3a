"""Find the final answer that a reasoning text states, and the form in which it is stated.

It reads the text that is marked as the answer and does not judge it. Without a mark, arithmetic takes the last number
of the text and retrieval the whole text. The form says so: a fallback is a guess and can be counted as one.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, get_args

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.sentence_ends import without_stop
from eldgr_dspy.words import Form, Mark, Task

_MARKS: dict[str, Mark] = {mark: mark for mark in get_args(Mark)}

# Repetitions are possessive: no text, however adversarial, makes a search go back over what it has read.
_MARK = re.compile(
    r"""(?P<hashes> (?<!\#)\#{4}(?!\#) )
    | (?P<boxed> \\boxed\s*+\{ )
    | (?P<finish> \bFinish\[ )
    | (?P<tagged> (?i: < (?:answer|final|final_answer|solution) > | \[ANSWER\] ) )
    | (?P<a_line> ^[\ \t>*_]*+ (?: A | (?i:Answer) ) [*_]*+ : )
    | (?P<phrase> (?i: \bthe\s++ (?:\w++\s++)? answer\s++is\b
                     | \bfinal\s++answer (?: \s++is\b | (?=[\s*_]*+:) | (?=[\ \t*_]*+$) ) ) (?!\s++not\b) )""",
    re.VERBOSE | re.MULTILINE,
)
_LEAD = re.compile(r"[\s:*_`]*+")
_TRAIL = " \t\r\n*_`"
_BRACE = re.compile(r"(?P<boxed>\\boxed\s*+\{)|\\.|(?P<open>\{)|(?P<close>\})", re.DOTALL)
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]*+)\}")
_CLOSING_TAG = re.compile(r"</(?:answer|final|final_answer|solution)\s*+>|\[/ANSWER\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Extraction:
    """An extracted answer, always a slice of the text, and the form in which it was stated.

    `last_number` and `whole` are the fallbacks of arithmetic and of retrieval; the others are explicit marks.
    """

    answer: str
    form: Form


class _Place(NamedTuple):
    """A mark that announces an answer after it."""

    mark: Mark
    start: int
    end: int


def extract_answer(text: str, task: Task | AnswerType) -> Extraction | None:
    r"""Return the final answer of a text, or None where it has none.

    Explicit are `#### x`, a line `A: x` or `Answer: x`, `\boxed{x}`, "the answer is x", "final answer: x", an agent's
    `Finish[x]`, and `<answer>x</answer>` as GRPO recipes ask for it, also with `final`, `final_answer` or `solution`
    for a tag, or `[ANSWER]x[/ANSWER]`. The last one that states an answer wins. If nothing closes the answer, a
    sentence's full stop is dropped, and the dot of "Inc." or "U.S." stays. In arithmetic an explicit answer is cut down
    to its number where the number can be cut out safely. The time taken grows linearly with the text.

    Args:
        text: The candidate's whole text.
        task: The answer type or its name. Without a mark a number is the last one, short text the whole text without
            outer white space.

    Returns:
        The answer, a slice of `text`, with its form; None where the text is blank or, in arithmetic, without a number.

    Raises:
        ArgumentError: `task` is not an answer type.
    """
    kind = answer_type(task)
    places = [_Place(_MARKS[match.lastgroup or ""], *match.span()) for match in _MARK.finditer(text)]
    boxes = _boxes(text) if any(place.mark == "boxed" for place in places) else {}
    limit = len(text)
    for place in reversed(places):
        answer = _stated(text, place, limit, boxes, kind)
        if answer:
            return Extraction(answer, place.mark)
        limit = place.start
    answer, form = kind.unmarked(text)
    return Extraction(answer, form) if answer else None


def _stated(text: str, place: _Place, limit: int, boxes: dict[int, int], kind: AnswerType) -> str:
    """The answer after a mark, read no further than `limit`, where the next mark begins; '' without an answer."""
    if place.mark == "boxed":
        payload = _unwrapped(text[place.end : boxes.get(place.end, place.end)].strip())
    elif place.mark == "tagged":
        closed = _CLOSING_TAG.search(text, place.end, limit)
        payload = (text[place.end : closed.start()] if closed else _line(text, place.end, limit)).strip()
    elif place.mark == "finish":
        payload = _line(text, place.end, limit).rpartition("]")[0].strip()
    else:
        payload = _line(text, _after(_LEAD, text, place.end), limit).rstrip(_TRAIL)
        if place.mark == "phrase":
            payload = kind.sentence(payload)
        payload = without_stop(payload)
    return kind.stated(payload, place.mark)


def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _line(text: str, start: int, limit: int) -> str:
    """The text from `start` to the end of its line, or to `limit` where that comes first."""
    end = text.find("\n", start, limit)
    return text[start : limit if end < 0 else end]


def _unwrapped(payload: str) -> str:
    r"""The inside of a payload that is one `\text{...}` and nothing else."""
    wrapped = _WRAPPED.fullmatch(payload)
    return wrapped[1].strip() if wrapped else payload


def _boxes(text: str) -> dict[int, int]:
    r"""Where the content of each closed `\boxed{` starts, and where it ends. Braces nest; escaped ones do not count."""
    closed: dict[int, int] = {}
    opened: list[tuple[bool, int]] = []
    for match in _BRACE.finditer(text):
        if match["close"] is None:
            if match["boxed"] or match["open"]:
                opened.append((match["boxed"] is not None, match.end()))
        elif opened:
            boxed, start = opened.pop()
            if boxed:
                closed[start] = match.start()
    return closed


def before_answer(answer: str, text: str) -> str:
    """Return the part of a text before its answer; the whole text if that is empty, or if it does not end with it."""
    kept, line = text, f"\n{answer.strip()}"
    while answer and kept.rstrip().endswith(line):  # once from the text itself, and once if it was added after it
        kept = kept.rstrip().removesuffix(line)
    return kept if kept.strip() else text
