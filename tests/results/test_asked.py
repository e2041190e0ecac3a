"""A consultation on the page: by whom, what it took, and every field as text or table."""

from typing import Any

import pytest

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.report.consultation import consultation


def asked(**changes: Any) -> dict[str, Any]:
    return consultation(Consultation("p", "q", "judge", **{"outcome": "ok", **changes}))


@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({}, "heuristic role, no LM"),
        ({"recorded": True, "asked": "m"}, "recorded"),
        ({"asked": "m"}, "m"),
        ({"asked": "m", "served": "m"}, "m"),
        ({"asked": "m", "served": "n"}, "m, answered by n"),
    ],
    ids=["heuristic", "recorded", "asked", "served", "another"],
)
def test_it_is_said_who_answered(changes: dict[str, Any], by: str) -> None:
    assert asked(**changes)["by"] == by


def test_it_is_said_what_it_took() -> None:
    amounts = {"calls": 2, "cached": 1, "attempt": 3, "seconds": 1.256, "prompt_tokens": 1_200, "completion_tokens": 0}
    assert asked(**amounts, cost=0.00125)["took"] == [
        *("2 LM calls", "1 from the cache", "attempt 3", "1.26 s", "1,200 tokens in", "0 tokens out", "0.0013 dollars"),
    ]
    assert asked(calls=1)["took"] == ["1 LM call"]


def test_fields_are_text_and_lists_of_objects_are_tables() -> None:
    steps = [{"expression": "1 + 1", "value": "2"}, {"value": 0.333333333, "note": None, "more": {"a": [1]}}]
    found = asked(content={"preferred": 2, "judge_rationale": "because", "steps": steps, "none": [], "mixed": [1, {}]})
    assert found["fields"] == [["preferred", "2"], ["judge_rationale", "because"], ["none", "[]"], ["mixed", "[1, {}]"]]
    (table,) = found["tables"]
    assert table["columns"] == ["expression", "value", "note", "more"]
    assert table["rows"] == [["1 + 1", "2", "—", "—"], ["—", "0.3333", "—", '{"a": [1]}']]


def test_what_is_long_is_cut_with_a_count() -> None:
    rows = [{f"column {i}": "x" * 1_000 for i in range(40)}] * 100
    found = asked(outcome="abstained", reason="r" * 5_000, content={"text": "t" * 5_000, "rows": rows})
    assert found["reason"].endswith("… (1,000 more characters)")
    assert found["fields"][0][1].endswith("… (1,000 more characters)")
    (table,) = found["tables"]
    assert (len(table["columns"]), len(table["rows"]), table["more"]) == (16, 64, 36)
    assert table["rows"][0][0].endswith("… (700 more characters)")


def test_what_is_nested_beyond_measure_is_said_to_be() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert asked(content={"deep": deep})["fields"] == [["deep", "nested too deeply to show"]]
