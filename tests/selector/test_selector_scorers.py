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
from tests.laws.slips_of_selectors import Wrapped
from tests.scorers import Awaited, Rewards, table_of
from tests.selecting import (
    ABSTAINS,
    CONTESTED,
    PENS,
    SAID,
    SCORES,
    SETTLED,
    each_way,
    saying,
    select_acall,
    select_sync,
    selected,
    selector_of,
    verdict,
)

# Doha is certified, and what is neither is not: two strata, of which consensus stands in the second.
FIVE: dict[str, Any] = {**CONTESTED, "candidates": ["Dubai", "Doha", "Dubai", "Doha", "Manama"]}
# Consensus is certified: three strata, for consensus comes first among the certified.
THREE_DEEP: dict[str, Any] = {**CONTESTED, "candidates": ["Qatar", "Doha", "Doha", "Dubai", "Manama"]}


# -- what is scored, and added ----------------------------------------------------------------------------------------
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


@pytest.mark.parametrize(
    ("text", "answer", "output"),
    [
        ("It lies there. So it is.", "Doha City Centre", "It lies there. So it is."),
        ("It lies there.\nDoha \n", "Doha", "It lies there."),
        ("The answer is Doha", "Doha", "The answer is Doha"),
        ("", "Doha", "Doha"),
        ("It lies there.", None, "It lies there."),
    ],
    ids=["appended", "said", "explained", "alone", "none"],
)
def test_an_answer_on_a_line_of_its_own_is_not_a_step(text: str, answer: str | None, output: str) -> None:
    scorer = Rewards([])
    select = selector_of(ABSTAINS, scorers=scorer)
    select(**{**CONTESTED, "candidates": [{"reasoning": text, "answer": answer}, "Doha"]})
    assert scorer.seen[0][0].text == output


@pytest.mark.parametrize(("evidence", "passages"), [(None, None), ([], ()), (dspy.Prediction(passages=[]), ())])
def test_no_evidence_is_no_corpus_and_empty_evidence_is_one_without_a_hit(evidence: Any, passages: Any) -> None:
    scorer = Rewards([])
    selector_of(scorers=scorer)(**{**CONTESTED, "evidence": evidence})
    assert [one.passages for one in scorer.seen[0]] == [passages] * 3


def test_a_pool_without_candidates_is_not_scored() -> None:
    scorer = Rewards([])
    pred = Selector(scorers=scorer)(**{**CONTESTED, "candidates": []})
    assert (pred.scores, pred.ranking, scorer.seen) == ([], [], [])


@pytest.mark.parametrize("scorers", [None, []])
def test_without_a_scorer_there_are_no_scores(scorers: Any) -> None:
    assert "scores" not in Selector(scorers=scorers)(**SETTLED)


class Plain:  # a scorer without a name
    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        return [table_of(one.text, 0.5) for one in reasonings]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("nli",), ["nli"]),
        (("nli", "lm", "nli"), ["nli", "lm", "nli 2"]),
        (("nli 2", "nli", "nli"), ["nli 2", "nli", "nli 3"]),
        (("nli", "nli", "nli 2"), ["nli", "nli 2", "nli 2 2"]),
        ((None, None), ["Plain", "Plain 2"]),
    ],
)
def test_several_scorers_are_told_apart_by_name_and_the_first_ranks(names: Sequence[Any], labels: list[str]) -> None:
    rewards = [[0.1, 0.2, 0.9], [0.9, 0.8, 0.1], [0.0, 0.0, 0.0]]
    named = [Rewards(own, name) if name else Plain() for own, name in zip(rewards, names, strict=False)]
    pred = Selector(scorers=named)(**SETTLED)
    assert list(pred.scores) == labels
    if names[0] is not None:
        assert [[one["reward"] for one in tables] for tables in pred.scores.values()] == rewards[: len(names)]
        assert pred.ranking == [1, 0, 2]


# -- what it ranks (law 13) -------------------------------------------------------------------------------------------

JUDGED = {**verdict(1), "assessments": [{**SCORES, "scalar": scalar} for scalar in (0.1, 0.2, 0.3, 0.4, 0.5)]}


@pytest.mark.parametrize(
    ("rewards", "judge", "inputs", "ranking"),
    [
        ([0.9, 0.1, 0.8, 0.2, 1.0], ABSTAINS, FIVE, [3, 1, 4, 0, 2]),
        ([0.1, 0.0, 0.2, 0.0, 0.3], ABSTAINS, FIVE, [1, 3, 4, 2, 0]),
        ([1.0, 0.1, 0.2, 0.9, 0.8], ABSTAINS, THREE_DEEP, [2, 1, 0, 3, 4]),
        ([None, None, 0.0, -1.0, 0.0], ABSTAINS, FIVE, [3, 1, 2, 4, 0]),
        ([0.5] * 5, ABSTAINS, FIVE, [1, 3, 0, 2, 4]),
        (None, JUDGED, FIVE, [3, 1, 4, 2, 0]),
        ([0.9, 0.9, 0.5, 0.1, 0.1], JUDGED, FIVE, [1, 3, 0, 2, 4]),
        ([None, 0.9, None, None, None], JUDGED, FIVE, [1, 3, 0, 2, 4]),
        ([], JUDGED, FIVE, [3, 1, 4, 2, 0]),
        (ConnectionError("no model"), JUDGED, FIVE, [3, 1, 4, 2, 0]),
    ],
    ids=["strata", "order", "consensus", "undefined", "tie", "none", "instead", "partly", "unmeasured", "failed"],
)
def test_rewards_order_inside_strata_only(rewards: Any, judge: Any, inputs: dict[str, Any], ranking: list[int]) -> None:
    """An undefined reward is last, ties go by position; the judge's scalars rank where no reward is defined."""
    select = selector_of(judge, scorers=None if rewards is None else Rewards(rewards))
    assert select(**inputs).ranking == ranking


def test_in_arithmetic_a_reward_does_not_pass_a_checked_derivation() -> None:
    pred = selected(saying(), inputs=PENS, scorers=Rewards([0.8, 0.9, 0.0]))
    assert (pred.answer, pred.ranking) == ("36", [2, 1, 0])


# -- what it does not change ------------------------------------------------------------------------------------------

WHATEVER: dict[str, Any] = {
    "rewards": [0.0, 1.0, 0.3], "rewards without bounds": [-1e300, 1e300, 7], "nothing measured": [],
    "a bug": KeyError("a bug"), "no model": ConnectionError("refused"), "no number": [float("nan")] * 3,
    "infinity": [float("inf")] * 3, "too many tables": [0.5] * 4, "no table": "high", "nothing": None,
}  # fmt: skip


@pytest.mark.parametrize("call", [select_sync, select_acall])
@pytest.mark.parametrize("outcome", WHATEVER.values(), ids=WHATEVER)
@pytest.mark.parametrize(("inputs", "reply"), SAID.values(), ids=SAID)
def test_no_scorer_changes_what_ships_or_what_is_asked(
    call: Callable[..., Any], inputs: dict[str, Any], reply: dict[str, Any], outcome: Any
) -> None:
    lm, reference = saying(**reply), saying(**reply)
    with dspy.context(lm=lm):
        fields = call(Selector(scorers=Rewards(outcome)), inputs).toDict()
    expected = selected(reference, inputs=inputs).toDict()
    assert len(fields.pop("scores")) == len(inputs["candidates"])
    assert sorted(fields.pop("ranking")) == sorted(expected.pop("ranking"))
    assert fields == expected
    assert lm.requests == reference.requests


# -- a scorer that fails ----------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, str]] = {
    "raises": (ConnectionError("refused\nby the host"), "ConnectionError: refused"),
    "none": (None, "ArgumentError: Rewards.score returned None; expected a list of StepTable, one for each text."),
    "too many": ([0.5] * 4, "ArgumentError: Rewards.score returned 4 tables for 2 texts; expected one for each."),
    "nan": (
        [float("nan")],
        "ArgumentError: Rewards.score returned a table with a value that is not a score: reward[0] must be a "
        "finite number; got nan. If a score could not be measured, give Undefined(reason).",
    ),
}


@each_way
@pytest.mark.parametrize(("outcome", "reason"), WRONG.values(), ids=WRONG)
def test_what_a_scorer_raises_is_raised_or_the_reason_why(call: Callable[..., Any], outcome: Any, reason: str) -> None:
    inputs, scorers = {**SETTLED, "candidates": ["Doha", "Dubai"]}, [Rewards(outcome, "one"), Rewards([0.5] * 2, "two")]
    pred = call(Selector(scorers=scorers), inputs)
    table: dict[str, Any] = {"reward": None, "undefined": f"the scorer failed: {reason}", "steps": []}
    assert (pred.scores["one"], pred.answer) == ([table, table], "Doha")
    assert [other["reward"] for other in pred.scores["two"]] == [0.5] * 2
    for each in (select_sync, select_acall):
        with pytest.raises((ArgumentError, ConnectionError), match=re.escape(reason.partition(": ")[2])):
            each(Selector(scorers=scorers, on_error="raise"), inputs)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (7, "scorers=7"),
        ("nli", "scorers[0]='n'"),
        ([Rewards([]), None], "scorers[1]=None"),
        (Rewards, f"scorers={Rewards!r:.80}"),
    ],
    ids=["number", "text", "none", "class"],
)
def test_what_is_not_a_scorer_is_refused_by_the_constructor(value: Any, named: str) -> None:
    expected = f"{named} is not a scorer; give an object with score(reasonings), or a list of such."
    with pytest.raises(ArgumentError, match=f"^{re.escape(expected)}$"):
        Selector(scorers=value)


# -- awaited, and copied ----------------------------------------------------------------------------------------------
def test_a_scorer_that_can_be_awaited_is_awaited() -> None:
    scores = select_acall(Selector(scorers=Awaited([0.5] * 3)), SETTLED).scores
    assert [table["reward"] for table in scores] == [0.5] * 3


class Slow(Rewards):
    """A scorer that waits until something else has been done in the loop, and remembers the LM of the settings."""

    def __init__(self) -> None:
        super().__init__([])
        self.free, self.lms = threading.Event(), list[Any]()

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        assert self.free.wait(20), "the loop was blocked"
        self.lms.append(dspy.settings.lm)
        return super().score(reasonings)


def test_any_other_scorer_does_not_block_the_loop_and_finds_the_settings() -> None:
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


class RanksAcrossStrata(Wrapped):  # a selector that ranks by reward alone
    def after(self, call: dict[str, Any], pred: Any) -> Any:
        pred.ranking = sorted(pred.ranking, key=lambda index: -(pred.scores[index]["reward"] or 0.0))
        return pred


def test_a_selector_that_ranks_across_strata_breaks_law_13() -> None:
    with pytest.raises(LawBroken, match=r"^Law 13, scores_never_cross_strata, is broken"):
        check_selector(RanksAcrossStrata(scorers=Rewards([0.1, 0.9, 0.5])))
