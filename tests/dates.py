"""Answer types of a user's own, as tests name them: `tests.dates:YEARS` and `tests.dates:Sums`."""

import re
from collections.abc import Sequence
from typing import ClassVar

from eldgr_dspy.answer_types import BUILT_IN
from eldgr_dspy.answer_types.base import AnswerType, Certifying, Way
from eldgr_dspy.certificates import Certificate, Evidence, Passage
from eldgr_dspy.text_keys import AnswerClass
from eldgr_dspy.words import Policy

_YEAR = re.compile(r"[0-9]{4}")


class _YearEvidence:
    """The passages of a question, as they certify years."""

    def __init__(self, passages: Sequence[Passage], policy: Policy) -> None:
        self.passages = tuple(passages)
        self._evidence = Evidence(passages, policy)

    def certify(self, answer: str | None, question: str = "") -> Certificate:
        """Return the certificate of the year of an answer."""
        found = _YEAR.search(answer or "")
        return self._evidence.certify(found and found[0], question)


class Years(AnswerType):
    """A year: the first four digits in a row."""

    way: ClassVar[Way] = "evidence"
    scores = ("accuracy",)

    def read(self, answer: str) -> AnswerClass | None:
        """Return the class of the year."""
        found = _YEAR.search(answer)
        return AnswerClass(found[0]) if found else None

    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        """Return the passages as they certify the year of an answer."""
        return _YearEvidence(passages, policy)

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether the year is that of a gold answer."""
        class_ = self.class_of(answer)
        return class_ is not None and class_ in [self.class_of(right) for right in gold]

    def examples(self) -> Sequence[str]:
        """Return years, and a text without one."""
        return ("1976", "in 1976", "1976.", "1984", "May 1984", "2001", "then")


class Sums(Years):
    """A year that is calculated."""

    way = "derivation"


LISTED = ", ".join(map(repr, BUILT_IN))
"""The built-in types, as messages list them."""

YEARS = Years()
NOT_A_TYPE = "years"
