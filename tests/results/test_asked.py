"""A consultation on the page: by whom, what it took, and every field as text or table."""

from typing import Any

import pytest

from eldgr_dspy.formats.rows import Row
from eldgr_dspy.report.question_tables import RunQuestion, question_tables
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.tables.table import Table


def asked(**changes: Any) -> list[Table]:
    """The tables of what a certificate's consultation says, which is always taken into account."""
    row = Row.model_validate({"id": "q", "question": "Q?", "task": "retrieval", "candidates": [{"answer": "a"}]})
    consultation = Consultation("p", "q", "certificate", **{"outcome": "ok", **changes})
    tables = [*question_tables(RunQuestion("p", row, None, [], {"certificate": consultation}))]
    return tables[2:-2]


@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({}, "no LM of DSPy's"),
        ({"recorded": True, "asked": "m"}, "recorded"),
        ({"asked": "m"}, "m"),
        ({"asked": "m", "served": "m"}, "m"),
        ({"asked": "m", "served": "n"}, "m, answered by n"),
    ],
    ids=["none", "recorded", "asked", "served", "another"],
)
def test_it_is_said_who_answered(changes: dict[str, Any], by: str) -> None:
    assert asked(**changes)[0].rows[0][2] == by


def test_it_is_said_what_it_took() -> None:
    amounts = {"calls": 2, "cached": 1, "attempt": 3, "seconds": 1.256, "prompt_tokens": 1_200, "completion_tokens": 0}
    took = "2 LM calls, 1 from the cache, attempt 3, 1.26 s, 1,200 tokens in, 0 tokens out, 0.0013 dollars"
    assert asked(**amounts, cost=0.00125)[0].rows[0][3] == took
    assert asked(calls=1)[0].rows[0][3] == "1 LM call"


def test_fields_are_text_and_lists_of_objects_are_tables() -> None:
    steps = [{"expression": "1 + 1", "value": "2"}, {"value": 0.333333333, "note": None, "more": {"a": [1]}}]
    result = asked(content={"preferred": 2, "judge_rationale": "because", "steps": steps, "none": [], "mixed": [1, {}]})
    reply = ("preferred: 2", "judge rationale: because", "none: []", "mixed: [1, {}]")
    assert result[0].notes == tuple(f"certificate, {one}" for one in reply)
    assert result[1].headers == ("", "expression", "value", "note", "more")
    assert result[1].rows == (("[0]", "1 + 1", "2", "—", "—"), ("[1]", "—", "0.3333", "—", '{"a": [1]}'))


def test_what_is_long_is_cut_with_a_count() -> None:
    rows = [{f"column {i}": "x" * 1_000 for i in range(40)}] * 100
    result = asked(outcome="abstained", reason="r" * 5_000, content={"text": "t" * 5_000, "rows": rows})
    assert [note.endswith("… (1,000 more characters)") for note in result[0].notes] == [True, True]
    assert (len(result[1].headers), len(result[1].rows), result[1].notes) == (17, 64, ("36 more rows.",))
    assert result[1].rows[0][1].endswith("… (700 more characters)")


def test_what_is_nested_beyond_measure_is_said_to_be() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert asked(content={"deep": deep})[0].notes == ("certificate, deep: nested too deeply to show",)
