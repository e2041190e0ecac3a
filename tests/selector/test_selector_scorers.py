"""A scorer adds tables to the prediction and ranks inside a stratum; whatever it says, the same answer ships."""

import asyncio
import copy
import json
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from tests.case_tables import each_case
from tests.laws.slips_of_selectors import Wrapped
from tests.scenes import ABSTAINS, CONTESTED, PENS, SAID, SCORES, SETTLED, verdict
from tests.scorers import Awaited, Rewards, table_of
from tests.selecting import each_way, saying, select_acall, select_sync, selected, selector_of


@each_way
def test_all_candidates_are_scored_in_one_call_and_each_has_a_table_as_plain_json(call: Callable[..., Any]) -> None:
    scorer, candidates = Rewards([0.5, None]), [{"reasoning": "It lies there.", "answer": "Doha"}, "Dubai", None]
    pred = call(Selector(scorers=scorer), {**SETTLED, "candidates": candidates})
    passages, question = tuple(Passage("", text) for text in SETTLED["evidence"]), SETTLED["question"]
    texts = [("It lies there.", "Doha"), ("Dubai", "Dubai"), ("", "")]
    assert scorer.seen == [[Reasoning(text, question, passages, answer) for text, answer in texts]]
    fields = pred.toDict()
    assert json.loads(json.dumps(fields)) == fields
    assert pred.scores[:2] == [table_of("It lies there.", 0.5).to_json(), table_of("Dubai", None).to_json()]
    assert (pred.scores[1]["reward"], pred.scores[1]["undefined"]) == (None, "no step was measured")


@each_case("selector", "texts and their steps")
def test_an_answer_on_a_line_of_its_own_is_not_a_step(text: str, answer: str | None, output: str) -> None:
    scorer = Rewards([])
    select = selector_of(ABSTAINS, scorers=scorer)
    select(**{**CONTESTED, "candidates": [{"reasoning": text, "answer": answer}, "Doha"]})
    assert scorer.seen[0][0].text == output


def test_a_pool_without_candidates_is_not_scored_and_without_a_scorer_there_are_no_scores() -> None:
    """Without evidence there is no corpus; empty evidence is a corpus without a hit."""
    scorer = Rewards([])
    pred = Selector(scorers=scorer)(**{**CONTESTED, "candidates": []})
    assert (pred.scores, pred.ranking, scorer.seen) == ([], [], [])
    assert not any("scores" in Selector(scorers=nobody)(**SETTLED) for nobody in (None, list[Any]()))
    for evidence in (None, list[Any](), dspy.Prediction(passages=[])):
        selector_of(scorers=scorer)(**{**CONTESTED, "evidence": evidence})
    assert [[one.passages for one in texts] for texts in scorer.seen] == [[None] * 3, [()] * 3, [()] * 3]


class Plain:  # a scorer without a name
    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        return [table_of(one.text, 0.5) for one in reasonings]


@each_case("selector", "names of scorers")
def test_several_scorers_are_told_apart_by_name_and_the_first_ranks(names: list[Any], labels: list[str]) -> None:
    rewards = [[0.1, 0.2, 0.9], [0.9, 0.8, 0.1], [0.0, 0.0, 0.0]]
    named = [Rewards(own, name) if name else Plain() for own, name in zip(rewards, names, strict=False)]
    pred = Selector(scorers=named)(**SETTLED)
    assert list(pred.scores) == labels
    if names[0] is not None:
        assert [[one["reward"] for one in tables] for tables in pred.scores.values()] == rewards[: len(names)]
        assert pred.ranking == [1, 0, 2]


JUDGED = {**verdict(1), "assessments": [{**SCORES, "scalar": scalar} for scalar in (0.1, 0.2, 0.3, 0.4, 0.5)]}


@each_case("selector", "rewards and the ranking", ConnectionError=ConnectionError)
def test_rewards_order_inside_strata_only(rewards: Any, is_judged: bool, candidates: Any, ranking: list[int]) -> None:
    """An undefined reward is last, ties go by position; the judge's scalars rank where no reward is defined."""
    scorers = None if rewards is None else Rewards(rewards)
    select = selector_of(JUDGED if is_judged else ABSTAINS, scorers=scorers)
    assert select(**{**CONTESTED, "candidates": candidates}).ranking == ranking


@pytest.mark.parametrize("call", [select_sync, select_acall])
@each_case("selector", "what a scorer may do", KeyError=KeyError, ConnectionError=ConnectionError)
@pytest.mark.parametrize(("inputs", "reply"), SAID.values(), ids=SAID)
def test_no_scorer_changes_what_ships_or_what_is_asked(call: Any, inputs: Any, reply: Any, outcome: Any) -> None:
    lm, reference = saying(**reply), saying(**reply)
    with dspy.context(lm=lm):
        fields = call(Selector(scorers=Rewards(outcome)), inputs).toDict()
    expected = selected(reference, inputs=inputs).toDict()
    assert len(fields.pop("scores")) == len(inputs["candidates"])
    assert sorted(fields.pop("ranking")) == sorted(expected.pop("ranking"))
    assert fields == expected
    assert lm.requests == reference.requests


@each_way
@each_case("selector", "scorers that fail", ConnectionError=ConnectionError)
def test_what_a_scorer_raises_is_raised_or_the_reason_why(call: Callable[..., Any], outcome: Any, reason: str) -> None:
    inputs, scorers = {**SETTLED, "candidates": ["Doha", "Dubai"]}, [Rewards(outcome, "one"), Rewards([0.5] * 2, "two")]
    pred = call(Selector(scorers=scorers), inputs)
    table: dict[str, Any] = {"reward": None, "undefined": f"the scorer failed: {reason}", "steps": []}
    assert (pred.scores["one"], pred.answer) == ([table, table], "Doha")
    assert [other["reward"] for other in pred.scores["two"]] == [0.5] * 2
    for each in (select_sync, select_acall):
        with pytest.raises((ArgumentError, ConnectionError), match=re.escape(reason.partition(": ")[2])):
            each(Selector(scorers=scorers, on_error="raise"), inputs)


class Slow(Rewards):
    """A scorer that waits until something else has been done in the loop, and remembers the LM of the settings."""

    def __init__(self) -> None:
        super().__init__([])
        self.free, self.lms = threading.Event(), list[Any]()

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        assert self.free.wait(20), "the loop was blocked"
        self.lms.append(dspy.settings.lm)
        return super().score(reasonings)


def test_a_scorer_that_can_be_awaited_is_and_any_other_does_not_block_the_loop() -> None:
    """It finds the settings in its thread."""
    scores = select_acall(Selector(scorers=Awaited([0.5] * 3)), SETTLED).scores
    assert [table["reward"] for table in scores] == [0.5] * 3
    scorer, lm = Slow(), saying()

    async def both() -> Any:
        selecting = asyncio.ensure_future(Selector(scorers=scorer).acall(**SETTLED))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, scorer.free.set)
        return await selecting

    with dspy.context(lm=lm):
        assert asyncio.run(both()).answer == "Doha"
    assert scorer.lms == [lm]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda select: select.deepcopy(), Selector.reset_copy])
@pytest.mark.parametrize("several", [False, True])
def test_a_copy_shares_a_scorer_that_is_not_a_module(duplicate: Callable[..., Selector], several: bool) -> None:
    """It may hold what cannot be copied."""
    scorer = Slow()
    select = Selector(scorers=[scorer] if several else scorer)
    twin = duplicate(select)
    assert twin.scorers[0] is scorer and twin.scorers is not select.scorers


def test_a_reward_does_not_pass_a_checked_derivation_nor_cross_strata() -> None:
    class RanksAcrossStrata(Wrapped):  # a selector that ranks by reward alone
        def after(self, call: dict[str, Any], pred: Any) -> None:
            pred.ranking = sorted(pred.ranking, key=lambda index: -(pred.scores[index]["reward"] or 0.0))

    with pytest.raises(LawBroken, match=r"^Law 13, scores_never_cross_strata, is broken"):
        check_selector(RanksAcrossStrata(scorers=Rewards([0.1, 0.9, 0.5])))
    pred = selected(saying(), inputs=PENS, scorers=Rewards([0.8, 0.9, 0.0]))
    assert (pred.answer, pred.ranking) == ("36", [2, 1, 0])
