"""Answer types of a user's own, as tests name them: `tests.dates:YEARS` and `tests.dates:Sums`."""

import re
from collections.abc import Sequence
from typing import ClassVar

from eldgr_dspy.answer_types import BUILT_IN
from eldgr_dspy.answer_types.base import AnswerType, Way
from eldgr_dspy.matching.text_keys import AnswerClass

_YEAR = re.compile(r"[0-9]{4}")


class Years(AnswerType):
    """A year: the first four digits in a row."""

    way: ClassVar[Way] = "evidence"
    scores = ("accuracy",)

    def read(self, answer: str) -> AnswerClass | None:
        """Return the class of the year."""
        match = _YEAR.search(answer)
        return AnswerClass(match[0]) if match else None

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


TYPE_LIST = ", ".join(map(repr, BUILT_IN))
"""The built-in types, as messages list them."""

YEARS = Years()
NOT_A_TYPE = "years"
