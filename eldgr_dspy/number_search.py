"""Find the number that a text states: in an explicit answer, or the last one of the text.

A number is cut out only if it is the whole quantity. "2 hours 30 minutes", "(3, 4)" and "10 remainder 2" stay whole.
"""

import re
from itertools import islice

from eldgr_dspy.numbers import (
    CURRENCY_SIGNS,
    PAD,
    SCALED,
    VULGAR_FRACTIONS,
    fold_marks,
    is_ambiguous,
    read_number,
    unlatexed,
)
from eldgr_dspy.words import Mark

# The body takes in every mark that may join digits, so that '10:30', '1.2.3' and '1_000' are refused whole, not cut.
_CHUNK = re.compile(
    rf"""(?<![A-Za-z0-9_^{PAD}])(?<![0-9][.,/:])
    (?: (?<=[=:(])-\ | (?<=[=:(]\ )-\  | (?<![\w)\]}}%])[-+] )?
    (?: \\?[{CURRENCY_SIGNS}]\ ?-? )? {PAD}*+
    (?: (?: [0-9][0-9.,/:_{PAD}]*+ | \.[0-9][0-9.,/:_{PAD}]*+ )
        (?: [eE][-+]?[0-9]{{1,3}}(?![A-Za-z0-9]) | \ [0-9]{{1,3}}/[0-9]{{1,3}}(?![0-9/]) | \ ?[{VULGAR_FRACTIONS}] )?
      | [{VULGAR_FRACTIONS}] )
    (?! (?:st|nd|rd|th)\b | [\^²³¹⁰-⁹⁻] | [A-Za-z]+[0-9] )
    (?: \ ?\\?% | (?i:{SCALED.replace(" ", chr(92) + " ")}){{1,2}} | [kK](?![A-Za-z0-9]) )?""",
    re.VERBOSE,
)
_LOOSE_END = f".,/:_{PAD}"
_DIGIT = re.compile(rf"[\d{VULGAR_FRACTIONS}]")
# Words other than those before a quantity, a currency and a label such as "Total: 18".
_HEADING = re.compile(
    r"""(?! minus | negative | about | approximately | around | nearly | almost | roughly | exactly | between | at\ | over
        | under | up\ to | less | more | fewer | only | (?:[A-Z]{2,3}|Rs)\b\.?\ ?\d | [^\d:=]*[:=]\s*[^\s\w]*\d )[^\W\d_]{2}""",
    re.VERBOSE | re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2}")
_NUMBER = rf"[-+]?[{CURRENCY_SIGNS}]?[0-9{VULGAR_FRACTIONS}]++(?>(?:[.,/][0-9]++)*)"
_MEASURE = (
    "(?:hours?|hrs?|minutes?|mins?|seconds?|secs?|days?|weeks?|months?|years?|feet|foot|ft|inch(?:es)?|in|yards?|miles?"
    "|pounds?|lbs?|ounces?|oz|kg|g|kilograms?|grams?|km|m|cm|mm|(?:kilo|centi|milli)?met(?:er|re)s?|dollars?|cents?|pence"
    "|rupees?|paise|euros?|gallons?|quarts?|pints?|cups?|degrees?|dozens?|lakhs?|crores?|million|thousand)"
)
# Two quantities that are one answer only together.
_COMPOUND = re.compile(
    rf"""(?<![\w.,]){_NUMBER}\s?{_MEASURE}\b (?: ,?\s(?:and\s|&\s)?{_NUMBER}(?:\s?{_MEASURE}\b)? )*?
        ,?\s(?:and\s|&\s)?{_NUMBER}\s?{_MEASURE}\b
    | (?<![\w.,]){_NUMBER},?\s(?:remainder|rem\.?|r|or)\s{_NUMBER}
    | [(\[]\s?{_NUMBER}(?:\s?[,;]\s?{_NUMBER})*(?<![,;])\s?[,;]\s?{_NUMBER}\s?[)\]]""",
    re.VERBOSE | re.IGNORECASE,
)
_UNIT = (
    r"\s?(?!(?:per|for|in|at|of|out|from|on|each|every|after|before|when|if|with|by|over|than|as|because|since|so|which"
    r"|that|is|are|was|were|left|more|less|times|to|into|the|an?|he|she|they|it|we|you|i|and|or|while|but)\b)[A-Za-z]+\b"
)
# What a number must not be cut away from: a sign set apart, a LaTeX command, an exponent, the rest of an expression,
# the next group of three digits ('1 000'), half of it, or another number ('5 or 6', '5 apples and 6 pears').
_BOUND_BEFORE = re.compile(r"\\[A-Za-z]|[{^]|[-–]\s*+\Z|(?i:minus|negative)\s*+\Z")
_BOUND_AFTER = re.compile(
    rf"""\s?(?: [\^{{] | \\(?![\\,;:!)\] ]|text|mathrm) | [-–+*/×÷x]\s?[\d($\\] )
    | [A-Za-z百千万萬亿億兆] | \s[0-9]{{3}}(?![0-9])
    | \s(?i: or | to | and )\s(?: (?:a\s|one\s)?(?:half|third|quarter)\b | [-{CURRENCY_SIGNS}]{{0,2}}[0-9] )
    | (?i: {_UNIT}(?:{_UNIT})? ,?\s (?:and\s|&\s|plus\s)? | ,?\s(?:remainder|rem\.?|r)\s | ['′]\s? | ,\s )
        (?={_NUMBER}(?!\s*[=+*/×]))""",
    re.VERBOSE | re.IGNORECASE,
)


def stated_number(payload: str, mark: Mark) -> str:
    """Return the number that an explicit answer states.

    The payload stays whole if no number can be cut out of it safely. It does not count if it has no digit and the mark
    is one that ordinary prose may contain, nor if it is a heading in words.
    """
    if read_number(payload):
        return payload.rstrip(".")
    if not _DIGIT.search(payload):
        return payload if mark in ("boxed", "finish", "tagged") else ""
    if mark == "hashes" and _HEADING.match(payload):
        return ""
    side = _result_side(payload)
    folded = unlatexed(fold_marks(side)[0])
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
    if read_number(chunk.removeprefix("- ")) or is_ambiguous(chunk):
        return start, start + len(chunk)
    return None


def last_number(text: str) -> str:
    """Return the last number of the text, searched for line by line from the end; '' without a number.

    If the number is one of two quantities that are one answer only together, both are returned.
    """
    folded = unlatexed(fold_marks(text)[0])
    end = len(folded)
    while end >= 0:
        start = folded.rfind("\n", 0, end) + 1
        for first, last in reversed([match.span() for match in _CHUNK.finditer(folded, start, end)]):
            span = _number_span(folded, first, last)
            if span:
                together = (match.span() for match in _COMPOUND.finditer(folded, start, end))
                return text[slice(*next((both for both in together if both[0] <= span[0] < both[1]), span))]
        end = start - 1
    return ""
