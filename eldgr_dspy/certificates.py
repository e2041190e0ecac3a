"""Certificates for retrieval: does an answer occur verbatim in the evidence, and where (Eq. 3, read with care).

A certificate states an occurrence and nothing more: "not Paris" certifies "Paris", and so does a passage that is wrong.
It is not entailment, not a score, and says nothing of arithmetic (`eldgr_dspy.derivations`). Three policies:

    substring   the paper's letter: the characters of the answer stand somewhere in a title or a text; two-valued.
    token       the same at token boundaries, case kept: "art" is not in "party", "42" is not in "1942" or "42.5".
    folded      the same after both sides are folded (`eldgr_dspy.folding`); the default.

Under `token` and `folded` the certificate of a yes/no answer is inapplicable: neither certified nor uncertified. Title
and text of each passage are searched apart, so that nothing is certified across a seam.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Literal
from unicodedata import category, name

from eldgr_dspy.answers import is_polar
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.folding import BIDI_CONTROLS, DASHES, INVISIBLE, Folded, fold
from eldgr_dspy.words import POLICIES, Policy

LONGEST_ANSWER = 2_000
"""Characters; a longer answer is uncertified under `token` and `folded`: with this bound the search is linear."""

STOPWORDS = frozenset(
    "a all an and any are as at be both but by can did do does for from had has have he her his i if in is it its many"
    " more most much my no none nor not of on one or our she so some such than that the their them then there they this"
    " those to was we were what when where which who why will with yes you".split()
)

Field = Literal["text", "title"]
_FIELDS: tuple[Field, ...] = ("text", "title")

_UNSEEN = INVISIBLE | BIDI_CONTROLS
_CONFUSABLE = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE"})
# Between digits these go on with a number; a slash or a colon does too, since "1/2" says neither 1 nor 2.
_POINTS = ".,/:'^\u00b7\u00f7\u066b\u066c\u2044\u2215\uff0c\uff0e"
# Han, kana, Thai, Lao, Myanmar and Khmer: written without spaces, so that a word may end beside any of their letters.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_IS_SPACELESS = re.compile(rf"(?!\d)[{_SPACELESS}]").match
# A stretch in which no token starts but at its beginning.
_STRETCH = re.compile(rf"(?:[^\W{_SPACELESS}]++|\d++|(?<=\d)[{_POINTS}](?=\d))++")

_HYPHENS = "\\-" + "".join(sorted(DASHES - {"-"}))
_SIGNS = "$\u00a2-\u00a5\u058f\u060b\u0e3f\u17db\u20a0-\u20cf\ufdfc\ufe69\uff04\uffe0\uffe1\uffe5\uffe6"
_CURRENCY = rf"(?:[A-Za-z]{{0,3}}\\?[{_SIGNS}]\s?)?"
# A fraction in one character begins a number, and ends one, as a digit does.
_FRACTIONS = "\u00bc-\u00be\u2150-\u215f\u2189"
_DIGIT = rf"[\d{_FRACTIONS}]"
_SPACE = "[ \u00a0\u2009\u202f]"  # within a number; a tab or a line break ends it
_PERCENT = "%\u0609\u060a\u066a\u2030\u2031\ufe6a\uff05"  # and per mille, per ten thousand
# What one number goes on across, from the character before to the one behind: a decimal point, an exponent, percent
# ("5 %"), a fraction of small numbers ("1 / 2", and "10 / 11", which may be two numbers; "1989 / 1990" is two), a space
# before a fraction ("3 1/2") or before a group of three digits ("5 000").
_JOINT = re.compile(
    rf"""\d[{_POINTS}]\d | \w\^[{_HYPHENS}]?\w | \d[eE][+{_HYPHENS}]\d | {_DIGIT}\.?\\?[{_PERCENT}]
    | {_DIGIT}{_SPACE}{{1,9}}\\?[{_PERCENT}](?!\w)
    | \d\s?[{_FRACTIONS}] | (?<!\d)\d{{1,2}}{_SPACE}?/{_SPACE}?\d{{1,2}}(?!\d)
    | \d[\u207a\u207b\u208a\u208b][0-9\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]
    | (?<![\w.,/:])\d{{1,3}}(?:{_SPACE}\d{{3}}|\s\d{{1,3}}/\d{{1,3}})(?!\d)""",
    re.VERBOSE,
)
# A sign or a decimal point, and the first digit of its number.
_SIGNED = re.compile(rf"(?:[{_HYPHENS}]{_CURRENCY}\.?|\.){_DIGIT}")
_VALUE = re.compile(rf"{_CURRENCY}\.?{_DIGIT}")
_MINUS_SET_APART = re.compile(rf"(?<!{_DIGIT})(?<!{_DIGIT}\s)\u2212\s{_CURRENCY}\Z")
_MAY_JOIN = re.compile(rf"{_DIGIT}|\^").search
# A hyphen or a full stop behind one of these belongs to it.
_CLOSING = frozenset(")]}.%\u00b0")
# No joint reaches further than this to either side.
_REACH = 12


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of evidence; the title may be empty."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Witness:
    """Where a certified answer stands in the original evidence.

    `text` is `source[start:end]` where `source` is that `field` of passage number `passage` (from 0), and `sha256` is
    the hash of that field. `level` is `exact` where the slice is the answer as given, else `folded`. `flags` warn
    without changing the rule: `short` (one or two characters), `stopword`, `in_question` (the answer stands there too).
    """

    passage: int
    field: Field
    start: int
    end: int
    text: str
    level: Literal["exact", "folded"]
    flags: tuple[str, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """The value of c(a, E): True, False, or None where the certificate does not apply; and why, in words."""

    certified: bool | None
    reason: str
    witness: Witness | None = None


_EMPTY = Certificate(False, "empty answer")
_LONG = Certificate(False, f"the answer is longer than {LONGEST_ANSWER:,} characters")
_BIDI = Certificate(False, "the answer holds a bidirectional control character")
_SYMBOLS = Certificate(False, "the answer has no letter and no digit")
_POLAR = Certificate(None, "the answer is a yes or no, to which an occurrence says nothing")
_NO_EVIDENCE = Certificate(False, "no evidence")
_OCCURS = {"exact": "occurs in the evidence as written", "folded": "occurs in the evidence after folding"}


class Evidence:
    """The passages of one question under one policy; each is folded at most once, when an answer first needs it.

    Args:
        passages: the evidence, in order. The witness is the first occurrence in the first passage that has one, its
            text before its title.
        policy: `substring`, `token` or `folded`.

    Raises:
        ArgumentError: the policy is none of the three.
    """

    def __init__(self, passages: Sequence[Passage], policy: Policy = "folded") -> None:
        if policy not in POLICIES:
            raise ArgumentError(f"policy={policy!r} is not a certificate policy; use one of {', '.join(POLICIES)}.")
        self.passages = tuple(passages)
        self.policy: Policy = policy
        self._read: dict[tuple[int, Field], Folded] = {}

    def certify(self, answer: str | None, question: str = "") -> Certificate:
        """Return the certificate of an answer; no text raises. The question only decides the flag `in_question`."""
        given = "" if answer is None else answer.strip()
        needle = _needle(given, self.policy)
        if isinstance(needle, Certificate):
            return needle
        for number in range(len(self.passages)):
            for field in _FIELDS:
                place = self._find(needle, self._source(number, field))
                if place is not None:
                    witness = self._witness(number, field, place, given, self._flags(needle, question))
                    return Certificate(True, _OCCURS[witness.level], witness)
        if not any(passage.text.strip() or passage.title.strip() for passage in self.passages):
            return _NO_EVIDENCE
        return Certificate(False, f"does not occur in the evidence{_mixed_script(given)}")

    def _source(self, number: int, field: Field) -> Folded:
        known = self._read.get((number, field))
        if known is None:
            passage = self.passages[number]
            known = self._read[number, field] = _read(passage.text if field == "text" else passage.title, self.policy)
        return known

    def _find(self, needle: str, source: Folded) -> tuple[int, int] | None:
        if self.policy == "substring":
            start = source.text.find(needle)
            return None if start < 0 else (start, start + len(needle))
        return _find_token(needle, source)

    def _flags(self, needle: str, question: str) -> tuple[str, ...]:
        flags = {
            "short": len(needle) <= 2,
            "stopword": needle.casefold() in STOPWORDS,
            "in_question": self._find(needle, _read(question, self.policy)) is not None,
        }
        return tuple(flag for flag, raised in flags.items() if raised)

    def _witness(
        self, number: int, field: Field, place: tuple[int, int], given: str, flags: tuple[str, ...]
    ) -> Witness:
        source = self._source(number, field).source
        text = source[place[0] : place[1]]
        return Witness(number, field, *place, text, "exact" if text == given else "folded", flags, _digest(source))


def certify(
    answer: str | None, passages: Sequence[Passage], policy: Policy = "folded", question: str = ""
) -> Certificate:
    """Return the certificate of one answer; for several answers ask one `Evidence`, which folds its passages once."""
    return Evidence(passages, policy).certify(answer, question)


def holds(witness: Witness, passages: Sequence[Passage]) -> bool:
    """Return whether a witness still stands: its passage exists, is unchanged, and has that slice at that place."""
    if not 0 <= witness.passage < len(passages) or not 0 <= witness.start < witness.end:
        return False
    passage = passages[witness.passage]
    source = passage.text if witness.field == "text" else passage.title
    return _digest(source) == witness.sha256 and source[witness.start : witness.end] == witness.text


def starts_token(text: str, at: int) -> bool:
    """Return whether a token may start at `at`: not inside a word or number, nor between a number and its sign.

    A hyphen that joins two words or numbers is no sign, and so no token starts with it.
    """
    return _is_edge(text, at) and (text[at] not in DASHES or not _SIGNED.match(text, at) or _is_sign(text, at))


def ends_token(text: str, end: int) -> bool:
    """Return whether a token may end at `end`: not inside a word or a number, nor before its exponent or percent."""
    return _is_edge(text, end)


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _read(text: str, policy: Policy) -> Folded:
    return fold(text) if policy == "folded" else Folded(text, text)


def _needle(given: str, policy: Policy) -> str | Certificate:
    """Return what to look for, or the certificate of an answer that needs no look at the evidence."""
    if not given:
        return _EMPTY
    if policy == "substring":
        return given
    if len(given) > LONGEST_ANSWER:
        return _LONG
    if not BIDI_CONTROLS.isdisjoint(given):
        return _BIDI
    needle = fold(given).text.strip() if policy == "folded" else given
    if not needle:
        return _EMPTY
    if is_polar(needle):
        return _POLAR
    return needle if any(map(str.isalnum, needle)) else _SYMBOLS


def _mixed_script(given: str) -> str:
    for word in re.findall(r"[^\W\d_]+", given):
        scripts = {name(letter, "").partition(" ")[0] for letter in word} & _CONFUSABLE
        if len(scripts) > 1:
            return f"; mixed script: {word!r} has letters that are {' and '.join(sorted(map(str.title, scripts)))}"
    return ""


def _find_token(needle: str, source: Folded) -> tuple[int, int] | None:
    """Return the place of the first occurrence at token boundaries, in the source; linear in the source.

    After a failure the search goes on behind the stretch of word or number that it failed in: no token starts within.
    """
    text = source.text
    at = text.find(needle)
    while at >= 0:
        end = at + len(needle)
        if starts_token(text, at) and ends_token(text, end):
            place = source.span(at, end)
            if place is not None and not _is_behind_minus(source.source, place[0]):
                return place
        stretch = _STRETCH.match(text, at)
        at = text.find(needle, stretch.end() if stretch else at + 1)
    return None


def _is_edge(text: str, at: int) -> bool:
    """Whether a token may start or end at `at`, seen from both sides of it; invisible characters are looked through."""
    left, right = text[max(0, at - _REACH) : at], text[at : at + _REACH]
    if not (left.isascii() and right.isascii()):
        left = _seen(text, range(at - 1, -1, -1))[::-1]
        right = _seen(text, range(at, len(text)))
    if not left or not right:
        return True
    before, after = left[-1], right[0]
    if _is_mark(after):
        return False
    if _is_word(before) and _is_word(after):
        return not (before.isnumeric() and after.isnumeric()) and bool(_IS_SPACELESS(before) or _IS_SPACELESS(after))
    window = left + right
    return not _MAY_JOIN(window) or not _is_inside_number(window, len(left))


def _seen(text: str, places: range) -> str:
    """The nearest visible characters at these places, as many as a joint may reach."""
    return "".join(islice((text[place] for place in places if text[place] not in _UNSEEN), _REACH))


def _is_inside_number(text: str, at: int) -> bool:
    """Whether `at` falls between two characters of one number; its sign and its currency sign belong to it."""
    for start in range(at):
        joint = _JOINT.match(text, start)
        if joint is not None and joint.end() > at:
            return True
        signed = _SIGNED.match(text, start)
        if signed is not None and signed.end() > at and _is_sign(text, start):
            return True
    return False


def _is_behind_minus(source: str, at: int) -> bool:
    """Whether a number at `at` has a minus (U+2212, no hyphen) set apart by a space, and is not being subtracted."""
    return bool(_VALUE.match(source, at) and _MINUS_SET_APART.search(source[max(0, at - _REACH) : at]))


def _is_sign(text: str, at: int) -> bool:
    """Whether the hyphen or the point at `at` may be a number's own."""
    return _opens(text, at) and not (text[at] in DASHES and text[at - 1 : at] in DASHES)


def _opens(text: str, at: int) -> bool:
    """Whether nothing that a hyphen or a full stop could belong to stands before `at`."""
    before = text[at - 1 : at]
    return not before or not (_is_word(before) or before in _CLOSING)


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return category(character)[0] == "M"


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_" or _is_mark(character)
