"""A deriver asked several times: which of its derivations counts, at the level `agreed` and below it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.repeated_deriver import RepeatedDeriver
from eldgr_dspy.programs.run.evaluation import evaluate
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, check_selector, scripted_lm
from tests.selecting import DERIVATION, PENS, select_acall, select_sync

OTHER = {
    "derivation_steps": [{"expression": "12 - 3", "value": "9"}],
    "derived_answer": "9",
    "consistency_check": "9 + 3 = 12",
}
FALSE = {**DERIVATION, "consistency_check": "36 / 12 = 4"}
AGREED: dict[str, Any] = {"derivation": "agreed", "answer": "number"}


def saying(*samples: Any) -> ScriptedLM:
    return scripted_lm(list(samples))


def derived(*samples: Any, **settings: Any) -> Any:
    with dspy.context(lm=saying(*samples)):
        return Selector(**{**AGREED, **settings})(**PENS)


@pytest.mark.parametrize(
    ("samples", "ships"),
    [
        ((DERIVATION, DERIVATION, DERIVATION), "36"),
        ((OTHER, DERIVATION, DERIVATION), "36"),
        ((DERIVATION, FALSE, "no JSON"), "35"),
        ((DERIVATION, OTHER, FALSE), "35"),
        ((FALSE, FALSE, FALSE), "35"),
        (("no JSON", DERIVATION, DERIVATION), "36"),
    ],
)
def test_an_answer_counts_where_two_derivations_pass_and_agree(samples: Sequence[Any], ships: str) -> None:
    pred = derived(*samples)
    assert (pred.answer, pred.branch) == (ships, "repair" if ships == "36" else "consensus")
    assert pred.consulted == ["deriver"]


def test_support_ships_the_candidate_that_two_derivations_give() -> None:
    assert derived(*[DERIVATION] * 3, rule="support").answer == "36"
    assert derived(*[OTHER] * 3, rule="support").answer == "35"
    assert derived(*[OTHER] * 3).answer == "9"


def test_a_deriver_none_of_whose_replies_can_be_read_abstains() -> None:
    pred = derived("no JSON", "none either", "[]")
    assert pred.answer == "35"
    assert pred.abstentions["deriver"].startswith("unparsable")


@pytest.mark.parametrize("call", [select_sync, select_acall])
def test_each_sample_is_a_request_of_its_own(call: Any) -> None:
    seen: list[Any] = []

    def numbered(request: Any) -> Any:
        seen.append(request)
        return DERIVATION

    with dspy.context(lm=scripted_lm(numbered)):
        assert call(Selector(**AGREED), PENS).answer == "36"
    assert len(seen) == 3
    assert {request.config.temperature for request in seen} == {0.7}


def test_a_run_keeps_all_samples_and_decides_again_from_them(tmp_path: Path) -> None:
    row = {"id": "q", "question": PENS["question"], "task": "arithmetic", "gold": ["36"]}
    pool = tmp_path / "pens.jsonl"
    pool.write_text(json.dumps(row | {"candidates": [{"answer": answer} for answer in PENS["candidates"]]}) + "\n")
    with dspy.context(lm=saying(OTHER, DERIVATION, DERIVATION)):
        evaluate(Selector(**AGREED), Plan([pool], tmp_path / "run", ("majority", "eldgr")))
    entries = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    (entry,) = [entry for entry in entries if entry["kind"] == "consultation"]
    assert [one["derived_answer"] for one in entry["content"]["other_derivations"]] == ["9", "36"]
    assert entry["calls"] == 3
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())["pools"]["pens"]
    assert summary["rules"]["eldgr"]["em"] == 100.0
    replay = Plan([pool], tmp_path / "again", ("eldgr",), replay=tmp_path / "run" / "journal.jsonl")
    assert evaluate(Selector(answer="number", derivation="bounded"), replay)


def test_a_selector_that_asks_several_times_keeps_the_laws() -> None:
    assert check_selector(Selector(**AGREED), max_examples=3)


@pytest.mark.parametrize("values", [{"n": 1}, {"n": 17}, {"n": 2.0}, {"temperature": 0}, {"temperature": "hot"}])
def test_arguments_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=f"{next(iter(values))} must be"):
        RepeatedDeriver(**values)


def test_it_says_how_often_it_asks() -> None:
    assert RepeatedDeriver(n=5).most_calls([]) == 5
    assert RepeatedDeriver(dspy.Predict("question -> derived_answer")).most_calls([]) is None
