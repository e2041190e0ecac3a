"""Find where an answer occurs in one text of the evidence: a span that, like the whole around it, has its class.

Letters and digits find the possible spans; the class decides. An answer in other words, in another order or across a
boundary is not an occurrence. Source: ours.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import merge
from itertools import accumulate

from eldgr_dspy.derivation.amounts import is_part, quantity_key
from eldgr_dspy.matching.text_keys import text_key, without_article
from eldgr_dspy.matching.wholes import in_word, whole
from eldgr_dspy.text.folding import BIDI_CONTROLS, Folded, fold
from eldgr_dspy.text.reading import ENTITY, read, respell
from eldgr_dspy.text.sentence_ends import sentence_ends
from eldgr_dspy.text.stripping import is_balanced, strip_answer

FUNCTION_WORDS = frozenset(
    "a an and are as at be but by can could did do does for from had has have he her him his i if in into is it its me"
    " might must my nor not of off on or our out shall she should so than that the their them then there these they"
    " this those to up us was we were what when where which who whom whose why will with would you your".split()
)
"""Function words: as an answer such a word is a name, and occurs only where it is written as one."""

STOP_WORDS = FUNCTION_WORDS.difference("me might must my nor off out shall up us".split()).union(
    "about after all also been before being between both during each few how many more most much name named no one"
    " other over same some such under".split()
)
"""Words that do not tell what a text is about: texts are compared without them, and a certificate flags them."""

Span = tuple[int, int]

# Letters and digits, but for the 0 of "0.5", which may be left out.
_WORD = re.compile(r"(?:[^\x00-0:-@\[-`{-\x7f]|0(?!\.\d)|(?<=\d)0)+")
_NO_LETTER = bytes(code for code in range(128) if not chr(code).isalnum())
_LEADING_ZERO = re.compile(r"(?<!\d)0(?=\.\d)")
_LINE = r"(?>\r\n|[\n\r\x85\u2028])"
_BLANK_LINE = re.compile(
    rf"{_LINE}\s*{_LINE}|[\u2029\x0b\x0c]|</(?:p|li|td|th|tr|dd|dt|div|h[1-6]|blockquote)\s*>|<br\s*/?>\s*<br",
    re.IGNORECASE,
)
_CLAUSE_ENDS = re.compile(r";\s|\s;|;(?=[\u3040-\u9fff\uac00-\ud7af])").search
_MINUS_APART = re.compile(r"(?<![\d\u00bc-\u00be])(?<![\d\u00bc-\u00be]\s)\u2212[\s\u200b]*\s\u200b*\W{0,2}\Z")
_THE = re.compile(r"\b(?:[Tt]he|THE)\s\Z")
_HEAD_ARTICLE = re.compile(r"\b(?:the|an?)\s\Z", re.IGNORECASE)
_INITIALS = re.compile(r"[^\W\d_]\.\s?[^\W\d_]")
_BEFORE_LETTER = re.compile(r"[^\W_][ -]\Z")
_NEAR = 80
_sentence_ends = lru_cache(maxsize=1 << 10)(sentence_ends)  # a text that repeats itself has the same words often


@dataclass(frozen=True, slots=True)
class Target:
    """What to look for: a stripped answer, the key of its class, and the letters of each spelling that find it."""

    answer: str
    key: str
    letters: tuple[str, ...] = ()


def letters_of(folded: str) -> str:
    """Return a folded text without ASCII that is neither letter nor digit, and without the 0 of "0.5"."""
    folded = _LEADING_ZERO.sub("", folded) if "0." in folded else folded
    return folded.encode("utf-8", "surrogatepass").translate(None, _NO_LETTER).decode("utf-8", "surrogatepass")


@dataclass(eq=False)
class Source:
    """One text of the evidence, a title or a text, to search for answers; no sentence ends within a title."""

    text: str
    keep_case: bool = False
    is_title: bool = False

    def exact(self, target: Target) -> Span | None:
        """Return the first occurrence that is the answer as it was given, as a slice of the text."""
        if target.answer not in self.text or not is_balanced(target.answer):
            return None
        text, (needle, first, last) = self._folded.text, _needle(target.answer, self.keep_case)
        at = text.find(needle) if needle else -1
        while at >= 0:
            span = self._slice(at, at + len(needle))
            is_written = span is not None and self.text[slice(*span)] == target.answer
            if is_written and self._stands(at + first, at + last, target.key):
                return span
            at = text.find(needle, at + 1)
        return None

    def may_hold(self, target: Target) -> bool:
        """Return whether the text has the letters of an answer, whatever is between them. This is a quick test."""
        return any(letters in self._letters for letters in target.letters)

    def first(self, target: Target) -> Span | None:
        """Return the first occurrence of the answer's class, as a slice of the text."""
        places = [self._places(letters) for letters in target.letters if letters in self._letters]
        spans = (self._stands(*place, target.key) for place in merge(*places)) if places else ()
        return next(filter(None, spans), None)

    @cached_property
    def _folded(self) -> Folded:
        return read(self.text, keep_case=self.keep_case)

    @cached_property
    def _letters(self) -> str:
        if self.text.isascii() and "&" not in self.text and "<" not in self.text:
            return letters_of(self.text if self.keep_case else self.text.lower())
        return letters_of(self._folded.text)

    @cached_property
    def _words(self) -> tuple[list[int], list[int]]:
        """Where each word of the folded text starts, and how many letters are before it."""
        spans = [match.span() for match in _WORD.finditer(self._folded.text)]
        return [start for start, _ in spans], [0, *accumulate(end - start for start, end in spans)]

    def _places(self, letters: str) -> Iterator[Span]:
        """Where the letters and digits of a key are in the folded text, whatever is between them."""
        at = self._letters.find(letters)
        while at >= 0:
            yield self._place(at), self._place(at + len(letters) - 1) + 1
            at = self._letters.find(letters, at + 1)

    def _place(self, at: int) -> int:
        """The place in the folded text of a letter that has this many letters before it."""
        starts, before = self._words
        word = bisect_right(before, at) - 1
        return starts[word] + at - before[word]

    def _stands(self, start: int, end: int, key: str) -> Span | None:
        text = self._folded.text
        if key in FUNCTION_WORDS and (span := self._slice(start, end)) and self.text[slice(*span)] == key:
            return None  # in small letters it is not a name; most words of a text end here
        if in_word(text, start) or in_word(text, end):
            return None
        first, last = whole(text, start, end)
        if key.casefold().startswith(("a ", "an ", "the ")) and (
            head := _HEAD_ARTICLE.search(text, max(0, first - 5), first)
        ):
            first = head.start()  # "The A Team" is the class "a team", and "A Team" is "team"
        if _key_of(text[first:last]) != key or self._crosses(text[start:end], text[first:last]):
            return None
        if is_part(key, text, first, last):
            return None
        if _key_of(text[start:end]) != key or not is_balanced(text[start:end]):
            start, end = _without_edges(text, first, last)
        span = self._slice(start, end) if is_balanced(text[start:end]) else None
        if span is None or self._reads_otherwise(*span):
            return None
        return span if key.casefold() not in FUNCTION_WORDS or self._is_name(*span) else None

    def _slice(self, start: int, end: int) -> Span | None:
        """The slice of the text for a folded span; an entity at its end is not cut."""
        span = self._folded.span(start, end)
        if span is None or self.text[span[1] - 1] == self._folded.source[span[1] - 1] != "&":
            return span
        entity = ENTITY.match(self.text, span[1] - 1)
        return (span[0], entity.end()) if entity else span

    def _crosses(self, inner: str, around: str) -> bool:
        """Whether a sentence or a clause ends within a span, or a bracket in it has no other half."""
        if _CLAUSE_ENDS(inner) or (not is_balanced(inner) and not is_balanced(around)):
            return True
        return not self.is_title and bool(_sentence_ends(inner))

    def _reads_otherwise(self, start: int, end: int) -> bool:
        """Whether the retrieved text has something in this span that folding hides."""
        inner = self.text[start:end]
        if not inner.isascii() and not BIDI_CONTROLS.isdisjoint(inner):
            return True
        if _BLANK_LINE.search(inner):
            return True
        return _MINUS_APART.search(self._folded.source[max(0, start - 40) : start]) is not None

    def _is_name(self, start: int, end: int) -> bool:
        """Whether a function word is written as a name: "US" and "U.S." are, "us" and the "It" of a sentence not."""
        text = self.text
        word, before = (fold(part, keep_case=True).text for part in (text[start:end], text[max(0, start - 16) : start]))
        if _INITIALS.search(word):
            return True
        if len(word) < 2:
            return word == "A" and text[start - 1] != "\n" and _BEFORE_LETTER.search(before) is not None
        if word.isupper():
            line = text[max(0, start - _NEAR) : start].rpartition("\n")[2] + text[end : end + _NEAR].partition("\n")[0]
            return line.upper() != line or line.lower() == line
        return word[0].isupper() and _THE.search(before) is not None


class Letter(Source):
    """A text to search for the characters of an answer, as the paper's letter has it."""

    def may_hold(self, target: Target) -> bool:
        return target.answer in self.text

    def exact(self, target: Target) -> Span | None:
        start = self.text.find(target.answer)
        return None if start < 0 else (start, start + len(target.answer))

    first = exact


@lru_cache(maxsize=4096)
def _needle(answer: str, keep_case: bool) -> tuple[str, int, int]:
    """An answer as it is read, and where the first word after an article starts and the last ends; "" without words."""
    text = read(answer, keep_case=keep_case).text.strip()
    words = [match.span() for match in _WORD.finditer(text, len(text) - len(without_article(text)))]
    return (text, words[0][0], words[-1][1]) if words else ("", 0, 0)


@lru_cache(maxsize=1 << 14)
def _key_of(folded: str) -> str:
    return quantity_key(text_key(respell(strip_answer(folded))))


def _without_edges(text: str, start: int, end: int) -> Span:
    """The smallest part of a span that is of its class and whose brackets all have their other half."""
    key = _key_of(text[start:end])
    for first, last in ((0, 1), (1, 0), (1, 1), (0, 1), (1, 0)):
        while end - start > 2 and _key_of(less := text[start + first : end - last]) == key:
            if not is_balanced(less) and is_balanced(text[start:end]):
                break
            start, end = start + first, end - last
    return start, end
