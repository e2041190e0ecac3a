"""Find the whole that a span of a text is part of: a word, a number with its sign and scale, a name in initials.

A span of the evidence is an occurrence of an answer only if the whole around it is of the answer's class. So "5" does
not occur in "<5", "5 million", "3.5" or "thirty-five", nor "C" in "C++", "can" in "can't" or "5 km" in "5 km/h". A word
ends before a possessive and next to a hyphen, so that "Doha" occurs in "Doha's" and "New York" in "New York-based".
Every function takes a text as `eldgr_dspy.text.reading.read` returns it, in either case. Source: ours.
"""

import re
from functools import lru_cache
from itertools import chain, groupby
from unicodedata import category

from eldgr_dspy.derivation.amounts import SCALE, SCALES
from eldgr_dspy.derivation.tracing import NUMBER_WORDS
from eldgr_dspy.text.numbers import CURRENCY_SIGNS

REACH = 24  # characters on either side of an edge that are read

# Between digits these continue a number; so do a slash and a colon, since "1/2" says neither 1 nor 2.
_POINTS = ".,/:'^\u00b7\u00f7\u066b\u066c\u2044\u2215\uff0c\uff0e"
# Han, kana, Thai, Lao, Myanmar and Khmer: written without spaces, so that a word may end next to any of their letters.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_is_spaceless = re.compile(rf"(?!\d)[{_SPACELESS}]").match

_SIGNS = CURRENCY_SIGNS + "\u00a2-\u00a5\u058f\u060b\u17db\ufdfc"
_CODES = "aud|brl|cad|chf|cny|czk|dkk|eur|gbp|hkd|inr|jpy|krw|mxn|nok|nzd|pln|rmb|rub|sek|sgd|try|usd|zar"
_MONEY = rf"(?:[a-z]{{0,3}}\\?[{_SIGNS}]\ ?|(?:{_CODES})\ ?)"
_FRACTION = "[\u00bc-\u00be\u2150-\u215f\u2189]"
_DIGIT = r"[\d\u00bc-\u00be\u2150-\u215f\u2189]"
_PERCENT = "[%\u0609\u060a\u066a\u2030\u2031]"  # and per mille, per ten thousand
_SLASH = "[/\u2044\u2215]"
# A pattern by first letters, which is searched for faster.
_WORDS = groupby(sorted((*NUMBER_WORDS, "hundred", *SCALES)), key=lambda word: word[0])
_NUMBER_WORD = "(?:" + "|".join(f"{first}(?:{'|'.join(word[1:] for word in words)})" for first, words in _WORDS) + ")"
_PART_WORD = (
    "(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|half|halves|thirds|quarters?|fourths|fifths"
    r"|sixths|eighths|tenths|dozen|score|and\ a\ half|and\ a\ quarter)"
)
_AND = rf"\ and\ (?:(?<=(?:dred|sand|lion)\ and\ )|(?=\w+ty\b|{_NUMBER_WORD}[-\ ]{_PART_WORD}))"
_LETTER = r"[^\W\d_\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u2189]"
# What is one whole, from the character before to the one after, by kind. First comes what each joint of the kind has in
# it, which is quickly looked for. Each kind is searched for separately, so that "$5" does not hide "$5 M".
_KINDS = (
    # a number: 3.5, 1,000, 1/2, 10:30; 10^-2; 5e-3; 5 000, 3 1/2, 5-1/2; 3 ½; 1 / 2, not 1989 / 1990
    (
        rf"\d\W{{1,3}}\d|\^|\de[+-]|{_FRACTION}|[\u207a\u207b\u208a\u208b]",
        rf"""\d[{_POINTS}]\d | \w\^[{{(]?-?\w | \de[+-]\d
        | (?<![\w.,/:])\d{{1,3}}(?:\ \d{{3}}|\ \d{{1,3}}{_SLASH}\d{{1,3}})(?!\d) | \d-\d{{1,3}}{_SLASH}\d
        | \d\ ?{_FRACTION} | \d\ ?{_SLASH}\d | \d{_SLASH}\ \d | (?<!\d)\d{{1,3}}\ {_SLASH}\ \d{{1,3}}(?!\d)
        | \d[\u207a\u207b\u208a\u208b][\d\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]""",
    ),
    # its sign, point, currency, percent and comparison: -5, -US$5, -USD 5, minus 5; .5; $5, 5 US$; 5 %; >= 5
    (
        rf"[{_SIGNS}{_PERCENT[1:-1]}<>≤≥≈≠±∓⩽⩾]|[-.]{_DIGIT}|(?<!\w)(?:[a-z]{{3}}|minus|negative)\ ?[-+]?\.?{_DIGIT}"
        r"|(?:minus|negative) [*_]",
        rf"""(?<![\w)\]}}.%°-])-{_MONEY}?\.?{_DIGIT} | (?<![\w.])\.{_DIGIT}
        | (?<!\w)(?<!\d\ )(?<!tested\ )(?<!test\ )(?:minus|negative)\ [*_]{{0,3}}{_MONEY}?\.?{_DIGIT}
        | (?<!\w){_MONEY}[-+]?\.?{_DIGIT} | {_DIGIT}\ ?{_LETTER}{{0,3}}\\?[{_SIGNS}](?!\w)
        | {_DIGIT}[*_"')\]]{{0,3}}\ \\?{_PERCENT}(?!\w) | {_DIGIT}[.*_"')\]]{{0,3}}\\?{_PERCENT}
        | [<>≤≥≈≠±∓⩽⩾]=?\ ?{_MONEY}?[-+]?\.?{_DIGIT}""",
    ),
    # its scale and factors: 5 million, $5 M; 1.5 × 10; and TeX's 5{,}000 and \frac{5}
    (
        "",
        rf"""{_DIGIT}[*_"')\]]{{0,3}}[\ -][*_]{{0,3}}{SCALE}(?!\w) | [{_SIGNS}]\ ?[\d.,]+\ (?:[kmb]|mil)(?!\w)
        | \d\ ?(?:[×x]|\*{{1,2}}|\\times|\\cdot)\ ?\d | \d(?:\{{,\}}|\\,)\d | \\{_LETTER}{{1,6}}\{{{_DIGIT}""",
    ),
    # number words: thirty-five, two-thirds; hundred and five, four and twenty, one and two thirds, not four and five
    ("", rf"""(?<!\w){_NUMBER_WORD}(?:-|\ |{_AND})(?:{_NUMBER_WORD}|{_PART_WORD})(?!\w)"""),
    # a unit: 5 km/h, $5/hour, 5 km per hour; °C, which a number may precede
    (
        "[/°]|\\ per\\ ",
        rf"""\d\ (?:{SCALE}\ )?{_LETTER}{{1,4}}[²³]?/{_LETTER} | \d/{_LETTER} | \d\ {_LETTER}{{1,10}}\ per\ {_LETTER}
        | (?<![12]\d\d)\d\ (?:{SCALE}\ )?{_LETTER}{{5,10}}/{_LETTER}
        | °\ ?{_LETTER}(?!\w)""",
    ),
    # a name: U.S, Node.js; J. R.; AT&T, A & W; F-16, not 206 BC-220; X-ray, Jay-Z, 3-D
    (
        "[.&-]",
        rf"""{_LETTER}\.{_LETTER} | (?<!\w){_LETTER}\.\ {_LETTER}\.
        | [^\W_]&[^\W_] | (?<!\w){_LETTER}{{1,2}}\ &\ {_LETTER}(?!\w)
        | (?<!\w)(?<!\d\ (?=(?:ad|bc|ce|[ap]m)-)){_LETTER}{{1,2}}-\d
        | (?<!\w){_LETTER}-{_LETTER} | [^\W_]-{_LETTER}(?!\w)""",
    ),
)
JOINTS = tuple(
    (re.compile(sign, re.IGNORECASE).search, re.compile(f"(?=({kind}))", re.VERBOSE | re.IGNORECASE).finditer)
    for sign, kind in _KINDS
)
"""For each kind of joint a quick test of whether a text may hold one, and the search for all of them."""

_HAS_SIGN = re.compile(rf"[\d^&{_FRACTION[1:-1]}]").search
_MAY_JOIN = re.compile(rf"(?<!\w){_LETTER}[.&-]|[-/&.]{_LETTER}|\\{_LETTER}|\b{_NUMBER_WORD}\b", re.IGNORECASE).search
_CONTRACTION = re.compile(r"(?:am|d|em|ll|m|re|s|t|ve)(?!\w)", re.IGNORECASE).match
_POSSESSIVE = re.compile(r"'s(?!\w)", re.IGNORECASE).match
_MARKS_BEFORE = re.compile(r"(?<!\S)[^\w\s]{1,8}\Z")
_MARKS_BEHIND = re.compile(r"(?!°)[^\w\s]{1,8}+(?!\w)")  # a degree is a unit, as in "5 km"
# Behind such a text a quotation mark does not mean feet or inches.
_CLOSES_QUOTATION = re.compile(r"""(?<![\w"])"[^"]*\Z|(?<![\w'])'(?:[^']|(?<=\w)'(?=\w))*\Z""")


def in_word(text: str, at: int) -> bool:
    """Return whether `at` falls inside a word or a run of digits, so that no token starts or ends there."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if _is_mark(after):
        return True
    if not (_is_word(before) and _is_word(after)):
        return False
    return (before.isnumeric() and after.isnumeric()) or not (_is_spaceless(before) or _is_spaceless(after))


def whole(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the whole around `text[start:end]`: all its words and numbers whole, and the marks that touch them."""
    first, last = start, end
    for _ in range(4):
        if (wider := (_start(text, first), _end(text, last))) == (first, last):
            break
        first, last = wider
    before = _MARKS_BEFORE.search(text, max(0, first - 8), first)
    behind = _MARKS_BEHIND.match(text, last)
    if behind and behind[0][0] in "\"'" and text[last - 1].isnumeric() and not before:
        behind = None if _CLOSES_QUOTATION.search(text[max(0, last - 200) : last]) else behind
    return first - len(before[0]) if before else first, behind.end() if behind else last


def _start(text: str, at: int) -> int:
    if at > 1 and text[at - 1] == "'" and _is_word(text[at - 2]) and _CONTRACTION(text, at):
        return _word_start(text, at - 2)
    reach = min(REACH, at)
    start, _ = _join(text[at - reach : at + REACH], reach)
    return at if start == reach else _word_start(text, at - reach + start)


def _end(text: str, at: int) -> int:
    apostrophe = text[at : at + 1] == "'" and _is_word(text[at + 1 : at + 2] or " ")
    if apostrophe and (text[at - 1] == "0" or not _POSSESSIVE(text, at)):  # the 1980's, not 1994's
        return _word_end(text, at + 1)
    reach = min(REACH, at)
    _, end = _join(text[at - reach : at + REACH], reach)
    return at if end == reach else _word_end(text, at - reach + end - 1)


@lru_cache(maxsize=1 << 14)
def _join(window: str, at: int) -> tuple[int, int]:
    """Where the joints across `at` begin and end in a window; (`at`, `at`) without any."""
    first = last = at
    if not 0 < at < len(window):
        return at, at
    if _HAS_SIGN(window) or _MAY_JOIN(window):
        for joint in chain.from_iterable(find(window) for may_hold, find in JOINTS if may_hold(window)):
            if joint.start() < at < joint.end(1):
                first, last = min(first, joint.start()), max(last, joint.end(1))
    return first, last


def _word_start(text: str, at: int) -> int:
    while at > 0 and in_word(text, at):
        at -= 1
    return at


def _word_end(text: str, at: int) -> int:
    at += 1
    while at < len(text) and in_word(text, at):
        at += 1
    return at


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return category(character)[0] == "M"


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_" or _is_mark(character)
