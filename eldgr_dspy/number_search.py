"""Find the number that a text states: in an explicit answer, or the last one of the text."""

import re
from itertools import islice

from eldgr_dspy.numbers import CURRENCY_SIGNS, VULGAR_FRACTIONS, fold_marks, is_ambiguous, parse_number
from eldgr_dspy.words import Mark

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


def stated_number(payload: str, mark: Mark) -> str:
    """Return the number that an explicit answer states.

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


def last_number(text: str) -> str:
    """Return the last number of the text, searched for line by line from the end; '' without a number."""
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
