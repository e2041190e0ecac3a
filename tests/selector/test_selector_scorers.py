"""A scorer adds tables to the prediction and ranks inside a stratum; whatever it says, the same answer ships."""

import asyncio
import copy
import json
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.table import StepTable
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector, scripted_lm
from tests.scorers import Awaited, Rewards, ScoringModule, table_of
from tests.selecting import (
    CONTESTED,
    PENS,
    SAID,
    SCORES,
    SETTLED,
    each_way,
    repair,
    right,
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


def ranked(*rewards: Any, inputs: Any = FIVE, judge: Any = None) -> list[int]:
    select = selector_of(judge or {"abstained": "silent"}, scorers=Rewards([*rewards]))
    ranking: list[int] = select(**inputs).ranking
    return ranking


# -- what is scored ---------------------------------------------------------------------------------------------------


@each_way
def test_all_candidates_are_scored_in_one_call_with_question_evidence_and_answer(call: Callable[..., Any]) -> None:
    scorer, candidates = Rewards([0.5] * 3), [{"reasoning": "It lies there.", "answer": "Doha"}, "Dubai", None]
    pred = call(Selector(scorers=scorer), {**SETTLED, "candidates": candidates})
    passages = tuple(Passage("", text) for text in SETTLED["evidence"])
    question = SETTLED["question"]
    assert scorer.seen == [
        [
            Reasoning("It lies there.", question, passages, "Doha"),
            Reasoning("Dubai", question, passages, "Dubai"),
            Reasoning("", question, passages, ""),
        ]
    ]
    assert [table["reward"] for table in pred.scores] == [0.5] * 3


@pytest.mark.parametrize(
    ("text", "answer", "shown"),
    [
        ("It lies there. So it is.", "Doha City Centre", "It lies there. So it is."),
        ("It lies there.\nDoha \n", "Doha", "It lies there."),
        ("The answer is Doha", "Doha", "The answer is Doha"),
        ("", "Doha", "Doha"),
        ("It lies there.", None, "It lies there."),
    ],
    ids=["appended", "said", "explained", "alone", "none"],
)
def test_an_answer_on_a_line_of_its_own_is_not_a_step(text: str, answer: str | None, shown: str) -> None:
    scorer = Rewards([])
    select = selector_of({"abstained": "silent"}, scorers=scorer)
    select(**{**CONTESTED, "candidates": [{"reasoning": text, "answer": answer}, "Doha"]})
    assert scorer.seen[0][0].text == shown


@pytest.mark.parametrize(("evidence", "passages"), [(None, None), ([], ()), (dspy.Prediction(passages=[]), ())])
def test_without_evidence_there_is_no_corpus_and_empty_evidence_is_one_without_a_hit(
    evidence: Any, passages: Any
) -> None:
    scorer = Rewards([])
    selector_of(scorers=scorer)(**{**CONTESTED, "evidence": evidence})
    assert [one.passages for one in scorer.seen[0]] == [passages] * 3


def test_a_pool_without_candidates_is_not_scored() -> None:
    scorer = Rewards([])
    pred = Selector(scorers=scorer)(**{**CONTESTED, "candidates": []})
    assert (pred.scores, pred.ranking, scorer.seen) == ([], [], [])


# -- what is added ----------------------------------------------------------------------------------------------------


@each_way
def test_the_prediction_has_a_table_a_candidate_as_plain_json(call: Callable[..., Any]) -> None:
    pred = call(Selector(scorers=Rewards([0.25, None])), {**SETTLED, "candidates": ["Doha", "Dubai"]})
    fields = pred.toDict()
    assert json.loads(json.dumps(fields)) == fields
    assert pred.scores == [table_of("Doha", 0.25).to_json(), table_of("Dubai", None).to_json()]
    assert (pred.scores[1]["reward"], pred.scores[1]["undefined"]) == (None, "no step was measured")


def test_without_a_scorer_there_are_no_scores() -> None:
    assert "scores" not in Selector()(**SETTLED)
    assert "scores" not in Selector(scorers=[])(**SETTLED)


def test_several_scorers_are_told_apart_by_name_and_the_first_ranks() -> None:
    one, other, third = Rewards([0.1, 0.2, 0.9], "nli"), Rewards([0.9, 0.8, 0.1], "lm"), Rewards([0.0, 0.0, 0.0], "nli")
    pred = Selector(scorers=[one, other, third])(**SETTLED)
    rewards = {name: [table["reward"] for table in tables] for name, tables in pred.scores.items()}
    assert rewards == {"nli": [0.1, 0.2, 0.9], "lm": [0.9, 0.8, 0.1], "nli 2": [0.0, 0.0, 0.0]}
    assert pred.ranking == [1, 0, 2]
    assert list(Selector(scorers=[one])(**SETTLED).scores) == ["nli"]


@pytest.mark.parametrize("names", [("nli 2", "nli", "nli"), ("nli", "nli", "nli 2"), ("nli", "nli 2", "nli")])
def test_no_name_takes_the_place_of_another_s(names: tuple[str, ...]) -> None:
    pred = Selector(scorers=[Rewards([0.5] * 3, name) for name in names])(**SETTLED)
    assert len(pred.scores) == 3 and set(names) <= set(pred.scores)


def test_a_scorer_without_a_name_is_called_as_its_class() -> None:
    class Plain:
        def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
            return [table_of(one.text, 0.5) for one in reasonings]

    assert list(Selector(scorers=[Plain(), Plain()])(**SETTLED).scores) == ["Plain", "Plain 2"]


# -- what it ranks (law 13) -------------------------------------------------------------------------------------------


def test_rewards_order_candidates_inside_a_stratum_alone() -> None:
    assert ranked(0.9, 0.1, 0.8, 0.2, 1.0) == [3, 1, 4, 0, 2]
    assert ranked(0.1, 0.0, 0.2, 0.0, 0.3) == [1, 3, 4, 2, 0]


def test_among_the_certified_consensus_comes_before_a_better_reward() -> None:
    assert ranked(1.0, 0.1, 0.2, 0.9, 0.8, inputs=THREE_DEEP) == [2, 1, 0, 3, 4]


def test_an_undefined_reward_is_the_last_of_its_stratum_and_ties_go_by_position() -> None:
    assert ranked(None, None, 0.0, -1.0, 0.0) == [3, 1, 2, 4, 0]
    assert ranked(0.5, 0.5, 0.5, 0.5, 0.5) == [1, 3, 0, 2, 4]


def test_in_arithmetic_a_reward_does_not_pass_a_checked_derivation() -> None:
    pred = selected(saying(), inputs=PENS, scorers=Rewards([0.8, 0.9, 0.0]))
    assert (pred.answer, pred.ranking) == ("36", [2, 1, 0])


def judging(*scalars: float) -> dict[str, Any]:
    return {**verdict(1), "assessments": [{**SCORES, "scalar": scalar} for scalar in scalars]}


def test_the_reward_and_not_the_judge_s_scalar_is_the_auxiliary_score() -> None:
    judged = judging(0.1, 0.2, 0.3, 0.4, 0.5)
    assert selector_of(judged)(**FIVE).ranking == [3, 1, 4, 2, 0]
    assert ranked(0.9, 0.9, 0.5, 0.1, 0.1, judge=judged) == [1, 3, 0, 2, 4]
    assert ranked(None, 0.9, None, None, None, judge=judged) == [1, 3, 0, 2, 4]


@pytest.mark.parametrize("outcome", [[], ConnectionError("no model")])
def test_where_no_reward_is_defined_the_judge_s_scalars_rank_as_without_a_scorer(outcome: Any) -> None:
    judged = judging(0.1, 0.2, 0.3, 0.4, 0.5)
    assert selector_of(judged, scorers=Rewards(outcome))(**FIVE).ranking == selector_of(judged)(**FIVE).ranking


# -- what it does not change ------------------------------------------------------------------------------------------

WHATEVER: dict[str, Any] = {
    "rewards": [0.0, 1.0, 0.3], "rewards without bounds": [-1e300, 1e300, 7], "nothing measured": [],
    "a bug": KeyError("a bug"), "no model": ConnectionError("refused"), "no number": [float("nan")] * 3,
    "infinity": [float("inf")] * 3, "too many tables": [0.5] * 4, "no table": "high", "nothing": None,
}  # fmt: skip


@pytest.mark.parametrize("call", [select_sync, select_acall])
@pytest.mark.parametrize("outcome", WHATEVER.values(), ids=WHATEVER)
@pytest.mark.parametrize(("inputs", "said"), SAID.values(), ids=SAID)
def test_no_scorer_changes_what_ships_or_what_is_asked(
    call: Callable[..., Any], inputs: dict[str, Any], said: dict[str, Any], outcome: Any
) -> None:
    lm, reference = saying(**said), saying(**said)
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
def test_what_a_failed_scorer_raised_is_the_reason_why_its_scores_are_undefined(
    call: Callable[..., Any], outcome: Any, reason: str
) -> None:
    pred = call(Selector(scorers=Rewards(outcome)), {**SETTLED, "candidates": ["Doha", "Dubai"]})
    table: dict[str, Any] = {"reward": None, "undefined": f"the scorer failed: {reason}", "steps": []}
    assert (pred.scores, pred.answer) == ([table, table], "Doha")


def test_where_one_of_several_scorers_fails_the_others_are_heard() -> None:
    pred = Selector(scorers=[Rewards(KeyError("a bug"), "one"), Rewards([0.5] * 3, "other")])(**SETTLED)
    assert pred.scores["one"][0]["undefined"] == "the scorer failed: KeyError: 'a bug'"
    assert [table["reward"] for table in pred.scores["other"]] == [0.5] * 3


@pytest.mark.parametrize("call", [select_sync, select_acall])
@pytest.mark.parametrize(("outcome", "error"), [(KeyError("a bug"), KeyError), (None, ArgumentError)])
def test_on_error_raise_raises_what_a_scorer_raised(call: Callable[..., Any], outcome: Any, error: Any) -> None:
    with pytest.raises(error):
        call(Selector(scorers=Rewards(outcome), on_error="raise"), SETTLED)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (7, "scorers=7"),
        ("nli", "scorers[0]='n'"),
        ([Rewards([]), None], "scorers[1]=None"),
        (Rewards, f"scorers={Rewards!r:.80}"),
    ],
    ids=["number", "text", "none", "class"],
)
def test_what_is_not_a_scorer_is_refused_by_the_constructor(given: Any, named: str) -> None:
    expected = f"{named} is not a scorer; give an object with score(reasonings), or a list of such."
    with pytest.raises(ArgumentError, match=f"^{re.escape(expected)}$"):
        Selector(scorers=given)


def test_the_field_of_the_scores_cannot_be_that_of_the_answer() -> None:
    with pytest.raises(ArgumentError, match=r"^answer_field='scores' is a field of the decision; use"):
        Selector(answer_field="scores")


# -- awaited ----------------------------------------------------------------------------------------------------------


def test_a_scorer_that_can_be_awaited_is_awaited() -> None:
    assert [table["reward"] for table in select_acall(Selector(scorers=Awaited([0.5] * 3)), SETTLED).scores] == [
        0.5
    ] * 3


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


# -- a module like any other ------------------------------------------------------------------------------------------


class Held(Rewards):
    """A scorer that holds what cannot be copied."""

    def __init__(self) -> None:
        super().__init__([0.5] * 3)
        self.lock = threading.Lock()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda select: select.deepcopy(), Selector.reset_copy])
@pytest.mark.parametrize("several", [False, True])
def test_a_copy_shares_a_scorer_that_is_not_a_module(duplicate: Callable[..., Selector], several: bool) -> None:
    scorer = Held()
    select = Selector(scorers=[scorer] if several else scorer)
    twin = duplicate(select)
    assert twin.scorers[0] is scorer and twin.scorers is not select.scorers
    assert twin(**SETTLED).toDict() == select(**SETTLED).toDict()


def rewarding(reward: float) -> Any:
    return scripted_lm(lambda request: f"[[ ## reward ## ]]\n{reward}\n\n[[ ## completed ## ]]")


def test_a_scorer_that_is_a_module_is_copied_saved_and_loaded_with_the_selector(tmp_path: Path) -> None:
    select, loaded = Selector(scorers=ScoringModule()), Selector(scorers=ScoringModule())
    predict: Any = select.scorers[0]
    predict.predict.demos = [dspy.Example(text="t", reward=0.5)]
    twin: Any = select.deepcopy().scorers[0]
    assert twin is not predict and twin.predict.demos == predict.predict.demos
    select.save(tmp_path / "select.json")
    loaded.load(tmp_path / "select.json")
    lm = rewarding(0.25)
    select.set_lm(lm)
    loaded.set_lm(rewarding(0.25))
    assert loaded(**SETTLED).toDict() == select(**SETTLED).toDict()
    assert [table["reward"] for table in select(**SETTLED).scores] == [0.25] * 3
    other: Any = loaded.scorers[0]
    assert len(other.predict.demos) == 1


def test_a_selector_with_a_scorer_is_saved_whole(tmp_path: Path) -> None:
    Selector(scorers=[ScoringModule()]).save(tmp_path / "program", save_program=True, modules_to_serialize=None)
    loaded: Any = dspy.load(str(tmp_path / "program"), allow_pickle=True)
    with dspy.context(lm=rewarding(0.25)):
        assert list(loaded(**SETTLED).scores) == ["ScoringModule"]


def test_threads_mix_nothing_up() -> None:
    class Long:
        def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
            return [table_of(one.text, float(len(one.question))) for one in reasonings]

    select, parallel = Selector(scorers=Long()), dspy.Parallel(num_threads=8, disable_progress_bar=True)
    asked = [{**SETTLED, "question": "?" * (number + 1)} for number in range(40)]
    preds: Any = parallel([(select, dspy.Example(**inputs).with_inputs(*inputs)) for inputs in asked])
    assert [pred.scores[0]["reward"] for pred in preds] == [number + 1.0 for number in range(40)]


def test_a_selector_with_a_scorer_can_be_compiled() -> None:
    scorer = Held()
    trainset = [dspy.Example(**CONTESTED, gold="Doha").with_inputs(*CONTESTED)]
    optimizer = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=1, max_labeled_demos=1)
    with dspy.context(lm=saying(verdict(2), repair("Doha"))):
        program: Any = optimizer.compile(Selector(scorers=scorer, consult="always"), trainset=trainset)
        assert [table["reward"] for table in program(**CONTESTED).scores] == [0.5] * 3
    assert program.scorers[0] is scorer
    assert len(program.judge.predict.demos) == 1


def test_a_selector_with_a_scorer_keeps_the_laws() -> None:
    select = Selector(scorers=Rewards([0.1, 0.9, 0.5]))
    assert check_selector(select, max_examples=30)["sync_equals_async_equals_batch_equals_replay"] >= 60


class RanksAcrossStrata(Selector):
    """A selector that ranks by reward alone."""

    def forward(
        self, question: str, candidates: Any, evidence: Any = None, answer: Any = None, options: Any = ()
    ) -> dspy.Prediction:
        pred = super().forward(question, candidates, evidence, answer, options)
        pred.ranking = sorted(pred.ranking, key=lambda index: -(pred.scores[index]["reward"] or 0.0))
        return pred


def test_a_selector_that_ranks_across_strata_breaks_law_13() -> None:
    with pytest.raises(LawBroken, match=r"^Law 13, scores_never_cross_strata, is broken"):
        check_selector(RanksAcrossStrata(scorers=Rewards([0.1, 0.9, 0.5])))
