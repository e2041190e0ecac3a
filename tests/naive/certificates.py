"""Whether an answer occurs in the evidence, the obvious way: every place is tried, and looked at from both sides."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

from eldgr_dspy.certificates import Passage
from tests.naive.answers import BIDI, FRACTIONS, invisible, is_polar

DASHES = "-‐‑‒–—―−﹘﹣－"
QUOTES = {"'": "`´ʹʼ‘’‚‛‹›′＇", '"': "«»“”„‟″〝〞＂"}
LONGEST = 2_000

SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "MYANMAR", "KHMER")
MARKS = ".,/:'^·÷٫٬⁄∕，．"
CURRENCY = r"(?:[A-Za-z]{0,3}\\?(?![¢])[$¢£¤¥֏؋฿៛₠-\u20cf﷼﹩＄￠￡￥￦]\s?)?"

DIGIT = rf"[\d{''.join(FRACTIONS)}⅟]"
JOINED = [
    re.compile(pattern)
    for pattern in (
        rf"\d[{re.escape(MARKS)}]\d",  # 3.14, 1,042, 1/2, 10:30
        rf"\w\^[{DASHES}]?\w",  # 10^2
        rf"\d[eE][{DASHES}+]\d",  # 5e-3
        rf"{DIGIT}\.?\s{{0,9}}\\?[%؉؊٪‰‱﹪％]",  # 5%, 5 %
        r"\d\s?/\s?\d",  # 1 / 2
        rf"\d\s?[{''.join(FRACTIONS)}⅟]",  # 3 ½
        r"\d[⁺⁻₊₋][0-9²³¹⁰-⁹₀-₉]",
        r"(?<![\w.,/:])\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3}|\s\d{1,3}/\d{1,3})(?!\d)",  # 5 000, 3 1/2
    )
]
SIGNED = re.compile(rf"(?:[{DASHES}]{CURRENCY}\.?|\.){DIGIT}")


def clusters(text: str) -> list[str]:
    """Each character with the marks and the invisible characters behind it."""
    out: list[str] = []
    for character in text:
        first = unicodedata.normalize("NFKD", character)[0]
        goes_on = invisible(character) or unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"
        if out and goes_on and not out[-1][-1].isspace() and len(out[-1]) < 40:
            out[-1] += character
        else:
            out.append(character)
    return out


def fold_cluster(cluster: str) -> str:
    seen = unicodedata.normalize("NFC", "".join(character for character in cluster if not invisible(character)))
    if seen.isspace():
        return " "
    seen = plain_marks(seen)
    if not seen or left_alone(seen[0]):
        return seen
    return plain_marks(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold()))


def plain_marks(text: str) -> str:
    for dash in DASHES:
        text = text.replace(dash, "-")
    for quote, variants in QUOTES.items():
        for variant in variants:
            text = text.replace(variant, quote)
    return text


def left_alone(character: str) -> bool:
    """Superscripts, subscripts, fractions, signs that hold a digit, and accents that stand alone."""
    compatible = unicodedata.normalize("NFKC", character)
    kind = unicodedata.decomposition(character).split(" ")[0]
    holds_digit = any(c.isdecimal() for c in compatible) and not character.isdecimal()
    accent = compatible[0] == " "
    return (
        unicodedata.category(character) == "No" or kind in ("<super>", "<sub>", "<fraction>") or holds_digit or accent
    )


Piece = tuple[str, int]
"""What one cluster folds to, and where the cluster stands in the source."""


@cache  # a pool asks for the same passages many times
def folded(text: str) -> list[Piece]:
    """The folded text in pieces; of white space in a row the first alone."""
    out: list[Piece] = []
    at = 0
    for cluster in clusters(text):
        piece = fold_cluster(cluster)
        if piece and not (piece == " " and out and out[-1][0] == " "):
            out.append((piece, at))
        at += len(cluster)
    return out


def written(pieces: list[Piece]) -> str:
    return "".join(piece for piece, _ in pieces)


Place = tuple[int, str, int, int]
"""Passage, field, start and end."""


def occurs(answer: str | None, passages: Sequence[Passage], policy: str) -> bool | None:
    """The certificate of an answer: True, False, or None where it does not apply."""
    given = (answer or "").strip()
    if policy != "substring" and is_polar(needle_of(given, policy)) and not refused(given):
        return None
    return occurrence(given, passages, policy) is not None


def refused(given: str) -> bool:
    return len(given) > LONGEST or any(character in BIDI for character in given)


def needle_of(given: str, policy: str) -> str:
    return written(folded(given)).strip() if policy == "folded" else given


def occurrence(given: str, passages: Sequence[Passage], policy: str) -> Place | None:
    """The first occurrence in the first passage that has one, its text before its title."""
    needle = needle_of(given, policy)
    if not needle or (policy != "substring" and (refused(given) or not any(c.isalnum() for c in needle))):
        return None
    for number, passage in enumerate(passages):
        for field, source in (("text", passage.text), ("title", passage.title)):
            found = plainly(needle, source) if policy == "substring" else at_boundaries(needle, source, policy)
            if found is not None:
                return number, field, *found
    return None


def plainly(needle: str, source: str) -> tuple[int, int] | None:
    places = [at for at in range(len(source)) if source.startswith(needle, at)]
    return (places[0], places[0] + len(needle)) if places else None


def at_boundaries(needle: str, source: str, policy: str) -> tuple[int, int] | None:
    """Where a text first occurs at boundaries of words and numbers, as a slice of the source."""
    pieces = folded(source) if policy == "folded" else [(character, at) for at, character in enumerate(source)]
    text = written(pieces)
    if needle not in text:
        return None
    edges = edges_of(pieces) | {len(text): len(source)}
    inside = places_inside(text)
    for at in range(len(text)):
        end = at + len(needle)
        bounded = text.startswith(needle, at) and not {at, end} & inside and {at, end} <= set(edges)
        if bounded and not joins(text, at) and not behind_minus(source, edges[at]):
            return edges[at], without_invisible_end(source, edges[end]) if policy == "folded" else end
    return None


def edges_of(pieces: list[Piece]) -> dict[int, int]:
    """Where each cluster begins, in the folded text and in the source."""
    out: dict[int, int] = {}
    length = 0
    for piece, at in pieces:
        out[length] = at
        length += len(piece)
    return out


def without_invisible_end(source: str, end: int) -> int:
    while invisible(source[end - 1]):
        end -= 1
    return end


@cache  # as above
def places_inside(text: str) -> set[int]:
    """The places where no word or number starts or ends; what cannot be seen is looked through."""
    seen = "".join(character for character in text if not unseen(character))
    within = {at for at in range(1, len(seen)) if in_word(seen, at)}
    for start in range(len(seen)):
        for pattern in JOINED:
            found = pattern.match(seen, start)
            within |= set(range(start + 1, found.end())) if found else set()
        found = SIGNED.match(seen, start)
        within |= set(range(start + 1, found.end())) if found and is_sign(seen, start) else set()
    inside: set[int] = set()
    before = 0
    for at, character in enumerate(text):
        if before in within:
            inside.add(at)
        before += not unseen(character)
    return inside


def unseen(character: str) -> bool:
    return invisible(character) or character in BIDI


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_" or is_mark(character)


def is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def in_word(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if is_mark(after):
        return True
    if not (is_word(before) and is_word(after)):
        return False
    return (before.isnumeric() and after.isnumeric()) or not (spaceless(before) or spaceless(after))


def spaceless(character: str) -> bool:
    """Whether a letter is of a script that is written without spaces."""
    return not character.isdigit() and unicodedata.name(character, "").startswith(SPACELESS)


def is_sign(text: str, at: int) -> bool:
    """Whether a hyphen or a point belongs to the number behind it: not to what stands before, nor to another hyphen."""
    before = text[at - 1 : at]
    return not before or not (is_word(before) or before in ")]}.%°" or (before in DASHES and text[at] in DASHES))


def joins(text: str, at: int) -> bool:
    """Whether an occurrence starts with a hyphen that joins two words or numbers."""
    return text[at] in DASHES and SIGNED.match(text, at) is not None and not is_sign(text, at)


def behind_minus(source: str, at: int) -> bool:
    """Whether a number has a minus (U+2212, no hyphen) set apart by a space, and is not being subtracted."""
    number = re.match(rf"{CURRENCY}\.?{DIGIT}", source[at:])
    return number is not None and re.search(rf"(?<!{DIGIT})(?<!{DIGIT}\s)−\s{CURRENCY}\Z", source[:at]) is not None
