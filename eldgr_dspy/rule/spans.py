"""Find the span of the evidence that looks most like an answer, by words and shapes only.

The lexical repairer uses only this: the kind of thing that the question asks for, the spans of that shape, and how many
rare words of the question are in their sentence and right next to them. It does not read meaning or make a second hop,
so it is a baseline that any LM must beat. It never writes: it returns a slice of a passage.

A pure function that uses only the standard library. The formulas are ours. The question types and months are English.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from eldgr_dspy.matching.occurrences import STOP_WORDS
from eldgr_dspy.rule.lexical import WORD, Library, content, is_yes_no, offers_a_choice, sentences_of, words_of

Kind = Literal["choice", "year", "date", "number", "person", "place", "name"]

REACH = 5
"""How many words on either side of a span count as next to it."""

LONGEST_TITLE = 12
"""A first line with more different words than this is read as text, not as a title."""

LIKELY = 0.15
"""The bonus for a span of the usual shape of its kind: a person of two or three names, a place after a preposition."""


class Span(NamedTuple):
    """A slice of a passage: its text, the index of the passage, and its score (comparable within one question)."""

    text: str
    passage: int
    score: float


def best_span(question: str, evidence: Sequence[str]) -> Span | None:
    """Return the span that best answers the question, or None if no span is better than nothing.

    None also answers yes/no questions and questions that name their own answers ('..., Muse or The Raconteurs?'), since
    no span can. Ties go to the earliest.

    Args:
        question: The question as asked.
        evidence: Passages as `show_passage` shows them. A span never crosses a line of a passage, and is in its text: a
            title says what a passage is about, and is not what it says.
    """
    if (kind := kind_of_answer(question)) == "choice":
        return None
    scorer = _Scorer(question, Library(evidence), kind)
    spans = (span for number, passage in enumerate(evidence) for span in scorer.spans(number, passage))
    return max(spans, key=lambda span: span.score, default=None)


# --- what a question asks for -----------------------------------------------------------------------------------------

_NOUNS: dict[Kind, str] = {
    "year": "year",
    "date": "date birthday birthdate",
    "number": "population",
    "person": "actor actress artist author character composer designer director footballer man musician novelist person"
    " player poet politician president singer woman writer",
    "place": "borough city continent country county district island location place region state town village",
}
_KIND_OF_NOUN: dict[str, Kind] = {noun: kind for kind, nouns in _NOUNS.items() for noun in nouns.split()}
_WHICH = re.compile(r"\b(?:what|which)\b((?:\W+\w+){0,4})")
_HOW_MANY = re.compile(r"\bhow (?:many|much|old|long|tall|far|high)\b")


def kind_of_answer(question: str) -> Kind:
    """Return the kind of thing that the question asks for, by its question word and the first known noun after it."""
    text = question.casefold()
    if is_yes_no(question) or offers_a_choice(question):
        return "choice"
    if _HOW_MANY.search(text):
        return "number"
    after = _WHICH.findall(text)
    for noun in words_of(" ".join(after)):
        if noun in _KIND_OF_NOUN:
            return _KIND_OF_NOUN[noun]
    words = set(words_of(text))
    if after:
        return "name"
    if "when" in words:
        return "date"
    if "where" in words:
        return "place"
    return "person" if words & {"who", "whom", "whose"} else "name"


# --- the spans of each shape ------------------------------------------------------------------------------------------

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH_NAMES = frozenset(_MONTHS.split("|"))
_YEAR = re.compile(r"\b(?:1[0-9]{3}|20[0-9]{2})\b")
_DATE = re.compile(
    rf"\b(?:[0-9]{{1,2}} (?:{_MONTHS})(?:,? [0-9]{{4}})?|(?:{_MONTHS}) (?:[0-9]{{1,2}}(?:, [0-9]{{4}})?|[0-9]{{4}}))\b"
)
_NUMBER = re.compile(
    r"\b(?:[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen"
    r"|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)\b",
    re.IGNORECASE,
)
_QUOTATION = re.compile(r"[\"“]([^\"“”]{2,80})[\"”]")
_NAME_PART = re.compile(r"\w+(?:['’.&/-]\w+)*")
_LINKS = frozenset(("de", "del", "der", "du", "la", "le", "of", "the", "van", "von"))
_PLACE_BEFORE = re.compile(r"\b(?:at|from|in|near|of) (?:the )?$")


def _slices(sentence: str, kind: Kind) -> Iterator[tuple[int, int]]:
    if kind == "year":
        yield from (match.span() for match in _YEAR.finditer(sentence))
    elif kind == "date":
        yield from (match.span() for match in (_DATE if _DATE.search(sentence) else _YEAR).finditer(sentence))
    elif kind == "number":
        yield from (match.span() for match in _NUMBER.finditer(sentence))
    else:
        yield from _names(sentence)
        if kind == "name":
            yield from (match.span(1) for match in _QUOTATION.finditer(sentence))


def _names(sentence: str) -> Iterator[tuple[int, int]]:
    """Yield runs of capitalised words. A space, an initial's full stop and words such as 'of' keep a run together."""
    start = end = reach = 0  # the open run is [start, end); `reach` is where the links after it end
    for match in _NAME_PART.finditer(sentence):
        word = match.group()
        gap = sentence[reach : match.start()] if start < end else ""
        if word[0].isupper() and word not in _MONTH_NAMES:
            joins = gap == " " or (gap == ". " and sentence[end - 1].isupper())
            if start < end and not joins:
                yield start, end
            start, end = (start if joins else match.start()), match.end()
            reach = end
        elif gap == " " and word in _LINKS:
            reach = match.end()
        elif start < end:
            yield start, end
            start = end
    if start < end:
        yield start, end


class _Scorer:
    def __init__(self, question: str, library: Library, kind: Kind) -> None:
        self.kind: Kind = kind
        self.library = library
        words = set(words_of(question))
        # also in the plural
        self.words = words | {f"{word}s" for word in words} | {word.removesuffix("s") for word in words}
        self.terms = content(words)
        self.total = library.weight(self.terms)

    def spans(self, number: int, passage: str) -> Iterator[Span]:
        title, _, text = passage.partition("\n")
        words = set(words_of(title))
        if not text or len(words) > LONGEST_TITLE:
            title, text, words = "", passage, set()
        for sentence in sentences_of(text):
            yield from self._in_sentence(number, sentence, words)

    def _in_sentence(self, number: int, sentence: str, about: set[str]) -> Iterator[Span]:
        """Score by the weight of the question's words in the sentence and in its title, plus those next to the span."""
        places = [(match.start(), match.group().casefold()) for match in WORD.finditer(sentence)]
        starts = [start for start, _ in places]
        if (overlap := self.library.weight(self.terms & (about | {word for _, word in places}))) <= 0:
            return
        weights = (self.library.rarity(word) if word in self.terms else 0.0 for _, word in places)
        sums = list(accumulate(weights, initial=0.0))
        for start, end in _slices(sentence, self.kind):
            start, end = _trim(sentence, start, end)
            if not self._may_answer(words_of(sentence[start:end])):
                continue
            left, right = bisect_left(starts, start) - REACH, bisect_left(starts, end) + REACH
            beside = min(self.total, sums[min(right, len(places))] - sums[max(left, 0)])
            likely = LIKELY if self._is_likely(sentence, start, end) else 0.0
            yield Span(sentence[start:end], number, (overlap + beside) / self.total + likely)

    def _may_answer(self, words: list[str]) -> bool:
        """Refuse a span that repeats the question: every word of it, or more than half of a name's words."""
        telling = [word for word in words if word not in STOP_WORDS]
        repeats = sum(word in self.words for word in telling)
        is_name = self.kind in ("name", "person", "place")
        return repeats < len(telling) and not (is_name and 2 * repeats > len(telling))

    def _is_likely(self, sentence: str, start: int, end: int) -> bool:
        if self.kind == "person":
            return 2 <= len(words_of(sentence[start:end])) <= 3
        return self.kind == "place" and _PLACE_BEFORE.search(sentence[max(0, start - 12) : start]) is not None


def _trim(sentence: str, start: int, end: int) -> tuple[int, int]:
    if sentence[start:end].endswith(("'s", "’s")):
        end -= 2
    if sentence[start:end].startswith(("The ", "the ")):
        start += 4
    return start, end
