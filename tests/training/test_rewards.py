"""Rewards of outcome, format and steps: finite or undefined with a reason, not raised by padding, or on a condition."""

import json
import math
import pickle
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels import CHANNELS
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.rewards import FORMAT_WEIGHT, OUTCOME_WEIGHT
from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError, ScoringError
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import Conditioned, OutcomeReward, Reward, StepReward, TokenConfidence, format, orm, weights_of
from eldgr_dspy.training.named_rewards import process_reward
from eldgr_dspy.training.reward_base import RewardResults
from eldgr_dspy.training.reward_calls import Call
from tests.case_tables import tables_of
from tests.refusing import refuses
from tests.scoring.readers import Reader, by_chance
from tests.training.calling import MISSING, Failing, Log, Steady, by_heart, rows, speak

TEXT = "The host was Qatar.\nThe capital of Qatar is Dubai.\nA: Dubai"
WORDS = "The host was Qatar . \n Step 1: 7 #### A: Dubai \t ``` $ ' ’ é".split(" ")
EMPTY = Undefined("not measured")
scores = st.none().map(lambda _: EMPTY) | st.floats(0, 1)
pairs = st.lists(st.tuples(scores, scores), min_size=1, max_size=5)
SHORT = "The host was Qatar.\nThe capital of it is Doha.\nA: Doha"
TEXTS = tables_of("training")["texts to pad"]
PADDING = TEXTS["padding"]
padded_texts = st.builds(str.format, st.sampled_from(TEXTS["layouts"]), *[st.sampled_from(TEXTS["steps"])] * 3)
answers = st.sampled_from(["", "\nA: Doha", "\n#### 7", "\nThe answer is Doha."])


def silent(scorer: Any, **settings: Any) -> StepReward:
    """A reward that asks nobody how likely tokens were."""
    return StepReward(scorer, confidence=False, **settings)


def test_completions_are_scored_in_one_call_for_the_mean_over_their_steps_and_channels_are_logged() -> None:
    scorer = Steady()
    result = silent(scorer)(["?"] * 3, [speak(TEXT), TEXT, "So Qatar it was."], **rows(3))
    assert result == [1.0, 1.0, 1.0] and scorer.calls == 1
    assert scorer.inputs[0] == Reasoning(TEXT, "Who was the host?", (Passage("", "The host was Qatar."),), "Dubai")
    assert scorer.inputs[2].answer == "", "an answer that is only guessed is nothing to make progress towards"
    log = Log()
    reward = silent(NLIScorer(Reader(by_heart)))
    (total,) = reward(["?"], [TEXT], **rows(1), **log.arguments)
    table = json.loads(log.columns["ra_msd_steps"][0])
    first, second = (step["reward"] for step in table["steps"])
    assert second == 0.0 and total == table["reward"] == pytest.approx((first + second) / 2)
    for name in set(CHANNELS) - {"epist"}:
        numbers = [step["channels"][name] for step in table["steps"] if step["channels"][name] is not None]
        assert log.metrics[f"ra_msd/{name}"] == pytest.approx(sum(numbers) / len(numbers)), name
    assert "ra_msd/epist" not in log.metrics
    assert (log.metrics["ra_msd/steps"], log.metrics["ra_msd/undefined"]) == (2, 0)


def test_the_process_reward_is_the_mean_of_logic_and_reads_no_passage() -> None:
    reader, log = Reader(by_heart), Log()
    columns = {name: column for name, column in rows(1).items() if name != "evidence"}
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


def test_an_undefined_channel_is_dropped_and_a_row_without_a_corpus_is_not_one_whose_corpus_is_empty() -> None:
    log = Log()
    (result,) = silent(Steady(logic=0.8, fact=MISSING))(["?"], ["The host was Qatar."], **rows(1), **log.arguments)
    assert result == pytest.approx(0.8)
    assert log.metrics["ra_msd/logic"] == 0.8 and "ra_msd/fact" not in log.metrics
    log = Log()
    silent(NLIScorer(Reader()))(["?"] * 2, ["The host was Qatar."] * 2, **rows(2, evidence=[None, []]), **log.arguments)
    facts = [json.loads(table)["steps"][0]["channels"]["fact"] for table in log.columns["ra_msd_steps"]]
    assert facts == [None, 0.5] and log.metrics["ra_msd/fact"] == 0.5


def test_epist_is_the_confidence_of_the_sampled_tokens_and_left_out_with_a_warning_without() -> None:
    log, text = Log(), "The host was Qatar."
    tokens = TokenConfidence(text, (3, 8, 12, 18, 19), (0.0, math.log(0.25), 0.0, math.log(0.25), 0.0))
    reward = StepReward(NLIScorer(Reader(by_heart)))
    reward(["?"], [text], **rows(1), token_confidence=[tokens], **log.arguments)
    assert log.metrics["ra_msd/epist"] == pytest.approx(0.0625 ** (1 / 5)), "fact is 1, so epist is c_t"
    log = Log()
    with pytest.warns(UserWarning, match="'ra_msd' gets no token probabilities, so epist is undefined"):
        StepReward(NLIScorer(Reader(by_heart)))(["?"], ["The host was Qatar."], **rows(1), **log.arguments)
    step = json.loads(log.columns["ra_msd_steps"][0])["steps"][0]
    assert step["undefined"]["epist"] == "there are no token probabilities" and "ra_msd/epist" not in log.metrics


def test_a_scorer_that_fails_ends_the_training_with_a_sentence_and_a_condition_is_pickled_and_weighed() -> None:
    with pytest.raises(ScoringError) as info:
        silent(Failing())(["?"] * 2, [TEXT] * 2, **rows(2))
    assert str(info.value) == (
        "The scorer of the reward 'ra_msd' failed on 2 completions (RuntimeError: out of memory); fix it, and resume "
        "the run from its last checkpoint."
    )
    assert isinstance(info.value.__cause__, RuntimeError)
    reward = Conditioned(format, on=orm)
    again = pickle.loads(pickle.dumps(reward))  # noqa: S301
    assert (again.__name__, again.needs, again.at_least) == ("format_conditioned", ("gold", "task"), 1.0)
    assert weights_of([orm, reward, Conditioned(format, on=orm, name="other")]) == [3.0, 1.0, 1.0]
    refuses(ArgumentError, "2 rewards are named 'orm'", Conditioned, Preset("orm", [1.0]), on=orm)


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=4), st.booleans())
def test_whatever_is_written_and_read_each_reward_is_finite_and_in_range(texts: list[str], corpus: bool) -> None:
    reader = Reader(by_chance("contradiction", "neutral", "entailment", "nothing"))
    log = Log()
    columns = rows(len(texts), evidence=[["The host was Qatar."] if corpus else None] * len(texts))
    for reward in (silent(NLIScorer(reader)), process_reward(reader)):
        result = reward(["?"] * len(texts), texts, **columns, **log.arguments)
        assert all(type(one) is float and 0 <= one <= 1 for one in result)
    assert all(type(value) is float and math.isfinite(value) for value in log.metrics.values())


@given(pairs, st.floats(-1, 2))
@example([(0.5, 0.25), (0.49, 1.0), (1.0, 0.75)], 0.5)
def test_each_completion_earns_its_reward_or_nothing(values: list[tuple[Score, Score]], at_least: float) -> None:
    condition, rewards = map(Preset, ("on", "reward"), zip(*values, strict=True))
    results = apply(Conditioned(rewards, on=condition, at_least=at_least), len(values))
    for (on, reward), result in zip(values, results, strict=True):
        passes = not isinstance(on, Undefined) and on >= at_least
        assert result == (reward if passes and not isinstance(reward, Undefined) else 0.0)


def test_undefined_parts_and_wrong_answers_earn_nothing_and_are_logged() -> None:
    log = Log()
    reward = Conditioned(Preset("steps", [0.5, EMPTY, EMPTY, 0.5]), on=Preset("on", [1, 1, 0, EMPTY]), name="both")
    assert apply(reward, 4, **log.arguments) == [0.5, 0, 0, 0]
    assert log.metrics["both/undefined"] == 0.5, "where the condition fails, the reward need not be known"
    assert log.metrics["both/passed"] == pytest.approx(2 / 3) and log.metrics["both/on"] == pytest.approx(2 / 3)
    assert [log.metrics[f"both/{one}"] for one in ("steps", "steps/undefined", "on/undefined")] == [0.5, 0.5, 0.25]
    log = Log()
    steps = StepReward(NLIScorer(Reader(by_heart)), confidence=False)
    texts = ["The host was Qatar.\nA: Chile", "The host was Qatar.\nA: Qatar"]
    alone = steps(["?"] * 2, texts, **rows(2))
    reward = Conditioned(steps, on=orm)
    assert reward(["?"] * 2, texts, **rows(2), **log.arguments) == [0.0, alone[1]] and alone[0] > 0.5
    assert log.metrics["ra_msd_conditioned/orm/exact_match"] == 0.5
    assert log.metrics["ra_msd_conditioned/ra_msd"] == pytest.approx(sum(alone) / 2)
    assert log.columns["ra_msd_conditioned_orm_answer"] == ["Chile", "Qatar"]


def test_a_row_without_gold_favours_no_completion_and_a_reward_that_is_its_own_condition_is_a_threshold() -> None:
    reward = Conditioned(StepReward(Steady(), confidence=False), on=orm)
    texts = ["The host was Qatar.\nA: Qatar", "The host was Dubai.\nA: Dubai"]
    assert reward(["?"] * 2, texts, **rows(2, gold=[None, None])) == [0.0, 0.0]
    assert reward(["?"] * 2, texts, **rows(2)) == [1.0, 0.0]
    one = Preset("one", [0.4, 0.6])
    assert apply(Conditioned(one, on=one, at_least=0.5), 2) == [0.0, 0.6] and one.calls == 1


class Preset(Reward):
    weight: ClassVar[float] = 1.0

    def __init__(self, name: str, scores: Sequence[Score]) -> None:
        super().__init__(name, [])
        self.scores, self.calls = list(scores), 0

    def measure(self, call: Call) -> RewardResults:
        self.calls += 1
        return RewardResults(Scores.of(self.scores))


def apply(reward: Reward, n: int, **arguments: object) -> list[float]:
    return reward(["?"] * n, ["text"] * n, **arguments)


def test_the_weights_are_the_papers_names_differ_and_this_is_logged_beside_the_rewards() -> None:
    assert weights_of([orm, format]) == [OUTCOME_WEIGHT, FORMAT_WEIGHT] == [3.0, 0.5]
    assert weights_of([orm, OutcomeReward(name="numeric")]) == [3.0, 3.0]
    refuses(ArgumentError, "2 rewards are named 'orm'.*give each a name of its own", weights_of, [orm, OutcomeReward()])
    log, columns = Log(), {"gold": ["7", "7"], "task": ["arithmetic"] * 2}
    assert format(["?"] * 2, ["#### 7", "so 7"], **columns, **log.arguments) == [1.0, 0.0]
    orm(["?"] * 2, ["#### 7", "so 8"], **columns, **log.arguments)
    assert min(log.values.pop("orm/seconds") + log.values.pop("format/seconds")) >= 0
    assert log.metrics == {"format/undefined": 0, "orm/undefined": 0, "orm/exact_match": 0.5, "orm/answered": 1}
    assert log.columns == {"format_form": ["hashes", "last_number"], "orm_answer": ["7", "8"], "orm_note": [None, None]}


@pytest.mark.parametrize("gold", [None, [], ()])
def test_a_row_without_gold_is_undefined_and_earns_nothing_whatever_is_written(gold: Any) -> None:
    """As all completions of the row do, so that none of them gains by it."""
    log, columns = Log(), {"gold": [gold, "8", "8"], "task": ["arithmetic"] * 3}
    assert orm(["?"] * 3, ["#### 7", "#### 8", "#### 7"], **columns, **log.arguments) == [0.0, 1.0, 0.0]
    assert log.metrics["orm/undefined"] == pytest.approx(1 / 3) and log.metrics["orm/exact_match"] == 0.5
    assert log.columns["orm_note"] == ["the row has no gold answer; give one in the column gold", None, None]
    orm(["?"], ["#### 7"], gold=["8"], task=["arithmetic"], **log.arguments)  # as by another process
    assert log.metrics["orm/undefined"] == 0.25 and log.metrics["orm/exact_match"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("text", ["", "I do not know."])
def test_without_an_answer_gold_or_completions_the_log_says_so(text: str) -> None:
    log = Log()
    assert orm(["?"], [text], gold=["7"], task=["arithmetic"], **log.arguments) == [0.0]
    assert log.metrics["orm/answered"] == 0 and log.columns["orm_answer"] == [None]
    note = "the completion has no answer; ask for one in the prompt, as '#### x' in arithmetic or 'A: x'"
    assert log.columns["orm_note"] == [note]
    log = Log()
    assert orm(["?"], ["#### 7"], gold=[None], task=["arithmetic"], **log.arguments) == [0.0]
    assert log.metrics["orm/undefined"] == 1 and "orm/exact_match" not in log.metrics
    log = Log()
    assert orm([], [], gold=[], task=[], **log.arguments) == [] and set(log.metrics) == {"orm/seconds"}


def rewards_of(text: str, read: Any = by_heart) -> dict[str, float]:
    rewards = (StepReward(NLIScorer(Reader(read)), confidence=False), process_reward(Reader(read)))
    return {reward.__name__: reward(["?"], [text], **rows(1))[0] for reward in rewards}


@pytest.mark.parametrize("place", [0, 1, 2, 3], ids=["first", "between", "before the answer", "last"])
def test_thirty_lines_of_hmm_never_raise_the_reward(place: int) -> None:
    """They count as 30 steps that earn nothing: two steps of 32 are measured."""
    lines = SHORT.split("\n")
    longer = "\n".join([*lines[:place], *["Hmm."] * 30, *lines[place:]])
    assert rewards_of(longer) == {name: pytest.approx(reward * 2 / 32) for name, reward in rewards_of(SHORT).items()}


def test_padding_does_not_make_one_step_of_sentences_and_two_words_are_a_step() -> None:
    """As three steps they earn a third, as one all of it: divided by two steps, that was more."""

    def read(premise: str, hypothesis: str) -> Any:
        return "contradiction" if hypothesis.startswith(("So it", "Then")) else "entailment"

    text = "The host was Qatar. So it is hot. Then it is cold."
    before, after = rewards_of(text, read)["prm"], rewards_of(f"{text}\nHmm.", read)["prm"]
    assert [before, after] == pytest.approx([1 / 3, 1 / 4])

    def judge(premise: str, hypothesis: str) -> Any:
        return "contradiction" if "wrong" in hypothesis else "neutral"

    low = "It is wrong here."
    assert rewards_of(low, judge) == rewards_of("Hmm.\n" * 30 + low, judge) == {"ra_msd": 0.0, "prm": 0.0}
    assert all(reward > 0.35 for reward in rewards_of("Hmm, well.\n" * 30 + low, judge).values())


@example("So.\nSo.\nSo.", "", ["Step 9:"], 1)
@given(padded_texts, answers, st.lists(st.sampled_from(PADDING), min_size=1, max_size=5), st.integers(1, 60))
def test_no_appended_padding_raises_a_reward(text: str, answer: str, padding: list[str], times: int) -> None:
    read = by_chance("contradiction", "neutral", "entailment")
    before = rewards_of(text + answer, read)
    after = rewards_of("\n".join([text + answer, *padding * times]), read)
    assert all(after[name] <= before[name] + 1e-12 for name in before)


def test_a_step_that_cannot_be_measured_counts_as_0() -> None:
    """A display of LaTeX is a step without words; so is what the scorer left undefined."""
    log, columns = Log(), rows(1)
    reward = silent(Steady(MISSING, MISSING))
    assert reward(["?"], [SHORT], **columns, **log.arguments) == [0.0] and log.metrics["ra_msd/undefined"] == 1
    assert silent(Steady())(["?"], [SHORT], **columns, **log.arguments) == [1.0] and log.metrics["ra_msd/padding"] == 0
    halves, whole = rewards_of("The host was Qatar.\n\\[ x = 7 \\]"), rewards_of("The host was Qatar.")
    assert halves == {name: pytest.approx(reward / 2) for name, reward in whole.items()}


def test_the_log_and_the_confidences_leave_padding_out() -> None:
    log = Log()
    silent(Steady())(["?"] * 2, [SHORT, f"Hmm.\nSo\n{SHORT}"], **rows(2), **log.arguments)
    assert (log.metrics["ra_msd/padding"], log.metrics["ra_msd/steps"]) == (1, 2)
    tables = [json.loads(table) for table in log.columns["ra_msd_steps"]]
    assert [(table["reward"], table["padding"], len(table["steps"])) for table in tables] == [(1, 0, 2), (0.5, 2, 2)]
    scorer, text = Steady(), "a b\nHmm.\nc d"
    tokens = TokenConfidence(text, (4, 9, 12), (0.0, -9.0, 0.0))
    StepReward(scorer)(["?"], [text], **rows(1), token_confidence=[tokens])
    assert list(scorer.inputs[0].confidences or ()) == [1.0, 1.0]
