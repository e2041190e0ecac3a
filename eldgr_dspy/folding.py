"""Fold texts so that they can be compared, and find the original characters of a folded part.

Case, white space, typographic dashes and quotes, compatibility forms and invisible characters are folded; superscripts
and fractions are left alone, since "10²" is not "102" and "1½" is not "11/2". It is not the answer normalisation of
HotpotQA (`eldgr_dspy.answers`): no punctuation and no article is dropped here.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category, decomposition, normalize

# Format characters (Cf) that show nothing: zero-width characters, direction marks, invisible operators, tags.
_INVISIBLE = (
    *(0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2060, 0x2065), *range(0x206A, 0x2070), 0xFEFF),
    *(*range(0xFFF9, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), 0xE0001, *range(0xE0020, 0xE0080)),
)
INVISIBLE = frozenset(map(chr, _INVISIBLE))
# These are invisible too, but change the order of the visible characters, so they are never dropped (hazard 37).
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d")

_QUOTES = {"'": "`´ʹʼ‘’‚‛‹›′＇", '"': "«»“”„‟″〝〞＂"}
PLAIN = {ord(variant): plain for plain, variants in _QUOTES.items() for variant in variants}
PLAIN |= {ord(dash): "-" for dash in DASHES}
"""Typographic quotes and dashes, each with its ASCII form."""

_DROP = dict.fromkeys(_INVISIBLE)
# Unicode's stream-safe format allows 30 marks in a row; more are cut, since ordering them takes quadratic time.
_LONGEST_CLUSTER = 40
_ASCII_CASED = {code: " " if chr(code).isspace() else PLAIN.get(code, chr(code)) for code in range(128)}
_ASCII = {code: character.lower() for code, character in _ASCII_CASED.items()}

# A stretch that is not ASCII, and the white space after it, so that the rest does not start with white space.
_FOREIGN = re.compile(r"[^\x00-\x7f]++\s*+")
# Folded ASCII, cut after the first space of each run, so that every further space is a piece of its own.
_CUT = re.compile(r"[^ ]++(?>(?: [^ ]++)*) ?| ")


class _Piece(NamedTuple):
    begin: int
    end: int
    text: str
    linear: bool


class _Segment(NamedTuple):
    at: int
    begin: int
    end: int
    linear: bool


@dataclass(frozen=True, slots=True)
class Folded:
    """A text with its folded form.

    `source` is the original and `text` the folded form. `segments` maps the parts of one to the parts of the other; it
    is empty if both have the same offsets.
    """

    source: str
    text: str
    segments: tuple[_Segment, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Return where the folded characters `start` to `end` (not empty) are in the source, as offsets of a slice.

        None if either edge falls inside what one original character folds to ("ﬁ" has no half). Invisible characters at
        the end of the slice are left out of it.
        """
        if not self.segments:
            return start, end
        first, last = self._segment(start), self._segment(end - 1)
        if not (first.linear or start == first.at) or not (last.linear or end == self._end(last)):
            return None
        begin = first.begin + start - first.at if first.linear else first.begin
        finish = last.begin + end - last.at if last.linear else last.end
        while self.source[finish - 1] in INVISIBLE:
            finish -= 1
        return begin, finish

    def _segment(self, position: int) -> _Segment:
        return self.segments[bisect_right(self.segments, position, key=_start) - 1]

    def _end(self, segment: _Segment) -> int:
        following = bisect_right(self.segments, segment.at, key=_start)
        return self.segments[following].at if following < len(self.segments) else len(self.text)


def fold(source: str, *, keep_case: bool = False) -> Folded:
    """Fold a text. Ours, in the spirit of Unicode's caseless compatibility matching (definition D146).

    Canonically equivalent texts fold to the same text, and so do texts that differ by case, by the amount and kind of
    white space, by typographic dashes and quotes, and by invisible characters. The fold of a cluster (a character
    with its combining marks) does not depend on its neighbours, white space aside, so that a slice of the source along
    clusters folds to the matching slice of the folded text. It takes any text, in time linear in the length.

    Args:
        keep_case: Whether to keep upper case and fold everything else.
    """
    if source.isascii():
        text = source.translate(_ASCII_CASED if keep_case else _ASCII)
        if "  " not in text:
            return Folded(source, text)
    texts: list[str] = []
    segments: list[_Segment] = []
    at = 0
    for piece in _pieces(source, keep_case):
        if not piece.text or (piece.text == " " and texts and texts[-1][-1] == " "):
            continue
        texts.append(piece.text)
        _append(segments, piece, at)
        at += len(piece.text)
    return Folded(source, "".join(texts), tuple(segments))


def drop_invisible(text: str) -> str:
    """Return the text without zero-width characters, soft hyphens, direction marks and the like (`INVISIBLE`)."""
    return text if text.isascii() else text.translate(_DROP)


def _start(segment: _Segment) -> int:
    return segment.at


def _append(segments: list[_Segment], piece: _Piece, at: int) -> None:
    if segments and piece.linear and segments[-1].linear and segments[-1].end == piece.begin:
        segments[-1] = _Segment(segments[-1].at, segments[-1].begin, piece.end, True)
    else:
        segments.append(_Segment(at, piece.begin, piece.end, piece.linear))


def _pieces(source: str, keep_case: bool) -> Iterator[_Piece]:
    cursor = 0
    for foreign in _FOREIGN.finditer(source):
        # The character before may carry a combining mark, so it is part of the stretch.
        begin = max(cursor, foreign.start() - 1)
        yield from _ascii_pieces(source[cursor:begin], cursor, keep_case)
        cursor = begin
        for cluster in _clusters(source[begin : foreign.end()]):
            folded = _fold_cluster(cluster, keep_case)
            yield _Piece(cursor, cursor + len(cluster), folded, len(cluster) == len(folded) == 1)
            cursor += len(cluster)
    yield from _ascii_pieces(source[cursor:], cursor, keep_case)


def _ascii_pieces(part: str, begin: int, keep_case: bool) -> Iterator[_Piece]:
    folded = part.translate(_ASCII_CASED if keep_case else _ASCII)
    if "  " not in folded:
        yield _Piece(begin, begin + len(folded), folded, True)
        return
    for cut in _CUT.finditer(folded):
        yield _Piece(begin + cut.start(), begin + cut.end(), cut.group(), True)


def _clusters(run: str) -> Iterator[str]:
    start = 0
    for at in range(1, len(run)):
        if not _continues(run[at]) or run[at - 1].isspace() or at - start == _LONGEST_CLUSTER:
            yield run[start:at]
            start = at
    yield run[start:]


@lru_cache(maxsize=8192)
def _continues(character: str) -> bool:
    """Whether a character belongs to the one before it: marks, vowels and finals of Hangul, invisible characters."""
    first = normalize("NFKD", character)[0]
    return character in INVISIBLE or category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"


@lru_cache(maxsize=8192)
def _fold_cluster(cluster: str, keep_case: bool) -> str:
    visible = normalize("NFC", cluster.translate(_DROP)).translate(PLAIN)
    if visible.isspace():
        return " "
    if not visible or _is_left_alone(visible[0]):
        return visible
    compatible = normalize("NFKC", visible)
    return (compatible if keep_case else normalize("NFKC", compatible.casefold())).translate(PLAIN)


def _is_left_alone(character: str) -> bool:
    """Whether a compatibility form would read as something else next to other characters.

    Superscripts, subscripts, fractions, other numbers that are not digits, signs with a digit ("㎡" is not "m2"),
    and accents that stand alone (they would bring a space with them).
    """
    if category(character) == "No" or decomposition(character).startswith(("<super>", "<sub>", "<fraction>")):
        return True
    compatible = normalize("NFKC", character)
    return compatible[0] == " " or (not character.isdecimal() and any(map(str.isdecimal, compatible)))
