"""What a pool holds is counted by the rules that vote and score, and is undefined where there is nothing to count."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eldgr_dspy.figures.contents import contents_of
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.tables.plan_tables import contents_table
from tests.case_tables import each_case


def row(**changes: Any) -> Row:
    inputs = {"id": "q", "question": f"What is {changes.get('id', 'q')}?", "task": "retrieval"}
    return Row.model_validate({**inputs, "candidates": [{"answer": "Doha"}, {"answer": "Dubai"}], **changes})


def figures(*rows: Row) -> Any:
    return contents_of(rows[0].task, rows)[0]


@each_case("pools", "contents of pools")
def test_figures_are_by_the_rules_that_vote_and_score(rows: list[Any], expected: dict[str, Any]) -> None:
    result = figures(*(row(**changes) for changes in rows))
    assert {name: result[name] for name in expected} == expected


@each_case("pools", "stated answers that think")
def test_thinking_is_no_part_of_a_stated_answer_and_stays_in_the_text(text: str, answer: str | None) -> None:
    (result,) = row(candidates=[{"answer": text}]).candidates
    assert result.answer == answer
    assert result.text == ("" if answer == text else text)
    assert row(candidates=[{"answer": text, "text": "t"}]).candidates[0].text == "t"
    assert row(candidates=[result.model_dump()]).candidates[0] == result


def test_answers_that_are_uncertified_for_their_spelling_only_are_counted_and_shown() -> None:
    passages = [{"title": "", "text": "In a two-year trial, from May 5th, 1990, it grew by 12 percent, from 1000."}]
    answers = ("2 years", "12%", "2 years", "5 May 1990", "1,000", "13%", None)
    result = figures(row(candidates=[{"answer": answer} for answer in answers], evidence=passages))
    examples = {"2 years": "two-year", "5 May 1990": "may 5th, 1990"}
    assert result["spelling_only"] == {"count": 3, "of": 7, "rate": pytest.approx(300 / 7), "examples": examples}
    (note,) = [note for note in contents_table("p", result).notes if "spelling" in note]
    assert note == (
        "Candidates that are uncertified for their spelling only: 3, such as '2 years' for 'two-year' of the evidence; "
        "'5 May 1990' for 'may 5th, 1990' of the evidence."
    )
    result = figures(row(task="arithmetic", candidates=[{"answer": "2 years"}], evidence=passages))
    assert result["spelling_only"]["count"] == 0


def test_two_pools_share_the_questions_that_fold_alike() -> None:
    one, other = (("Who?", "Where?", "where?", "When?"), ("WHERE?", "when? ", "Why?"))
    first, second = (contents_of("retrieval", [row(question=one) for one in texts])[1] for texts in (one, other))
    assert len(np.intersect1d(first, second)) == 2


@each_case("pools", "figures of real pools")
def test_the_figures_of_real_pools(pools_dir: Path, name: str, n: int, missing: int, rates: list[float]) -> None:
    pool = open_pool(pools_dir / f"{name}.jsonl.gz")
    assert (pool.name, pool.n, pool.missing) == (name, n, missing)
    result, _ = contents_of(pool.task, pool.rows())
    assert [result[name]["rate"] for name in ("homogeneous", "any_correct")] == pytest.approx(rates, abs=0.005)
    assert result["repeated_questions"]["count"] == 0
