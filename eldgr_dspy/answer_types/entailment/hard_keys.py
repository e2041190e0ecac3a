"""The hard keys of a text: what an NLI model may overlook, read by rule.

Numbers with their units, months, names, negation and modality. Two texts that differ in one of them are never alike,
and a claim needs the same ones in the window that entails it. Number words, units, months and the words for negation
and modality are English; digits and capitals are those of Unicode. In a script without capitals there are no names.

    "Ada paid $1,000 on 3 May 1976."     numbers 1000$, 3, 1976 and month 5; the name Ada
    "She may not pay."                   moods negated and possible

It does not pair numbers with what they count: "5 apples and 3 pears" has the numbers of "3 apples and 5 pears".
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from eldgr_dspy.folding import drop_invisible
from eldgr_dspy.occurrences import STOP_WORDS
from eldgr_dspy.sentence_ends import sentence_starts
from eldgr_dspy.tracing import SCALES, amount_at, tokens_of

_UNITS = {
    name: unit
    for unit, names in {
        "km": "km kilometre kilometer",
        "m": "m metre meter",
        "cm": "cm centimetre centimeter",
        "mm": "mm millimetre millimeter",
        "mi": "mi mile",
        "ft": "ft foot feet",
        "in": "inch inche",
        "kg": "kg kilo kilogram kilogramme",
        "g": "g gram gramme",
        "mg": "mg milligram",
        "ug": "µg μg mcg microgram",
        "t": "tonne ton",
        "lb": "lb lbs pound",
        "l": "l litre liter",
        "ml": "ml millilitre milliliter",
        "s": "second sec",
        "min": "minute min",
        "h": "h hour",
        "d": "day",
        "w": "week",
        "mo": "month",
        "y": "year",
        "%": "% percent percentage",
        "$": "$ dollar usd",
        "€": "€ euro eur",
        "£": "£ gbp",
        "c": "c celsius",
        "f": "f fahrenheit",
    }.items()
    for name in names.split()
}
_BEFORE = frozenset("$€£")
_SHORT_SCALES = {"k": 1_000, "m": 1_000_000, "mn": 1_000_000, "bn": 1_000_000_000, "trillion": 1_000_000_000_000}
_MONTHS = {
    name: f"month {number}"
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct"
        "|november nov|december dec".split("|"),
        start=1,
    )
    for name in names.split()
}
_ALSO_WORDS = frozenset("may march mar jan".split())  # a month only beside a number
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-([0-3]\d)\b")
_MINUS = re.compile(r"(?<![\w)\]])[-\u2212](?=[.\d])")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_AFTER_A_NAME = frozenset("is was are were has had have will would can could may might must did does said and".split())
_MOODS = {
    "negated": re.compile(
        r"\b(?:not|no|never|none|neither|nor|nobody|nothing|nowhere|cannot|without)\b|n['’]t\b", re.IGNORECASE
    ),
    "possible": re.compile(
        r"\b(?:may(?!\s\d)|(?i:might|could|possibly|perhaps|maybe|probably|likely|unlikely|allegedly|reportedly"
        r"|apparently|supposedly|seems?|appears?))\b"
    ),
    "required": re.compile(r"\b(?:must|should|ought)\b", re.IGNORECASE),
    "asked": re.compile(r"[?？؟][^\w]*\Z"),
}
LINE = re.compile(r"[^\r\n]+(?>(?:\r?\n[ \t]*+(?=[a-z](?![.)]))[^\r\n]+)*)")
"""A line; one that continues in lower case was only wrapped."""

_SHORT = 3


@dataclass(frozen=True, slots=True)
class HardKeys:
    """The hard keys of a text.

    Attributes:
        numbers: Each number with its unit, and each month.
        names: Words with a capital, case folded; at the start of a sentence only where that is likely to be a name.
        words: All words, case folded.
        moods: Whether the text is negated, says what is possible or required, or asks.
        sentences: The words and the moods of each sentence.
    """

    numbers: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]
    moods: frozenset[str]
    sentences: tuple[tuple[frozenset[str], frozenset[str]], ...]

    def agree(self, other: "HardKeys", question: "HardKeys") -> bool:
        """Return whether two answers to a question have the same hard keys; symmetric.

        A name may be any word of the other answer. One of the two may repeat numbers and names of the question.
        """
        mine, others = self._beyond(other), other._beyond(self)
        stated = question.numbers | question.words
        return self.moods == other.moods and not (mine and others) and mine | others <= stated

    def _beyond(self, other: "HardKeys") -> frozenset[str]:
        """The numbers and names that another text does not have."""
        return (self.numbers - other.numbers) | (self.names - other.words)

    def in_(self, window: "HardKeys") -> bool:
        """Return whether the hard keys of a claim occur in a window, whose sentence nearest in words has its moods."""
        if not (self.numbers <= window.numbers and self.names <= window.words):
            return False
        shared = [(len(self.words & words), moods) for words, moods in window.sentences]
        most = max((count for count, _ in shared), default=0)
        return any(count == most and moods == self.moods for count, moods in shared)


@lru_cache(maxsize=4096)
def hard_keys(text: str) -> HardKeys:
    """Return the hard keys of a text; linear in its length."""
    shown = _ISO_DATE.sub(_written_out, drop_invisible(text))
    sentences = [(part, _WORD.findall(part)) for part in _sentences(shown)]
    names = {_folded(word) for _, found in sentences for at, word in enumerate(found) if _is_name(word, at, found)}
    read = tuple((frozenset().union(*map(_forms, found)), _moods(part)) for part, found in sentences)
    words, moods = (frozenset().union(*column) for column in zip(*read, strict=True)) if read else ((), ())
    numbers = frozenset().union(*(_numbers(part) for part, _ in sentences))
    return HardKeys(numbers, frozenset(names), frozenset(words), frozenset(moods), read)


def _sentences(text: str) -> list[str]:
    pieces: list[str] = []
    for line in LINE.finditer(text):
        starts = [line.start(), *sentence_starts(text, *line.span()), line.end()]
        pieces.extend(text[start:end] for start, end in pairwise(starts))
    return pieces


def _written_out(date: re.Match[str]) -> str:
    name = next(name for name, month in _MONTHS.items() if month == f"month {int(date[2])}")
    return f"{int(date[3])} {name.title()} {date[1]}"


def _folded(word: str) -> str:
    return _POSSESSIVE.sub("", word).replace(".", "").casefold()


def _forms(word: str) -> set[str]:
    """A word as it may be asked for: whole, and the parts of a compound."""
    return {_folded(word), *map(_folded, word.split("-"))}


def _is_name(word: str, at: int, sentence: list[str]) -> bool:
    """Whether a word has a capital that it does not owe to the start of its sentence."""
    folded = _folded(word)
    if word == word.lower() or folded in STOP_WORDS | _MONTHS.keys() | _UNITS.keys():
        return False
    if at or len(sentence) <= _SHORT or word[1:] != word[1:].lower():
        return True
    after = sentence[1]
    return after != after.lower() or after in _AFTER_A_NAME


def _moods(sentence: str) -> frozenset[str]:
    return frozenset(mood for mood, words in _MOODS.items() if words.search(sentence))


def _numbers(text: str) -> frozenset[str]:
    tokens = tokens_of(_MINUS.sub(" minus ", text))
    found, at = set[str](), 0
    while at < len(tokens):
        amount, after = (None, at) if _is_a_pronoun(tokens, at) else amount_at(tokens, at)
        if amount is None:
            month = _MONTHS.get(tokens[at])
            if month and (tokens[at] not in _ALSO_WORDS or _beside_a_number(tokens, at)):
                found.add(month)
            elif tokens[at][0].isdecimal():
                found.add(tokens[at])  # longer than a number of a word problem
            at += 1
            continue
        scale = _scale(tokens, at, after)
        amount, after = amount * scale, after + (scale > 1)
        unit, after, start = _unit(tokens, at, after)
        sign = "-" if tokens[start - 1 : start] == ["minus"] else ""
        found.add(f"{sign}{amount}{unit}")
        at = after
    return frozenset(found)


def _is_a_pronoun(tokens: list[str], at: int) -> bool:
    return tokens[at] == "one" and SCALES.keys().isdisjoint(tokens[at + 1 : at + 2])


def _scale(tokens: list[str], at: int, after: int) -> int:
    """What the word after a number multiplies it by; "m" is a million only of money."""
    word = tokens[after] if after < len(tokens) else ""
    if word == "m" and not (at and tokens[at - 1] in _BEFORE):
        return 1
    return SCALES.get(word) or _SHORT_SCALES.get(word, 1)


def _unit(tokens: list[str], at: int, after: int) -> tuple[str, int, int]:
    """The unit of the number at `at`, where the number ends with it, and where it starts."""
    if at and tokens[at - 1] in _BEFORE:
        return tokens[at - 1], after, at - 1
    following = tokens[after] if after < len(tokens) else ""
    if following == "per" and tokens[after + 1 : after + 2] == ["cent"]:
        return "%", after + 2, at
    unit = _UNITS.get(following, "")
    return unit, after + bool(unit), at


def _beside_a_number(tokens: list[str], at: int) -> bool:
    around = (*tokens[max(0, at - 1) : at], *tokens[at + 1 : at + 2])
    return any(token[0].isdecimal() for token in around)
