"""Fold texts so that they can be compared, and find the original characters of a folded part.

Case, white space, typographic dashes and quotes, compatibility forms and invisible characters are folded; superscripts
and fractions are left alone, since "10²" is not "102" and "1½" is not "11/2". It is not the answer normalisation of
HotpotQA (`eldgr_dspy.answer_types.answers`): no punctuation and no article is dropped here.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
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

_QUOTES = {"'": "`´ʹʻʼʾʿ‘’‚‛‹›′＇", '"': "«»“”„‟″〝〞＂"}
PLAIN = {ord(variant): plain for plain, variants in _QUOTES.items() for variant in variants}
PLAIN |= {ord(dash): "-" for dash in DASHES}
"""Typographic quotes and dashes, each with its ASCII form."""

_DROP = dict.fromkeys(_INVISIBLE)
# Unicode's stream-safe format allows 30 marks in a row; more are cut, since ordering them takes quadratic time.
_LONGEST_CLUSTER = 40
_ASCII_WITH_CASE = {code: " " if chr(code).isspace() else PLAIN.get(code, chr(code)) for code in range(128)}
_ASCII = {code: character.lower() for code, character in _ASCII_WITH_CASE.items()}

# A stretch that is not ASCII, and the white space after it, so that the rest does not start with white space.
_FOREIGN = re.compile(r"[^\x00-\x7f]++\s*+")
# ASCII, cut after the first white space of each run, so that all further white space is a piece of its own.
_CUT = re.compile(r"(?>(?:[^\t-\r\x1c-\x20]++[\t-\r\x1c-\x20]?)+)|[\t-\r\x1c-\x20]")
_Piece = tuple[int, int, int, int, bool]  # start and end in the folded text, then in the source; may it be cut?


@dataclass(frozen=True, slots=True)
class Folded:
    """A text `source` with its folded form `text`; `pieces` maps their parts, empty if both have the same offsets."""

    source: str
    text: str
    pieces: Sequence[_Piece] = ()

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Return where the folded characters `start` to `end` (not empty) are in the source, as offsets of a slice.

        None if either edge falls inside what one original character folds to ("ﬁ" has no half). Invisible characters at
        the end of the slice are left out of it.
        """
        if not self.pieces:
            return start, end
        at, _, begin, _, cut_first = self._piece(start)
        _, until, _, finish, cut_last = self._piece(end - 1)
        if not (cut_first or start == at) or not (cut_last or end == until):
            return None
        begin, finish = begin + start - at, finish + end - until
        while self.source[finish - 1] in INVISIBLE:
            finish -= 1
        return begin, finish

    def _piece(self, at: int) -> _Piece:
        return self.pieces[bisect_right(self.pieces, (at, len(self.text) + 1)) - 1]


def fold(source: str, *, keep_case: bool = False) -> Folded:
    """Fold a text in linear time, in the spirit of Unicode's caseless compatibility matching (definition D146)."""
    # Canonically equivalent texts fold to the same text. A cluster (a character with its combining marks) folds without
    # regard to its neighbours, white space aside, so a slice along clusters folds to a slice of the folded text.
    ascii_form = _ASCII_WITH_CASE if keep_case else _ASCII
    if source.isascii():
        text = source.translate(ascii_form)
        if "  " not in text:
            return Folded(source, text)
    texts, pieces, at = list[str](), list[_Piece](), 0
    for begin, end in _pieces(source):
        piece = source[begin:end]
        plain = piece.isascii()
        text = piece.translate(ascii_form) if plain else _fold_cluster(piece, keep_case)
        if text and not (text == " " and texts and texts[-1][-1] == " "):
            texts.append(text)
            pieces.append((at, at + len(text), begin, end, plain))
            at += len(text)
    return Folded(source, "".join(texts), pieces)


def drop_invisible(text: str) -> str:
    """Return the text without zero-width characters, soft hyphens, direction marks and the like (`INVISIBLE`)."""
    return text if text.isascii() else text.translate(_DROP)


def _pieces(source: str) -> Iterator[tuple[int, int]]:
    cursor = 0
    for foreign in _FOREIGN.finditer(source):
        # The character before may carry a combining mark, so it is part of the stretch.
        start = max(cursor, foreign.start() - 1)
        yield from (cut.span() for cut in _CUT.finditer(source, cursor, start))
        cursor = foreign.end()
        for at in range(start + 1, cursor):
            if not _continues(source[at]) or source[at - 1].isspace() or at - start == _LONGEST_CLUSTER:
                yield start, at
                start = at
        yield start, cursor
    yield from (cut.span() for cut in _CUT.finditer(source, cursor))


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
    """Whether a compatibility form would read as something else next to other characters: "㎡" is not "m2"."""
    if category(character) == "No" or decomposition(character).startswith(("<super>", "<sub>", "<fraction>")):
        return True
    compatible = normalize("NFKC", character)
    return compatible[0] == " " or (not character.isdecimal() and any(map(str.isdecimal, compatible)))
