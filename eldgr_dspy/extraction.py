"""Find the final answer that a reasoning text states, and the form in which it is stated.

It reads the text that is marked as the answer and does not judge it. Without a mark, arithmetic takes the last number
of the text and retrieval the whole text. The form says so: a fallback is a guess and can be counted as one.
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple, get_args

from eldgr_dspy.answers import check_task
from eldgr_dspy.numbers import CURRENCY_SIGNS, VULGAR_FRACTIONS, fold_marks, is_ambiguous, parse_number
from eldgr_dspy.sentence_ends import first_sentence, without_stop
from eldgr_dspy.words import Task

Mark = Literal["hashes", "a_line", "boxed", "phrase", "finish", "tagged"]
Form = Literal[Mark, "last_number", "whole"]

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

# The body takes in every mark that may join digits, so that '10:30', '1.2.3' and '1_000' are refused whole, not cut.
_CHUNK = re.compile(
    rf"""(?<![A-Za-z0-9_^])(?<![0-9][.,/:])
    (?: (?<=[=:(])-\ | (?<=[=:(]\ )-\  | (?<![\w)\]}}%])[-+] )?
    (?: \\?[{CURRENCY_SIGNS}]\ ?-? )?
    (?: (?: [0-9][0-9.,/:_]*+ | \.[0-9][0-9.,/:_]*+ )
        (?: [eE][-+]?[0-9]{{1,3}}(?![A-Za-z0-9]) | \ [0-9]{{1,3}}/[0-9]{{1,3}}(?![0-9/]) | \ ?[{VULGAR_FRACTIONS}] )?
      | [{VULGAR_FRACTIONS}] )
    (?! (?:st|nd|rd|th)\b | [\^²³¹⁰-⁹⁻] ) (?: \ ?\\?% )?""",
    re.VERBOSE,
)
_LOOSE_END = ".,/:_"
_DIGIT = re.compile(rf"[\d{VULGAR_FRACTIONS}]")
_WORD = re.compile(r"[^\W\d_]{2}")
# What a number must not be cut away from: a sign set apart, a LaTeX command, an exponent, the rest of an expression,
# the next group of three digits ('1 000'), a scale ('1.5 million', '2.5k'), half of it, or another number ('5 or 6').
_BOUND_BEFORE = re.compile(r"\\[A-Za-z]|[{^]|[-–]\s*+\Z|(?i:minus|negative)\s*+\Z")
_BOUND_AFTER = re.compile(
    rf"""\s?(?: [\^{{] | \\(?![\\,;:!)\] ]|text|mathrm) | [-–+*/×÷x]\s?[\d($\\] )
    | [A-Za-z百千万萬亿億兆] | \s[0-9]{{3}}(?![0-9])
    | [\s-](?i: hundred | thousand | million | billion | trillion | bn )s?\b
    | \s(?i: or | to | and )\s(?: (?i:a\s|one\s)?(?i:half|third|quarter)\b | [-{CURRENCY_SIGNS}]{{0,2}}[0-9] )""",
    re.VERBOSE,
)


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


def extract_answer(text: str, task: Task) -> Extraction | None:
    r"""Return the final answer of a text, or None where it has none.

    Explicit are `#### x`, a line `A: x` or `Answer: x`, `\boxed{x}`, "the answer is x", "final answer: x", an agent's
    `Finish[x]`, and `<answer>x</answer>` as GRPO recipes ask for it, also with `final`, `final_answer` or `solution`
    for a tag, or `[ANSWER]x[/ANSWER]`. The last one that states an answer wins. If nothing closes the answer, a
    sentence's full stop is dropped, and the dot of "Inc." or "U.S." stays. In arithmetic an explicit answer is cut down
    to its number where the number can be cut out safely. The time taken grows linearly with the text.

    Args:
        text: The candidate's whole text.
        task: "arithmetic" falls back to the last number, "retrieval" to the whole text without outer white space.

    Returns:
        The answer, a slice of `text`, with its form; None where the text is blank or, in arithmetic, without a number.

    Raises:
        ArgumentError: `task` is not a task.
    """
    check_task(task)
    places = [_Place(_MARKS[match.lastgroup or ""], *match.span()) for match in _MARK.finditer(text)]
    boxes = _boxes(text) if any(place.mark == "boxed" for place in places) else {}
    limit = len(text)
    for place in reversed(places):
        answer = _stated(text, place, limit, boxes, task)
        if answer:
            return Extraction(answer, place.mark)
        limit = place.start
    return _fallback(text, task)


def _fallback(text: str, task: Task) -> Extraction | None:
    answer = _last_number(text) if task == "arithmetic" else text.strip()
    return Extraction(answer, "last_number" if task == "arithmetic" else "whole") if answer else None


def _stated(text: str, place: _Place, limit: int, boxes: dict[int, int], task: Task) -> str:
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
        if place.mark == "phrase" and task == "retrieval":
            payload = first_sentence(payload)
        payload = without_stop(payload)
    return _numeric(payload, place.mark) if task == "arithmetic" else payload


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


def _numeric(payload: str, mark: Mark) -> str:
    """The number that an explicit answer states.

    The payload stays whole if no number can be cut out of it safely. It does not count if it has no digit and the mark
    is one that ordinary prose may contain.
    """
    if parse_number(payload):
        return payload.rstrip(".")
    if not _DIGIT.search(payload):
        return payload if mark in ("boxed", "finish", "tagged") else ""
    side = _result_side(payload)
    folded = fold_marks(side)[0]
    spans = (_number_span(folded, *match.span()) for match in _CHUNK.finditer(folded))
    numbers = list(islice((span for span in spans if span), 2))
    if not numbers or (mark == "boxed" and len(numbers) > 1):
        return payload
    start, end = numbers[0]
    bound = _BOUND_BEFORE.search(folded[:start]) or _BOUND_AFTER.match(folded, end)
    return payload if bound else side[start:end]


def _result_side(payload: str) -> str:
    """The part after the last equals sign of a bare equation ('x = 5', '5 + 3 = 8 apples'), else all of it."""
    left, _, right = payload.rpartition("=")
    bare = not _WORD.search(left) and left.count("(") == left.count(")")
    return right if bare and _DIGIT.search(right) else payload


def _number_span(folded: str, start: int, end: int) -> tuple[int, int] | None:
    """The span of a chunk without loose punctuation; None where it is not a number, as a date or a time is not."""
    chunk = folded[start:end].rstrip(_LOOSE_END)
    if parse_number(chunk.removeprefix("- ")) or is_ambiguous(chunk):
        return start, start + len(chunk)
    return None


def _last_number(text: str) -> str:
    """The last number of the text, searched for line by line from the end; '' without a number."""
    folded = fold_marks(text)[0]
    end = len(folded)
    while end >= 0:
        start = folded.rfind("\n", 0, end) + 1
        for first, last in reversed([match.span() for match in _CHUNK.finditer(folded, start, end)]):
            span = _number_span(folded, first, last)
            if span:
                return text[slice(*span)]
        end = start - 1
    return ""
