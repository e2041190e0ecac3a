"""Judges that ask no LM: votes that count, best of n as DSPy chooses it, and the selector in the style of DRM."""

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.programs.judges.counting_judges import WEIGHINGS, BestOf, WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.ballots import Ballot, Logprobs, Statement
from eldgr_dspy.rule.consultations import Verdict
from eldgr_dspy.rule.replies import read_reply
from tests.case_tables import each_case
from tests.judges.balloting import READS, ballot, classes, majority, shuffle, stated_by, stating
from tests.modules import Does
from tests.naive import naive_votes as naive
from tests.refusing import refusal, refuses, says

TOKENS = {"a": (0.5, 0.5), "b": (0.9, 0.9, 0.3), "c": (0.6, 0.6)}
STEPS = {"a": [0.1], "b": [0.9, 0.2, 0.95], "c": [0.5, 0.5, 0.5], "d": [0.45, 0.6]}
SPLIT = ("aaabbc", (0.1, 0.1, 0.1, 0.5, 0.4, 0.8))  # sums: a .3, b .9, c .8
SURE = ("aaabbc", (0.3, 0.3, 0.3, 0.6, 0.5, 0.9))  # sums: a .9, b 1.1, c .9
STEADY = ("aaabbc", (0.15, 0.12, 0.1, 0.3, 0.2, 0.9))  # sums: a .37, b .5, c .9
FOLDS = ballot("aabcd", [Statement(scores={"s": STEPS[key]}) for key in "aabcd"])
TOKENS_BALLOT = ballot(
    "aabc", [Statement(logprobs=Logprobs.of_tokens([*map(math.log, TOKENS[key])])) for key in "aabc"]
)


def count(formula: str, votes: Ballot) -> Any:
    return WeightedVote(formula)(ballot=votes)


def winner(formula: str, votes: Ballot) -> str:
    return str(votes.classes[count(formula, votes).preferred])


@each_case("judges", "formulas and their neighbours")
def test_no_two_formulas_are_alike(formula: str, pool: str, expected: str, neighbour: str, other: str) -> None:
    votes = {"TOKENS": TOKENS_BALLOT, "FOLDED": FOLDS}.get(pool) or stated_by(
        formula.partition(":")[0], *{"SPLIT": SPLIT, "SURE": SURE, "STEADY": STEADY}[pool]
    )
    assert (winner(formula, votes), winner(neighbour, votes), majority(votes)) == (expected, other, "a")


def test_parameters_and_decimals_change_what_is_preferred() -> None:
    """.1 + .2 is as much as .3, although it is not in binary; more votes win, then the earliest."""
    # cisc, T = 1, over e^.9: c 1; b e^-.3 + e^-.4 = 1.41; a 3 e^-.6 = 1.65.
    assert [winner(f"cisc{t}", stated_by("cisc", *SURE)) for t in ("", ":1", ":0.1")] == ["a", "a", "c"]
    # borda, p = 0: 3, 2 and 1 points. p = 3: c 216; b 125 + 64 = 189; a 27 + 8 + 1 = 36.
    assert [winner(f"borda:s:{p}", stated_by("borda", *STEADY)) for p in (0, 0.5, 3)] == ["a", "b", "c"]
    votes = stated_by("bcrl_max", "aab", (0.2, 0.2, 0.5))
    assert count("bcrl_abstaining", votes).preferred == count("bcrl_max", votes).preferred == 2
    reply = count("bcrl_abstaining:0.51", votes)
    assert (reply.abstained, "preferred" in reply) == ("the highest confidence is 0.5, below 0.51", False)
    assert winner("weighted_best_of_n:s", stated_by("best_of_n", "baa", (0.3, 0.1, 0.2))) == "a"
    assert winner("bcrl_vote", stated_by("bcrl_vote", "bbaa", (0.15, 0.15, 0.1, 0.2))) == "b"
    assert winner("bcrl_vote", stated_by("bcrl_vote", "aabb", (0.1, 0.2, 0.15, 0.15))) == "a"


few = settings(max_examples=40)
FORMULAS = (*READS, "borda:1", "borda:2", "cisc:0.1", "cisc:2", "bcrl_abstaining:0.3")


def pools(formula: str, *, missing: bool = True) -> st.SearchStrategy[Any]:
    """Classes with values in tenths; scores may be negative, and values may be missing."""
    name = formula.partition(":")[0]
    tenths = st.integers(-3 if WEIGHINGS[name].column == "scores" else 0, 10).map(lambda n: str(n / 10))
    values = st.lists(tenths | st.none() if missing else tenths, min_size=6, max_size=6)
    return st.tuples(classes(), st.one_of(values, st.just([None] * 6) if missing else values))


def word_for(reply: Any) -> int | str:
    """What is said in the words of the naive version."""
    reason = str(reply.get("abstained", ""))
    assert ("preferred" in reply) is not bool(reason)
    if not reason:
        return int(reply.preferred)
    words = reason.split()
    kinds = {"no": "missing", "weights": "negative"}
    if words[0] in kinds:
        return f"{kinds[words[0]]} {words[words.index('candidate') + 1]}"
    reasons = {"not applicable: ": "none", "the highest confidence": "low", "there is no candidate": "empty"}
    return next(kind for begin, kind in reasons.items() if reason.startswith(begin))


@pytest.mark.parametrize("formula", FORMULAS)
@few
@given(st.data())
def test_a_formula_is_its_naive_version(formula: str, data: st.DataObject) -> None:
    keys, values = data.draw(pools(formula))
    name, _, parameter = formula.partition(":")
    given_values = [None if value is None else float(value) for value in values[: len(keys)]]
    votes = stated_by(name, keys, given_values)
    full = ":".join(filter(None, (READS[name], parameter)))
    assert word_for(count(full, votes)) == naive.prefer(formula, votes.classes, values[: len(keys)])


@pytest.mark.parametrize("formula", READS)
def test_a_pool_without_the_column_is_told_from_a_candidate_without_it_and_large_floats_count(formula: str) -> None:
    judge = WeightedVote(READS[formula])
    assert judge(ballot=ballot("ab")).abstained.startswith("not applicable: the pool states no ")
    partly = stated_by(formula, "-ab", (0.5, 0.5, None))
    assert re.fullmatch(r"no [\w '-]+ (is|are) stated of candidate 2", judge(ballot=partly).abstained)
    # A candidate that does not vote needs no value.
    assert judge(ballot=stated_by(formula, "-ab", (None, 0.5, 0.6))).preferred in (1, 2)
    highest = 1.7e308 if WEIGHINGS[formula].column == "scores" else 1.0
    assert count(READS[formula], stated_by(formula, "abb", (highest, highest, highest))).preferred == 1


@pytest.mark.parametrize("formula", READS)
@few
@given(classes(least=1), st.integers(0, 10**6))
def test_another_order_of_the_candidates_prefers_the_same_candidate(formula: str, keys: str, seed: int) -> None:
    """Values are different powers of two, so that no sums are equal."""
    values, order = [2.0**-index for index in shuffle(len(keys), seed + 1)], shuffle(len(keys), seed)
    reply = count(READS[formula], stated_by(formula, keys, values))
    other = stated_by(formula, "".join(keys[i] for i in order), [values[i] for i in order])
    again = count(READS[formula], other)
    if "preferred" in reply:
        assert order[again.preferred] == reply.preferred
    else:
        assert again.abstained == reply.abstained


@pytest.mark.parametrize("formula", READS)
@few
@given(st.data())
def test_a_higher_value_of_the_preferred_candidate_keeps_it(formula: str, data: st.DataObject) -> None:
    keys, values = data.draw(pools(formula, missing=False))
    floats = [float(value) for value in values[: len(keys)]]
    reply = count(READS[formula], stated_by(formula, keys, floats))
    if "preferred" in reply:
        floats[reply.preferred] = min(1.0, floats[reply.preferred] + 0.25)
        assert count(READS[formula], stated_by(formula, keys, floats)).preferred == reply.preferred


@pytest.mark.parametrize("formula", ["best_of_n:s", "borda:s"])
@few
@given(classes(least=1), st.lists(st.integers(-20, 20), min_size=6, max_size=6))
def test_scores_on_another_scale_are_ranked_as_before(formula: str, keys: str, values: list[int]) -> None:
    """One question's scores may be from another model than those of the next."""
    judge, other = WeightedVote(formula), stated_by("best_of_n", "aab", (0.2, 0.3, 0.9))
    before = judge(ballot=other)
    tenths = stated_by("best_of_n", keys, [value / 10 for value in values[: len(keys)]])
    cubes = stated_by("best_of_n", keys, [float(value**3 + 1000) for value in values[: len(keys)]])
    assert word_for(judge(ballot=tenths)) == word_for(judge(ballot=cubes))
    assert dict(judge(ballot=other)) == dict(before)


@each_case("judges", "values that cannot be used")
def test_values_that_cannot_be_used_are_an_abstention(formula: str, value: Any, reason: str) -> None:
    reply = count(formula, ballot("ab", [stating("best_of_n", 0.5), stating("best_of_n", value)]))
    assert reply.abstained.startswith(reason)
    assert "preferred" not in reply


def test_the_reason_names_the_summary_that_the_pool_lacks_and_the_facts_what_formulas_need() -> None:
    for formula, logprobs, lacking in (
        ("soft_sc", Logprobs(least=-1.0), "mean probability of tokens"),
        ("soft_sc:min", Logprobs(probability=0.5), "lowest log-probability"),
        ("soft_sc", None, "log-probabilities"),
    ):
        reply = count(formula, ballot("ab", [Statement(logprobs=logprobs)] * 2))
        assert reply.abstained == f"not applicable: the pool states no {lacking}"
    votes = stated_by("best_of_n", "ab-", ([0.1, 0.2], [0.3, 0.1], 0.5))
    for formula in ("best_of_n:s", "weighted_best_of_n:s", "borda:s"):
        reason = "score 's' has a number for each step; min, last or product makes one of them"
        assert count(formula, votes).abstained == f"not applicable: {reason}"
    assert count("best_of_n:s:min", votes).preferred == 0
    votes = stated_by("best_of_n", "aab", (0.5, [0.9, 0.8], 0.6))
    assert [count(f"best_of_n:s:{fold}", votes).preferred for fold in ("min", "last", "product")] == [1, 1, 1]
    votes = stated_by("best_of_n", "abb", ([0.1, 0.2], [0.02], [0.02]))  # as floats .1 times .2 is more than .02
    assert count("best_of_n:s:product", votes).preferred == 1
    facts = {name: WeightedVote(READS[name]).facts for name in READS}
    assert {name for name, of in facts.items() if of["logprobs"]} == {"soft_sc"}
    assert {name for name, of in facts.items() if of["positioned"]} == {"bcrl_max", "bcrl_vote", "bcrl_abstaining"}
    assert not any(of["gold_in_training"] for of in facts.values())


@pytest.mark.parametrize("judge", [WeightedVote("bcrl_max"), BestOf(lambda _, candidate: candidate.answer == "b")])
def test_values_from_0_to_1_are_the_scores_of_the_verdict_also_beside_a_candidate_without_an_answer(judge: Any) -> None:
    reply = count("best_of_n:s", stated_by("best_of_n", "ab", (0.25, 1.0)))
    assert [one["scalar"] for one in reply.assessments] == [0.25, 1.0]
    assert count("best_of_n:s", stated_by("best_of_n", "ab", (0.25, 1.5))).assessments is None
    votes = stated_by("bcrl_max", "a-b", (0.0, None, 1.0))
    verdict = read_reply("judge", judge(ballot=votes).toDict(), votes.answers, 1)
    assert isinstance(verdict, Verdict)
    assert (verdict.preferred, verdict.scores) == (2, (0.0, 0.0, 1.0))


@each_case("judges", "formulas that are refused")
def test_a_formula_with_other_words_is_refused(formula: str, end: str) -> None:
    message = refusal(lambda: WeightedVote(formula))
    assert end in message and repr(formula) in message and message.endswith(".")


POOL = ballot("aab-c", texts=("I say a", "a", "It may be b", "", "c, I think"))


def length(example: dspy.Example, pred: dspy.Prediction) -> int:
    return len(pred.text)


def brevity(example: dspy.Example, pred: dspy.Prediction) -> int:
    return -len(pred.text)


def rewards(*values: Any) -> Callable[[Any, Any], Any]:
    """A reward that gives each candidate of a ballot its value, by the text that names its place."""

    def reward(example: dspy.Example, pred: dspy.Prediction) -> Any:
        value = values[int(pred.text)]
        if isinstance(value, Exception):
            raise value
        return value

    return reward


def judge_by(keys: str, *values: Any) -> Any:
    return BestOf(rewards(*values))(ballot=ballot(keys, texts=[str(index) for index in range(len(keys))]))


def test_the_highest_reward_wins_then_the_answer_with_more_votes_then_the_earliest() -> None:
    """It is told question, evidence, text and answer and nothing else."""
    assert BestOf(length)(ballot=POOL).preferred == 2  # 11 characters; "c, I think" has 10
    assert BestOf(brevity)(ballot=POOL).preferred == 1
    assert BestOf(lambda example, pred: pred.answer == "c")(ballot=POOL).preferred == 4
    calls: list[Any] = []

    def reward(example: dspy.Example, pred: dspy.Prediction) -> float:
        calls.append((dict(example.inputs()), dict(pred)))
        return 0.0

    BestOf(reward)(ballot=POOL)
    assert len(calls) == 4
    inputs = {"question": "Which?", "evidence": ["T\nSome text."]}
    assert calls[2] == (inputs, {"text": "It may be b", "answer": "b"})
    assert [judge_by("abb", *values).preferred for values in ((1, 1, 1), (1, 0, 1), (1, 0, 0))] == [1, 2, 0]
    assert judge_by("ab", 0.5, 0.5).preferred == 0


NUMBERS = [True, np.True_, 1, np.int64(1), np.float32(1), dspy.Prediction(score=1, feedback="so")]
NO_NUMBERS = [None, math.nan, math.inf, -math.inf, "0.5", [0.5], 1j, Decimal("NaN"), np.float64("nan")]


@pytest.mark.parametrize("value", [*NUMBERS, *NO_NUMBERS])
def test_what_is_not_a_finite_number_is_an_abstention_that_names_the_candidate(value: Any) -> None:
    """Truth values and numbers of numpy count."""
    if any(value is one for one in NUMBERS):
        reply = judge_by("aab", 0, False, value)
        assert (reply.preferred, [one["scalar"] for one in reply.assessments]) == (2, [0.0, 0.0, 1.0])
        return
    reply = judge_by("aabb", 0.1, 0.9, value, 0.2)
    assert says("the reward of candidate 2 is ..., not a finite number", reply.abstained)
    assert "preferred" not in reply


@settings(max_examples=20)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True))
def test_it_chooses_as_dspy_best_of_n_does_without_a_threshold(values: list[float]) -> None:
    """Rewards differ: of equal ones DSPy takes the earliest, and the judge the answer with more votes."""

    def attempt(self: Any, question: str) -> Any:  # DSPy numbers its attempts, so that it gets each candidate once
        number = self.predict.lm.kwargs["rollout_id"]
        return dspy.Prediction(text=str(number), answer=str(number))

    program = Does(attempt, predict=dspy.Predict("question -> answer"))
    program.set_lm(scripted_lm(lambda request: ""))
    best: Any = dspy.BestOfN(program, len(values), rewards(*values), math.inf)
    choice = int(best(question="Which?").answer)
    assert judge_by("abcde"[: len(values)], *values).preferred == choice == values.index(max(values))


def test_a_reward_that_raises_is_an_abstention_with_the_error() -> None:
    """A call that does not come through is raised; what is not a function is refused."""
    reply = judge_by("aab", 0.1, ValueError("no such word"), 0.9)
    assert reply.abstained.startswith("the reward failed on candidate 1: ValueError: no such word")
    assert judge_by("ab", 0.1, 10**400).abstained.startswith("the reward failed on candidate 1: OverflowError: ")
    for error in (dspy.LMServerError("away"), ConnectionError("away"), TimeoutError("late")):
        refuses(type(error), "away|late", judge_by, "aab", 0.1, error, 0.9)
    wrong: Any = 0.5
    assert "reward must be a function or a DSPy metric; got float" in refusal(lambda: BestOf(wrong))


def test_a_changed_reward_is_another_judge_and_so_is_another_lm_of_the_settings_which_it_may_ask() -> None:
    entries = [describe(BestOf(reward)) for reward in (length, brevity, length)]
    assert entries[0] == entries[2] != entries[1]
    assert entries[0]["attributes"]["self"]["source"]["name"].endswith(":length")
    entries = []
    for model in ("scripted/one", "scripted/other", "scripted/one"):
        with dspy.context(lm=scripted_lm([], model=model)):
            entries.append(describe(BestOf(length)))
    assert entries[0] == entries[2] != entries[1] and entries[0]["lm"]["model"] == "scripted/one"


def levels(reasoning: float | None, answer: float | None, relevance: Any = 0.5, coherence: Any = 0.5) -> Statement:
    scores = {"relevance": relevance, "coherence": coherence}
    numbers = {name: value for name, value in scores.items() if value is not None}
    return Statement(logprobs=Logprobs(probability=0.5, reasoning=reasoning, answer=answer), scores=numbers)


def add_up(votes: Ballot) -> Any:
    return DimensionalSelector()(ballot=votes)


# Confidence: -1, -1, -2, -3; mean -1.75, so that a is above it. Relevance: 0, 0, 1, .4. Coherence: 0, 0, .4, 1.
STATEMENTS = [levels(-0.5, -0.5, 0.0, 0.0)] * 2 + [levels(-1, -1, 1.0, 0.4), levels(-2, -1, 0.4, 1.0)]
EXAMPLE = ballot("aabc", STATEMENTS)


def test_the_sum_prefers_another_answer_than_majority_over_the_candidates_that_vote() -> None:
    """A candidate that does not vote may lack everything, and moves no mean."""
    # Confidence: deviations .75, .75, -.25, -1.25, standard deviation .829; z .905, .905, -.302, -1.508.
    # Relevance: mean .35, standard deviation .409; z -.855, -.855, 1.588, .122. Coherence: the last two change places.
    # Sums over 3: a (.905 - .855 - .855) / 3 = -.268; b (-.302 + 1.588 + .122) / 3 = .47; c (-1.508 + 1.711) / 3 = .07.
    reply = add_up(EXAMPLE)
    assert (reply.preferred, majority(EXAMPLE)) == (2, "a")
    assert reply.judge_rationale.startswith("0.47 standard deviations")
    assert WeightedVote("best_of_n:coherence")(ballot=EXAMPLE).preferred == 3
    assert WeightedVote("soft_sc")(ballot=EXAMPLE).preferred == 0
    reply = add_up(ballot("aa-bc", [*STATEMENTS[:2], Statement(), *STATEMENTS[2:]]))
    assert (reply.preferred, reply.judge_rationale) == (3, add_up(EXAMPLE).judge_rationale)


def test_the_confidence_is_the_mean_of_the_reasoning_plus_the_sum_of_the_answer_and_equal_dimensions_add_nothing() -> (
    None
):
    def preferred(*texts: tuple[list[float], int]) -> Any:
        scores = {"relevance": 0.5, "coherence": 0.5}
        return add_up(
            ballot("ab", [Statement(logprobs=Logprobs.of_tokens(*one), scores=scores) for one in texts])
        ).preferred

    # Of tokens -.1, -.3 | -1: mean -.2 plus sum -1. Of -.4, -.4 | -.3, -.3: mean -.4 plus sum -.6, which is higher.
    assert preferred(([-0.1, -0.3, -1.0], 1), ([-0.4, -0.4, -0.3, -0.3], 2)) == 1
    # The mean over all tokens of the second, -.35, is above the first's, -.467; the summed answers are -1 and -.6.
    assert preferred(([-0.1, -0.3, -1.0], 1), ([-0.4, -0.3, -0.3, -0.3], 3)) == 0  # -1.2 against -.4 - .9 = -1.3
    alike = ballot("abb", [levels(-1, -1, 0.3, 0.1), levels(-1, -1, 0.3, 0.1), levels(-1, -1, 0.3, 0.2)])
    assert add_up(alike).preferred == 2
    assert add_up(ballot("abb", [levels(-1, -1)] * 3)).preferred == 1  # nothing differs, so that votes decide
    assert add_up(ballot("ab", [levels(-1, -1, 0.5), levels(-1, -1, 0.5000000000001)])).preferred == 1
    least = 5e-324  # the smallest float above 0
    assert add_up(ballot("abc", [levels(-1, -least), levels(-1, 0.0), levels(-2, 0.0)])).preferred == 1


@each_case("judges", "dimensions that lack", stating=levels, scores=lambda **scores: Statement(scores=scores))
def test_what_is_lacking_is_an_abstention(statements: Sequence[Statement], reason: str) -> None:
    reply = add_up(ballot("ab", statements))
    assert reply.abstained.startswith(reason)
    assert "preferred" not in reply


@each_case("judges", "what cancels exactly")
def test_what_cancels_exactly_is_a_tie_that_votes_settle(confidences: Any, relevances: Any) -> None:
    """In floats one candidate of the three would win by a last digit; the answer with most votes wins."""
    pairs = zip(confidences, relevances, strict=True)
    statements = [levels(confidence, 0.0, relevance) for confidence, relevance in pairs]
    assert add_up(ballot("abcc", [*statements, statements[2]])).preferred in (2, 3)
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        assert add_up(ballot("aba", [statements[index] for index in order])).preferred == 0


_SCORES = st.sampled_from((0.1, 0.2, 0.3, 0.7, 1.1))


@given(st.lists(st.tuples(_SCORES, _SCORES, _SCORES), min_size=1, max_size=5))
def test_dimensions_that_change_places_between_two_candidates_tie(values: list[tuple[float, float, float]]) -> None:
    """Every candidate has a twin with relevance and coherence swapped, so the two dimensions are alike."""
    pairs = [[(a, b, c), (a, c, b)] for a, b, c in values]
    statements = [levels(-a, -a, b, c) for pair in pairs for a, b, c in pair]
    keys = [key for index, _ in enumerate(pairs) for key in (f"a{index}", "z")]
    result = Ballot("?", (), ("",) * len(keys), ("",) * len(keys), tuple(keys), tuple(statements))
    if len(pairs) > 1:
        assert result.classes[add_up(result).preferred] == "z"  # each twin ties with a class of more votes


@settings(max_examples=30)
@given(st.permutations(range(4)), st.integers(0, 99))
def test_another_order_of_the_candidates_prefers_the_same_by_dimensions(order: list[int], seed: int) -> None:
    values = [2.0**-index for index in shuffle(4, seed)]
    statements = [levels(-value, -1.0, value, value * value) for value in values]
    keys = "aabc"
    before = add_up(ballot(keys, statements)).preferred
    after = add_up(ballot("".join(keys[i] for i in order), [statements[i] for i in order])).preferred
    assert order[after] == before
