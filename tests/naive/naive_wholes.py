"""The whole that a span is part of, the obvious way: every pattern is tried at every place, until nothing grows."""

import re
import unicodedata
from functools import cache

from tests.naive.naive_reading import CURRENCY

SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "MYANMAR", "KHMER")
MARKS = ".,/:'^·÷٫٬⁄∕，．"
VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅟↉"
DIGIT = rf"[\d{VULGAR}]"
CODES = "aud brl cad chf cny czk dkk eur gbp hkd inr jpy krw mxn nok nzd pln rmb rub sek sgd try usd zar".split()
MONEY = rf"(?:[a-z]{{0,3}}\\?[{CURRENCY}¢¤֏؋៛﷼] ?|(?:{'|'.join(CODES)}) ?)"
SCALE = "(?:hundred|thousand|million|billion|trillion|quadrillion|dozen|lakh|crore|mn|bn|tn)s?"
WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion \
trillion".split()
WORD = rf"(?:{'|'.join(WORDS)})"
LETTER = rf"[^\W\d_²³¹⁰-₉{VULGAR}]"
PERCENT = "[%؉؊٪‰‱]"
SLASH = "[/⁄∕]"
PART = (
    "(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|half|halves|thirds|quarters?|fourths|fifths|\
sixths|eighths|tenths|dozen|score|and a half|and a quarter)"
)
CLOSING = r"""[*_"')\]]{0,3}"""
# Held together: an edge inside such a match does not count.
JOINTS = (
    rf"\d[{re.escape(MARKS)}]\d",  # 3.14, 1,042, 10:30
    r"\w\^[{(]?-?\w",  # 10^2
    r"\de[+-]\d",  # 5e-3
    rf"(?<![\w.,/:])\d{{1,3}}(?: \d{{3}}| \d{{1,3}}{SLASH}\d{{1,3}})(?!\d)",  # 5 000, 3 1/2
    rf"\d-\d{{1,3}}{SLASH}\d",  # 5-1/2
    rf"\d ?[{VULGAR}]",  # 3 ½
    rf"\d ?{SLASH}\d",
    rf"\d{SLASH} \d",
    rf"(?<!\d)\d{{1,3}} {SLASH} \d{{1,3}}(?!\d)",  # 1 / 2
    r"\d[⁺⁻₊₋][\d²³¹⁰-⁹₀-₉]",
    rf"(?<![\w)\]}}.%°-])-{MONEY}?\.?{DIGIT}",  # -5, -US$5
    rf"(?<!\w)(?<!\d )(?<!tested )(?<!test )(?:minus|negative) {MONEY}?\.?{DIGIT}",
    rf"(?<![\w.])\.{DIGIT}",  # .5
    rf"(?<!\w){MONEY}[-+]?\.?{DIGIT}",  # US$5
    rf"{DIGIT} ?{LETTER}{{0,3}}\\?[{CURRENCY}¢¤֏؋៛﷼](?!\w)",  # 5 US$
    rf"{DIGIT}{CLOSING} \\?{PERCENT}(?!\w)",  # 5 %
    rf"""{DIGIT}[.*_"')\]]{{0,3}}\\?{PERCENT}""",  # 5%
    rf"[<>≤≥≈≠±∓⩽⩾]=? ?{MONEY}?[-+]?\.?{DIGIT}",  # <5
    rf"{DIGIT}{CLOSING}[ -]{SCALE}(?!\w)",  # 5 million
    rf"[{CURRENCY}¢¤֏؋៛﷼] ?[\d.,]+ [kmb](?!\w)",  # $5 M
    r"\d ?(?:[×x]|\*{1,2}|\\times|\\cdot) ?\d",  # 1.5 × 10
    r"\d(?:\{,\}|\\,)\d",  # 5{,}000
    rf"\\{LETTER}{{1,6}}\{{{DIGIT}",  # \frac{5}
    rf"(?<!\w){WORD}[- ](?:{WORD}|{PART})(?!\w)",  # thirty-five, two-thirds
    rf"(?<!\w)(?:hundred|thousand|[mbtr]+illion) and (?:{WORD}|{PART})(?!\w)",
    rf"(?<!\w){WORD} and (?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty|{WORD}(?=[- ]{PART}))\b",  # one and two thirds
    rf"\d (?:{SCALE} )?{LETTER}{{1,4}}[²³]?/{LETTER}",  # 5 km/h
    rf"(?<![12]\d\d)\d (?:{SCALE} )?{LETTER}{{5,10}}/{LETTER}",  # 60 miles/hour, not 2010 actor/director
    rf"\d/{LETTER}",  # $5/hour
    rf"\d {LETTER}{{1,10}} per {LETTER}",
    rf"\d ?° ?{LETTER}(?!\w)",  # 5 °C
    rf"{LETTER}\.{LETTER}",  # U.S, Node.js
    rf"(?<!\w){LETTER}\. {LETTER}\.",  # J. R.
    r"[^\W_]&[^\W_]",  # AT&T
    rf"(?<!\w){LETTER}{{1,2}} & {LETTER}(?!\w)",  # A & W
    rf"(?<!\w)(?<!\d )(?:bc|ad|ce|am|pm)-\d|(?<!\w)(?!(?:bc|ad|ce|am|pm)-){LETTER}{{1,2}}-\d",  # F-16
    rf"(?<!\w){LETTER}-{LETTER}",  # X-ray
    rf"[^\W_]-{LETTER}(?!\w)",  # Jay-Z
)
CONTRACTIONS = ("am", "d", "em", "ll", "m", "re", "s", "t", "ve")


def is_word(character: str) -> bool:
    return character != "" and (character.isalnum() or character == "_" or is_mark(character))


def is_mark(character: str) -> bool:
    return character != "" and unicodedata.category(character)[0] == "M"


def in_word(text: str, at: int) -> bool:
    """Whether a place falls inside a word or a number."""
    before, after = text[at - 1 : at] if at else "", text[at : at + 1]
    if is_mark(after) and before:
        return True
    if not (is_word(before) and is_word(after)):
        return False
    return (before.isnumeric() and after.isnumeric()) or not (spaceless(before) or spaceless(after))


def spaceless(character: str) -> bool:
    """Whether a letter is of a script that is written without spaces."""
    return not character.isdigit() and unicodedata.name(character, "").startswith(SPACELESS)


@cache
def joints(text: str) -> tuple[tuple[int, int], ...]:
    """Where something is held together that is more than one word."""
    places = {match.span(1) for joint in JOINTS for match in re.finditer(f"(?=({joint}))", text, re.I)}
    return tuple(sorted(places | contractions(text)))


def contractions(text: str) -> set[tuple[int, int]]:
    """can't, o'clock and O'Brien up to the apostrophe; a possessive does not count."""
    out: set[tuple[int, int]] = set()
    for at in range(1, len(text) - 1):
        if text[at] != "'" or not is_word(text[at + 1]):
            continue
        end = at + 1
        while end < len(text) and (end == at + 1 or in_word(text, end)):
            end += 1
        ending = text[at + 1 : end].lower()
        if ending != "s" or text[at - 1] == "0":
            out.add((at, end))  # what is before continues here
    return out


def is_contraction(rest: str) -> bool:
    return any(rest.lower().startswith(ending) and not is_word(rest[len(ending) :][:1]) for ending in CONTRACTIONS)


def whole(text: str, start: int, end: int) -> tuple[int, int]:
    """A span with all that it is part of, and with the marks that touch it."""
    first, last = start, end
    while True:
        wider = first, last
        if first > 1 and text[first - 1] == "'" and is_word(text[first - 2]) and is_contraction(text[first:]):
            first -= 2
        for begin, stop in joints(text):
            if begin < first < stop and text[begin] != "'":
                first = begin
            if begin < last < stop or (begin == last and text[begin] == "'"):
                last = max(last, stop)
        while first and in_word(text, first):
            first -= 1
        while last < len(text) and in_word(text, last):
            last += 1
        if (first, last) == wider:
            return with_marks(text, first, last)


def with_marks(text: str, first: int, last: int) -> tuple[int, int]:
    """The marks that touch a span, up to eight on a side, but for those that touch another word too."""
    begin, end = first, last
    while begin and touches(text[begin - 1]):
        begin -= 1
    if first - begin > 8 or (begin and not text[begin - 1].isspace()):
        begin = first
    while end < len(text) and end - last < 8 and touches(text[end]):
        end += 1
    if re.match(r"\w", text[end : end + 1]):
        end = last
    is_quote = text[last : last + 1] in ("'", '"') and text[last - 1].isnumeric() and closes(text, last)
    return begin, (last if is_quote and begin == first else end)


def closes(text: str, at: int) -> bool:
    """Whether a quotation is open at a place: a mark began it before a word, and none like it stands since."""
    for place in range(at):
        quote, inner = text[place], text[place + 1 : at]
        if quote in "'\"" and not re.match(rf"[\w{quote}]", text[place - 1 : place] if place else ""):
            rest = re.sub(r"(?<=\w)'(?=\w)", "", inner) if quote == "'" else inner
            if quote not in rest:
                return True
    return False


def touches(character: str) -> bool:
    return re.match(r"[^\w\s]", character) is not None
