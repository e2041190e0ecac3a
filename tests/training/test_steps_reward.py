"""The reward of the steps: one call of the scorer a batch, finite numbers, and undefined where nothing is measured."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import CHANNELS
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable
from eldgr_dspy.errors import ArgumentError, ScoringError
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import StepReward, TokenConfidence
from eldgr_dspy.training.named_rewards import process_reward
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


# --- c_t --------------------------------------------------------------------------------------------------------------


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


# --- what goes wrong --------------------------------------------------------------------------------------------------


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
    with pytest.raises(
        ArgumentError, match=r"evidence\[1\] cannot be used .evidence\[0\] must be .*got 7 .*[Ff]ix the row"
    ):
        silent(Fixed())(["?"] * 2, [TEXT] * 2, **rows(2, evidence=[["fine"], [7]]))


def test_settings_that_mean_nothing_are_refused() -> None:
    nobody: Any = object()
    with pytest.raises(
        ArgumentError, match=r"scorer must be an object with score\(reasonings\), such as NLIScorer; got <object"
    ):
        StepReward(nobody)


WORDS = "The host was Qatar . \n Step 1: 7 #### A: Dubai \t ``` $ ' ’ é".split(" ")
texts_of_words = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(st.lists(texts_of_words, min_size=1, max_size=4), st.booleans())
def test_whatever_is_written_and_read_each_reward_is_finite_and_in_range(texts: list[str], corpus: bool) -> None:
    reader = Reader(by_chance("contradiction", "neutral", "entailment", "nothing"))
    log = Log()
    columns = rows(len(texts), evidence=[["The host was Qatar."] if corpus else None] * len(texts))
    for reward in (silent(NLIScorer(reader)), process_reward(reader)):
        result = reward(["?"] * len(texts), texts, **columns, **log.arguments)
        assert all(type(one) is float and 0 <= one <= 1 for one in result)
    assert all(type(value) is float and math.isfinite(value) for value in log.metrics.values())
