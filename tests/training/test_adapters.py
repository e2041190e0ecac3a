"""The same rewards in the forms that other trainers call: a score, and what it is made of."""

import math
from typing import Any

import pytest

from eldgr_dspy.channels import completion_reward
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import (
    Reward,
    StepReward,
    TotalReward,
    format,
    orm,
    score_completions,
)
from tests.scoring.readers import Reader
from tests.training.calling import UNMEASURED, Fixed, Log, by_heart, rows

TEXTS = ["The host was Qatar.\nA: Qatar", "The host was Dubai.\nA: Dubai", "So Qatar."]
ROW: dict[str, Any] = {name: values[0] for name, values in rows(1).items()}


def terms() -> list[Reward]:
    return [orm, format, StepReward(NLIScorer(Reader(by_heart)), confidence=False)]


def by_hand() -> list[float]:
    """The paper's sum, by the function for it."""
    each = [reward(["?"] * 3, TEXTS, **rows(3)) for reward in terms()]
    return [completion_reward(outcome, form, [steps]).total for outcome, form, steps in zip(*each, strict=True)]


def test_the_total_is_the_papers_sum_and_logs_its_terms() -> None:
    log = Log()
    total = TotalReward(terms())
    assert total(["?"] * 3, TEXTS, **rows(3), **log.arguments) == pytest.approx(by_hand())
    assert log.metrics["total/orm"] == log.metrics["total/orm/exact_match"] == pytest.approx(1 / 3)
    assert {"total/format", "total/ra_msd", "total/ra_msd/fact", "total/ra_msd/undefined"} <= set(log.metrics)
    assert log.columns["total_orm_answer"] == ["Qatar", "Dubai", "So Qatar."]
    assert total.needs == ("gold", "task", "question", "evidence")


def test_the_terms_may_have_other_weights() -> None:
    assert TotalReward([orm, format], weights=[1.0, 0.0])(["?"] * 3, TEXTS, **rows(3)) == [1, 0, 0]
    with pytest.raises(ArgumentError, match="weights must be one for each of 2 rewards; got 1"):
        TotalReward([orm, format], weights=[1.0])
    with pytest.raises(ArgumentError, match="2 rewards are named 'orm'"):
        TotalReward([orm, orm])


def test_a_term_that_is_undefined_adds_nothing_to_a_sum_that_is_defined() -> None:
    silent = StepReward(Fixed(logic=UNMEASURED, fact=UNMEASURED), confidence=False)
    (scored,) = score_completions([orm, silent], TEXTS[:1], [ROW])
    assert scored.score == 3.0
    assert "ra_msd" not in scored.parts and scored.parts["orm"] == scored.parts["ra_msd/undefined"] == 1


def test_each_completion_has_a_score_and_its_defined_parts() -> None:
    found = score_completions(terms(), TEXTS, [ROW] * 3)
    assert [one.score for one in found] == pytest.approx(by_hand())
    assert found[0].parts["ra_msd/fact"] == 1 and found[1].parts["ra_msd/fact"] == 0
    assert all(math.isfinite(value) for one in found for value in one.parts.values())
    assert score_completions(terms(), [], []) == []


def test_a_row_without_a_column_is_refused() -> None:
    with pytest.raises(ArgumentError, match="needs the column 'gold'"):
        score_completions([orm], TEXTS[:2], [ROW, {"task": "retrieval"}])
    with pytest.raises(ArgumentError, match="rows must be one for each of 3 completions; got 1"):
        score_completions([orm], TEXTS, [ROW])
