"""A rule of the package decides as the naive one does."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Reply
from eldgr_dspy.rule.questions import Question, Settings
from tests.deciding import SILENT, decided
from tests.naive.naive_selectors import SELECTORS, Pool, ranking

_case = lru_cache(64)(Case)  # a real question is asked about once a judge, and its certificates stay as they are


def agree(question: Question, settings: Settings, rule: str, replies: Mapping[Any, Reply]) -> None:
    """Raise unless both ship the same for the same reason, and rank the same; the naive one is told all replies."""
    decision, replies_read = decided(_case(question, settings), {**SILENT, **replies}, rule)
    naive = SELECTORS[rule](Pool(question, settings, replies))
    assert (decision.answer, decision.branch, decision.reason) == naive
    assert decision.ranking == ranking(Pool(question, settings, replies_read))
