"""Which numbers a question gives, the obvious way: its words one by one, each with what the next ones make of it."""

import re
import unicodedata
from fractions import Fraction

from eldgr_dspy.derivation.tracing import TABLE
from tests.naive.naive_answers import FRACTIONS

UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "dozen": 12}
SMALL = {word: value for value, word in enumerate(UNITS)} | {word: 20 + 10 * n for n, word in enumerate(TENS)}
PARTS = {
    "half": 2,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
}
NUMERAL = re.compile(r"\d{1,3}(?:,\d{3})+(?!,?\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")


def words_of(question: str) -> list[str]:
    text = "".join(str(unicodedata.digit(c)) if unicodedata.category(c) == "Nd" else c for c in question.lower())
    for character, value in FRACTIONS.items():
        text = text.replace(character, f" {value.numerator}/{value.denominator}")
    for scale in ("hundred", "thousand", "million", "billion"):
        text = re.sub(rf"(?<!\w)a {scale}(?!\w)", f"one {scale}", text)
    text = re.sub(r"(?<!\w)per cent(?!\w)", "percent", text)
    text = re.sub(r"(\d)k(?!\w)", r"\1 thousand", text)
    text = re.sub(r"\d(?:\s\d{3}){0,3}\s000(?!\d)", lambda match: "".join(match[0].split()), text)
    text = re.sub(r"(?<![\d.,])(\d{1,9}),(\d{1,2})(?=( ?)([%€]|[a-z]\w*))", decimal, text)
    return [singular(word) for word in re.findall(rf"{NUMERAL.pattern}|[^\W\d_]+|[%$€£¢/]", text)]


def decimal(match: re.Match[str]) -> str:
    """3,5 kg as 3.5 kg; but 3,5 pens are two numbers."""
    units = "% € kg km cm mm ml g m l euro liter litre meter metre hour".split()
    return f"{match[1]}.{match[2]}" if match[4] in (*units, *(f"{unit}s" for unit in units[2:])) else match[0]


def singular(word: str) -> str:
    for plural, ending in (("", ""), ("s", ""), ("es", ""), ("ies", "y")):
        one = word[: len(word) - len(plural)] + ending
        if word.endswith(plural) and (one in TABLE or one in SCALES):
            return one
    return word


def traceable(question: str) -> set[Fraction]:
    """What the question states, and what a word of it means by the published table."""
    values = {value for word in words_of(question) for value in TABLE.get(word, ())}
    return question_numbers(question) | values


def question_numbers(question: str) -> set[Fraction]:
    words = words_of(question)
    results = {Fraction(SCALES[word]) for word in words if word in SCALES}
    at = 0
    while at < len(words):
        amount, after = amount_at(words, at)
        if amount is None:
            at += 1
            continue
        results.add(amount)
        if after < len(words) and words[after] in SCALES:
            amount, after = amount * SCALES[words[after]], after + 1
            results.add(amount)
        results |= made_of(amount, words, after)
        at = after
    return results


def numeral(word: str) -> Fraction | None:
    return Fraction(word.replace(",", "")) if NUMERAL.fullmatch(word) else None


def amount_at(words: list[str], at: int) -> tuple[Fraction | None, int]:
    """The number that begins at a place, and where it ends: a numeral, or words such as `two hundred and five`."""
    value = numeral(words[at])
    if value is not None:
        return value, at + 1
    return spell(words, at)


def spell(words: list[str], at: int) -> tuple[Fraction | None, int]:
    total, group, start = 0, 0, at
    last = None
    while at < len(words):
        word = words[at]
        if word in SMALL and fits(last, SMALL[word]):
            group += SMALL[word]
            last = SMALL[word]
        elif word == "hundred" and 0 < group < 100:
            group *= 100
            last = 100
        elif word in ("thousand", "million", "billion") and group:
            total, group, last = total + group * SCALES[word], 0, None
        elif not (word == "and" and at > start and words[at - 1] in SCALES and spells(words, at + 1)):
            break
        at += 1
    return (Fraction(total + group), at) if at > start else (None, at)


def spells(words: list[str], at: int) -> bool:
    return at < len(words) and words[at] in SMALL


def fits(last: int | None, value: int) -> bool:
    return last in (None, 0, 100) or (last >= 20 and last % 10 == 0 and last < 100 and 0 < value < 10)


def made_of(amount: Fraction, words: list[str], after: int) -> set[Fraction]:
    """What a number makes together with the words right behind it."""
    rest = words[after : after + 4]
    word = rest[0] if rest else ""
    if word in ("%", "percent"):
        share = amount / 100
        return {share, 1 + share} | remainder(share)
    if word in ("cent", "¢"):
        return {amount / 100}
    if word in PARTS:
        return {amount / PARTS[word]} | remainder(amount / PARTS[word])
    if word == "/" and len(rest) > 1 and numeral(rest[1]):
        share = amount / (numeral(rest[1]) or 1)
        return {share} | remainder(share)
    fraction = fraction_in(rest)
    return set() if fraction is None else {amount + fraction}


def fraction_in(rest: list[str]) -> Fraction | None:
    """`and a half`, `and three quarters`, `1/2`."""
    if len(rest) > 2 and numeral(rest[0]) and rest[1] == "/" and numeral(rest[2]):
        return (numeral(rest[0]) or Fraction(0)) / (numeral(rest[2]) or 1)
    if rest[:1] == ["and"]:
        rest = rest[1:]
        if len(rest) > 1 and rest[1] in PARTS and (rest[0] in ("a", "an") or rest[0] in SMALL):
            return Fraction(SMALL.get(rest[0], 1), PARTS[rest[1]])
    return None


def remainder(share: Fraction) -> set[Fraction]:
    return {1 - share} if share < 1 else set()
