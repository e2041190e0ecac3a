"""Certificates for retrieval: does an answer occur verbatim in the evidence, and where (Eq. 3, read with care).

A certificate states only that the answer occurs: "not Paris" certifies "Paris", and so does a passage that is wrong.
It is neither entailment nor a score. For arithmetic see `eldgr_dspy.rule.derivations`. Three policies:

    substring   the paper's letter: the characters of the answer are somewhere in a title or a text; two-valued.
    token       an occurrence of the answer's class, in the answer's case.
    folded      an occurrence of the answer's class; the default.

An occurrence is a span of the evidence that votes with the answer (`eldgr_dspy.answer_types.answers.answer_class`), and
so does the whole around it (`eldgr_dspy.matching.wholes`): "42" is not in "1942" or "42.5", nor "C" in "C++". It
crosses no sentence end, no semicolon, no blank line and no single bracket of a pair. Under `token` and `folded` the
certificate of a yes/no answer is inapplicable: neither certified nor uncertified. Title and text of each passage are
searched separately, so that an occurrence never spans the two.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal
from unicodedata import name

from eldgr_dspy.base.structured import Structure, text_of_leaf
from eldgr_dspy.derivation.amounts import quantity_key, spellings_of
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.matching.occurrences import FUNCTION_WORDS, STOP_WORDS, Letter, Source, Target, letters_of
from eldgr_dspy.matching.text_keys import POLAR, read_answer, short_class, text_key
from eldgr_dspy.text.folding import BIDI_CONTROLS
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import POLICIES, Policy

LONGEST_ANSWER = 2_000
"""Characters; a longer answer is uncertified under `token` and `folded`: with this bound the search is linear."""

Field = Literal["text", "title"]
Level = Literal["exact", "folded"]
_FIELDS: tuple[Field, ...] = ("text", "title")
_CONFUSABLE = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE"})


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of evidence; the title may be empty."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Witness:
    """Where a certified answer occurs in the original evidence.

    `text` is `source[start:end]` where `source` is that `field` of passage number `passage` (from 0), and `sha256` is
    the hash of that field. `level` is `exact` where the slice is the stripped answer, and `folded` where it is another
    spelling. `flags` warn without changing the rule: `short` (one or two characters), `stopword`, `in_question` (the
    question has it too).
    """

    passage: int
    field: Field
    start: int
    end: int
    text: str
    level: Level
    flags: tuple[str, ...]
    sha256: str

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {**{slot: getattr(self, slot) for slot in Witness.__slots__}, "flags": [*self.flags]}


@dataclass(frozen=True, slots=True)
class Certificate:
    """The value of c(a, E): True, False, or None where the certificate does not apply; and why, in words."""

    certified: bool | None
    reason: str
    witness: Witness | None = None


def is_as_written(certificate: Certificate) -> bool:
    """Return whether a certificate is of an answer exactly as spelled; also True without a witness."""
    return certificate.witness is None or certificate.witness.level != "folded"


_EMPTY = Certificate(False, "empty answer")
_LONG = Certificate(False, f"the answer is longer than {LONGEST_ANSWER:,} characters")
_BIDI = Certificate(False, "the answer holds a bidirectional control character")
_SYMBOLS = Certificate(False, "the answer has no letter and no digit")
_POLAR = Certificate(None, "the answer is a yes or no, which an occurrence does not support")
_NO_EVIDENCE = Certificate(False, "no evidence")
_OCCURS = {"exact": "occurs in the evidence as written", "folded": "occurs in the evidence after folding"}


class Evidence:
    """The passages of one question under one policy; each is folded at most once, when an answer first needs it.

    The witness is the first occurrence that is the answer as it is written, else the first occurrence, in the first
    passage that has one, its text before its title.

    Raises:
        ArgumentError: The policy is not one of the three.
    """

    def __init__(self, passages: Sequence[Passage], policy: Policy = "folded") -> None:
        if policy not in POLICIES:
            raise ArgumentError(f"policy must be one of {', '.join(POLICIES)}; got {policy!r}.")
        self.passages = tuple(passages)
        self.policy: Policy = policy
        self._sources: list[Source] = []
        self._question = self._source("")

    def certify(self, answer: str | None, question: str = "") -> Certificate:
        """Return the certificate of an answer, which may be any text. The question only sets the flag `in_question`."""
        if isinstance(answer, Structure):
            return self._of_leaves([text_of_leaf(leaf) for leaf in answer.leaves()])
        text = "" if answer is None else answer.strip()
        letter: Target | Certificate = Target(text, text) if text else _EMPTY
        target = letter if self.policy == "substring" else _target_of(text, self.policy == "token")
        if isinstance(target, Certificate):
            return target
        for number, source in enumerate(self._each_source()):
            if target.answer in source.text and (span := source.exact(target)):
                return self._certificate(number, span, target, question)
        for number, source in enumerate(self._sources):
            if source.may_hold(target) and (span := source.first(target)):
                return self._certificate(number, span, target, question)
        if not any(source.text.strip() for source in self._sources):
            return _NO_EVIDENCE
        return Certificate(False, f"does not occur in the evidence{_remark(target)}")

    def _of_leaves(self, leaves: Sequence[str | None]) -> Certificate:
        """The certificate of a list or an object: of all its leaves. None applies to a truth value or to null."""
        marks = [None if leaf is None else self.certify(leaf).certified for leaf in leaves]
        if not marks:
            return Certificate(False, "the list or object is empty")
        if False in marks:
            return Certificate(False, f"{marks.count(False)} of {len(marks)} values do not occur in the evidence")
        if None in marks:
            return Certificate(None, "a value is a yes, a no or null, which an occurrence does not support")
        return Certificate(True, "every value occurs in the evidence")

    def _each_source(self) -> Iterator[Source]:
        yield from self._sources
        for number in range(len(self._sources), 2 * len(self.passages)):
            passage, is_title = self.passages[number // 2], number % 2 == 1
            self._sources.append(self._source(passage.title if is_title else passage.text, is_title))
            yield self._sources[-1]

    def _source(self, text: str, is_title: bool = False) -> Source:
        return Letter(text) if self.policy == "substring" else Source(text, self.policy == "token", is_title)

    def _in_question(self, target: Target, question: str) -> bool:
        if self._question.text != question:  # several answers to one question are certified
            self._question = self._source(question)
        return self._question.first(target) is not None

    def _certificate(self, number: int, span: tuple[int, int], target: Target, question: str) -> Certificate:
        flags = {
            "short": len(target.key) <= 2,
            "stopword": target.key.casefold() in STOP_WORDS | POLAR,
            "in_question": bool(question) and self._in_question(target, question),
        }
        source = self._sources[number].text
        text = source[slice(*span)]
        level: Level = "exact" if text == target.answer else "folded"
        names = tuple(flag for flag, is_raised in flags.items() if is_raised)
        witness = Witness(number // 2, _FIELDS[number % 2], *span, text, level, names, _digest(source))
        return Certificate(True, _OCCURS[level], witness)


def certify(
    answer: str | None, passages: Sequence[Passage], policy: Policy = "folded", question: str = ""
) -> Certificate:
    """Return the certificate of one answer; for several answers ask one `Evidence`, which folds its passages once."""
    return Evidence(passages, policy).certify(answer, question)


def holds(witness: Witness, passages: Sequence[Passage]) -> bool:
    """Return whether a witness still holds: its passage exists, is unchanged, and has that slice at that place."""
    if not 0 <= witness.passage < len(passages) or not 0 <= witness.start < witness.end:
        return False
    passage = passages[witness.passage]
    source = passage.text if witness.field == "text" else passage.title
    return _digest(source) == witness.sha256 and source[witness.start : witness.end] == witness.text


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


@lru_cache(maxsize=4096)
def _target_of(answer: str, keep_case: bool) -> Target | Certificate:
    """Return what to look for, or the certificate of an answer that is settled without the evidence."""
    plain = strip_answer(answer)
    if not BIDI_CONTROLS.isdisjoint(plain):
        return _BIDI
    class_ = short_class(answer)
    if class_ is None:
        return _EMPTY
    if len(class_.key) > LONGEST_ANSWER:
        return _LONG
    if class_.key in POLAR:
        return _POLAR
    if not any(map(str.isalnum, class_.key)):
        return _SYMBOLS
    key = quantity_key(text_key(read_answer(answer, keep_case=True))) if keep_case else class_.key
    return Target(plain, key, tuple(map(letters_of, spellings_of(key))))


def _remark(target: Target) -> str:
    if target.key.casefold() in FUNCTION_WORDS:
        return " as a name: a function word counts in capitals, with dots, or after 'the' with a capital"
    for word in [] if target.answer.isascii() else re.findall(r"[^\W\d_]+", target.answer):
        scripts = {name(letter, "").partition(" ")[0] for letter in word} & _CONFUSABLE
        if len(scripts) > 1:
            return f"; mixed script: {word!r} has letters that are {' and '.join(sorted(map(str.title, scripts)))}"
    return ""
