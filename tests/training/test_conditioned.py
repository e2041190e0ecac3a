"""The reward of the steps is finite, or undefined where nothing is measured; a condition on it cannot be bought."""

import json
import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import CHANNELS
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable
from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError, ScoringError
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import Conditioned, Reward, StepReward, TokenConfidence, format, orm, weights_of
from eldgr_dspy.training.named_rewards import process_reward
from eldgr_dspy.training.reward_base import RewardResults
from eldgr_dspy.training.reward_calls import Call
from tests.refusing import refused
from tests.scoring.readers import Reader, by_chance
from tests.training.calling import UNMEASURED, Broken, Fixed, Log, by_heart, rows, said

TEXT = "The host was Qatar.\nThe capital of Qatar is Dubai.\nA: Dubai"


def silent(scorer: Any, **settings: Any) -> StepReward:
    """A reward that asks nobody how likely tokens were."""
    return StepReward(scorer, confidence=False, **settings)


def test_all_completions_of_a_batch_are_scored_in_one_call_with_their_columns() -> None:
    scorer = Fixed()
    result = silent(scorer)(["?"] * 3, [said(TEXT), TEXT, "So Qatar it was."], **rows(3))
    assert result == [1.0, 1.0, 1.0] and scorer.calls == 1
    assert scorer.given[0] == Reasoning(TEXT, "Who was the host?", (Passage("", "The host was Qatar."),), "Dubai")
    assert scorer.given[2].answer == "", "an answer that is only guessed is nothing to make progress towards"


def test_the_reward_is_the_mean_over_the_steps_and_every_channel_is_logged() -> None:
    log = Log()
    reward = silent(NLIScorer(Reader(by_heart)))
    (earned,) = reward(["?"], [TEXT], **rows(1), **log.arguments)
    table = json.loads(log.columns["ra_msd_steps"][0])
    first, second = (step["reward"] for step in table["steps"])
    assert second == 0.0 and earned == table["reward"] == pytest.approx((first + second) / 2)
    for name in set(CHANNELS) - {"epist"}:
        measured = [step["channels"][name] for step in table["steps"] if step["channels"][name] is not None]
        assert log.metrics[f"ra_msd/{name}"] == pytest.approx(sum(measured) / len(measured)), name
    assert "ra_msd/epist" not in log.metrics
    assert (log.metrics["ra_msd/steps"], log.metrics["ra_msd/undefined"]) == (2, 0)


def test_the_process_reward_is_the_mean_of_logic_and_reads_no_passage() -> None:
    reader, log = Reader(by_heart), Log()
    columns = rows(1)
    del columns["evidence"]
    reward = process_reward(reader)
    assert reward(["?"], [TEXT], **columns, **log.arguments) == [0.25], "a neutral step and a contradicted one"
    assert log.metrics["prm/logic"] == 0.25 and "prm/fact" not in log.metrics
    assert len(reader.pairs) == 2 and reward.needs == ("question", "task")


@pytest.mark.parametrize("text", ["", "   ", "Yes.", "A: Qatar", "```\nx = 1\n```"])
def test_a_completion_without_a_measurable_step_earns_0_and_is_logged_as_undefined(text: str) -> None:
    log = Log()
    result = silent(NLIScorer(Reader(by_heart)))(["?"] * 2, [text, "The host was Qatar."], **rows(2), **log.arguments)
    assert result[0] == 0.0 < result[1]
    assert log.metrics["ra_msd/undefined"] == 0.5
    assert isinstance(log.columns["ra_msd_note"][0], str) and log.columns["ra_msd_note"][1] is None


def test_an_undefined_channel_is_dropped_inside_a_step_and_nothing_of_it_is_logged() -> None:
    log = Log()
    (result,) = silent(Fixed(logic=0.8, fact=UNMEASURED))(["?"], ["The host was Qatar."], **rows(1), **log.arguments)
    assert result == pytest.approx(0.8)
    assert log.metrics["ra_msd/logic"] == 0.8 and "ra_msd/fact" not in log.metrics


def test_a_row_without_a_corpus_is_not_a_row_whose_corpus_is_empty() -> None:
    log = Log()
    silent(NLIScorer(Reader()))(["?"] * 2, ["The host was Qatar."] * 2, **rows(2, evidence=[None, []]), **log.arguments)
    facts = [json.loads(table)["steps"][0]["channels"]["fact"] for table in log.columns["ra_msd_steps"]]
    assert facts == [None, 0.5] and log.metrics["ra_msd/fact"] == 0.5


def test_the_confidence_of_the_sampled_tokens_becomes_epist() -> None:
    log, text = Log(), "The host was Qatar."
    tokens = TokenConfidence(text, (3, 8, 12, 18, 19), (0.0, math.log(0.25), 0.0, math.log(0.25), 0.0))
    reward = StepReward(NLIScorer(Reader(by_heart)))
    reward(["?"], [text], **rows(1), token_confidence=[tokens], **log.arguments)
    assert log.metrics["ra_msd/epist"] == pytest.approx(0.0625 ** (1 / 5)), "fact is 1, so epist is c_t"


def test_without_token_probabilities_epist_is_left_out_with_a_warning() -> None:
    log = Log()
    with pytest.warns(UserWarning, match="'ra_msd' gets no token probabilities, so epist is undefined"):
        StepReward(NLIScorer(Reader(by_heart)))(["?"], ["The host was Qatar."], **rows(1), **log.arguments)
    step = json.loads(log.columns["ra_msd_steps"][0])["steps"][0]
    assert step["undefined"]["epist"] == "there are no token probabilities" and "ra_msd/epist" not in log.metrics


@pytest.mark.parametrize("passed", [[1], [None], [1, 2], [], 1, "x"], ids=str)
def test_a_confidence_is_refused_unless_there_is_one_for_each_completion(passed: Any) -> None:
    assert refused(lambda: StepReward(Fixed())(["?"], ["The host was Qatar."], **rows(1), token_confidence=passed)) == (
        "The column 'token_confidence' for the reward 'ra_msd' must have one TokenConfidence for each of 1 "
        f"completions; got {passed!r}. Give one for each, or leave the column out."
    )


def test_a_scorer_that_fails_ends_the_training_with_a_sentence() -> None:
    with pytest.raises(ScoringError) as caught:
        silent(Broken())(["?"] * 2, [TEXT] * 2, **rows(2))
    assert str(caught.value) == (
        "The scorer of the reward 'ra_msd' failed on 2 completions (RuntimeError: out of memory); fix it, and resume "
        "the run from its last checkpoint."
    )
    assert isinstance(caught.value.__cause__, RuntimeError)


@dataclass
class Returning:
    """A scorer that returns what a test says."""

    tables: Any

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        tables: list[StepTable] = self.tables
        return tables


@pytest.mark.parametrize(
    ("tables", "said_of_it"),
    [
        (None, "Returning.score returned None; expected a list of StepTable"),
        ([], "Returning.score returned 0 tables for 1 texts"),
        ([0.5], "expected a list of StepTable"),
        ([Fixed(logic=math.nan)], "nan"),
        ([Fixed(fact=math.inf)], "inf"),
        ([Fixed(fact=7.0)], "7.0"),
    ],
    ids=["none", "too few", "numbers", "nan", "infinite", "out of range"],
)
def test_what_a_scorer_may_not_return_never_reaches_the_trainer(tables: Any, said_of_it: str) -> None:
    scorer = tables[0] if tables and isinstance(tables[0], Fixed) else Returning(tables)
    with pytest.raises(ScoringError, match=said_of_it):
        silent(scorer)(["?"], ["The host was Qatar."], **rows(1))


def test_evidence_that_is_not_passages_is_named_with_its_row() -> None:
    message = r"evidence\[1\] cannot be used .evidence\[0\] must be .*got 7 .*[Ff]ix the row"
    with pytest.raises(ArgumentError, match=message):
        silent(Fixed())(["?"] * 2, [TEXT] * 2, **rows(2, evidence=[["fine"], [7]]))


def test_settings_that_mean_nothing_are_refused() -> None:
    nobody: Any = object()
    message = r"scorer must be an object with score\(reasonings\), such as NLIScorer; got <object"
    with pytest.raises(ArgumentError, match=message):
        StepReward(nobody)


WORDS = "The host was Qatar . \n Step 1: 7 #### A: Dubai \t ``` $ ' ’ é".split(" ")


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=4), st.booleans())
def test_whatever_is_written_and_read_each_reward_is_finite_and_in_range(texts: list[str], corpus: bool) -> None:
    reader = Reader(by_chance("contradiction", "neutral", "entailment", "nothing"))
    log = Log()
    columns = rows(len(texts), evidence=[["The host was Qatar."] if corpus else None] * len(texts))
    for reward in (silent(NLIScorer(reader)), process_reward(reader)):
        result = reward(["?"] * len(texts), texts, **columns, **log.arguments)
        assert all(type(one) is float and 0 <= one <= 1 for one in result)
    assert all(type(value) is float and math.isfinite(value) for value in log.metrics.values())


UNKNOWN = Undefined("not measured")

scores = st.none().map(lambda _: UNKNOWN) | st.floats(0, 1)
pairs = st.lists(st.tuples(scores, scores), min_size=1, max_size=5)


def conditioned(pairs: Sequence[tuple[Score, Score]], at_least: float = 0.5) -> list[float]:
    """The reward of completions whose condition and reward are given."""
    condition, reward = (
        Given(name, column) for name, column in zip(("on", "reward"), zip(*pairs, strict=True), strict=True)
    )
    return rewarded(Conditioned(reward, on=condition, at_least=at_least), len(pairs))


@given(pairs, st.floats(-1, 2))
@example([(0.5, 0.25), (0.49, 1.0), (1.0, 0.75)], 0.5)
def test_each_completion_earns_its_reward_or_nothing(drawn: list[tuple[Score, Score]], at_least: float) -> None:
    for (on, reward), result in zip(drawn, conditioned(drawn, at_least), strict=True):
        passes = not isinstance(on, Undefined) and on >= at_least
        assert result == (reward if passes and not isinstance(reward, Undefined) else 0.0)


def test_what_is_undefined_earns_nothing_and_is_logged_as_undefined() -> None:
    log = Log()
    reward = Conditioned(Given("steps", [0.5, UNKNOWN, UNKNOWN, 0.5]), on=Given("on", [1, 1, 0, UNKNOWN]), name="both")
    assert rewarded(reward, 4, **log.arguments) == [0.5, 0, 0, 0]
    assert log.metrics["both/undefined"] == 0.5, "where the condition fails, the reward need not be known"
    assert log.metrics["both/passed"] == pytest.approx(2 / 3) and log.metrics["both/on"] == pytest.approx(2 / 3)
    expected = (0.5, 0.5, 0.25)
    assert tuple(log.metrics[f"both/{name}"] for name in ("steps", "steps/undefined", "on/undefined")) == expected


def test_a_row_without_gold_favours_no_completion_of_it() -> None:
    reward = Conditioned(StepReward(Fixed(), confidence=False), on=orm)
    texts = ["The host was Qatar.\nA: Qatar", "The host was Dubai.\nA: Dubai"]
    assert reward(["?"] * 2, texts, **rows(2, gold=[None, None])) == [0.0, 0.0]
    assert reward(["?"] * 2, texts, **rows(2)) == [1.0, 0.0]


def test_a_wrong_answer_earns_nothing_for_any_steps_and_is_logged_with_them() -> None:
    log = Log()
    steps = StepReward(NLIScorer(Reader(by_heart)), confidence=False)
    texts = ["The host was Qatar.\nA: Chile", "The host was Qatar.\nA: Qatar"]
    alone = steps(["?"] * 2, texts, **rows(2))
    reward = Conditioned(steps, on=orm)
    assert reward(["?"] * 2, texts, **rows(2), **log.arguments) == [0.0, alone[1]] and alone[0] > 0.5
    assert log.metrics["ra_msd_conditioned/orm/exact_match"] == 0.5
    assert log.metrics["ra_msd_conditioned/ra_msd"] == pytest.approx(sum(alone) / 2)
    assert log.columns["ra_msd_conditioned_orm_answer"] == ["Chile", "Qatar"]


def test_a_reward_that_is_its_own_condition_is_a_threshold() -> None:
    one = Given("one", [0.4, 0.6])
    assert rewarded(Conditioned(one, on=one, at_least=0.5), 2) == [0.0, 0.6] and one.calls == 1


@pytest.mark.parametrize("at_least", [math.nan, math.inf, -math.inf, True, "1", None])
def test_a_threshold_that_is_not_a_finite_number_is_refused(at_least: Any) -> None:
    sentence = refused(lambda: Conditioned(format, on=orm, at_least=at_least))
    assert sentence == f"at_least must be a finite number; got {at_least!r}. Give one, such as 1.0."


def test_it_is_pickled_named_and_weighed_as_the_other_rewards() -> None:
    reward = Conditioned(format, on=orm)
    again = pickle.loads(pickle.dumps(reward))  # noqa: S301
    assert (again.__name__, again.needs, again.at_least) == ("format_conditioned", ("gold", "task"), 1.0)
    assert weights_of([orm, reward, Conditioned(format, on=orm, name="other")]) == [3.0, 1.0, 1.0]
    with pytest.raises(ArgumentError, match="2 rewards are named 'orm'"):
        Conditioned(Given("orm", [1.0]), on=orm)


class Given(Reward):
    """A reward with these scores, whatever the completions are."""

    weight: ClassVar[float] = 1.0

    def __init__(self, name: str, scores: Sequence[Score]) -> None:
        super().__init__(name, [])
        self.scores, self.calls = list(scores), 0

    def measure(self, call: Call) -> RewardResults:
        self.calls += 1
        return RewardResults(Scores.of(self.scores))


def rewarded(reward: Reward, n: int, **arguments: object) -> list[float]:
    """What a reward gives n completions of one prompt."""
    return reward(["?"] * n, ["text"] * n, **arguments)
