"""Selectors that count: each formula by hand, against a naive version, and by its laws."""

import re
from math import log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.programs.judges import BestOf
from eldgr_dspy.programs.judges.counting_judges import WEIGHINGS, WeightedVote
from eldgr_dspy.rule.ballots import Ballot, Logprobs, Stated
from eldgr_dspy.rule.consultations import Verdict
from eldgr_dspy.rule.replies import read_reply
from tests.case_tables import each_case
from tests.judges.balloting import READS, ballot, classes, majority, shuffled, stated_by, stating
from tests.naive import naive_votes as naive
from tests.refusing import refused

TOKENS = {"a": (0.5, 0.5), "b": (0.9, 0.9, 0.3), "c": (0.6, 0.6)}
STEPS = {"a": [0.1], "b": [0.9, 0.2, 0.95], "c": [0.5, 0.5, 0.5], "d": [0.45, 0.6]}
SPLIT = ("aaabbc", (0.1, 0.1, 0.1, 0.5, 0.4, 0.8))  # sums: a .3, b .9, c .8
SURE = ("aaabbc", (0.3, 0.3, 0.3, 0.6, 0.5, 0.9))  # sums: a .9, b 1.1, c .9
STEADY = ("aaabbc", (0.15, 0.12, 0.1, 0.3, 0.2, 0.9))  # sums: a .37, b .5, c .9
FOLDED = ballot("aabcd", [Stated(scores={"s": STEPS[key]}) for key in "aabcd"])
TOKENS_BALLOT = ballot("aabc", [Stated(logprobs=Logprobs.of_tokens([*map(log, TOKENS[key])])) for key in "aabc"])


def count(formula: str, counted: Ballot) -> Any:
    return WeightedVote(formula)(ballot=counted)


def won(formula: str, counted: Ballot) -> str:
    return str(counted.classes[count(formula, counted).preferred])


BALLOTS = {"SPLIT": SPLIT, "SURE": SURE, "STEADY": STEADY}


@each_case("judges", "formulas and their neighbours")
def test_no_two_formulas_are_alike(formula: str, pool: str, expected: str, neighbour: str, other: str) -> None:
    counted = {"TOKENS": TOKENS_BALLOT, "FOLDED": FOLDED}.get(pool) or stated_by(
        formula.partition(":")[0], *BALLOTS[pool]
    )
    assert (won(formula, counted), won(neighbour, counted), majority(counted)) == (expected, other, "a")


def test_parameters_and_decimals_change_what_is_preferred() -> None:
    """.1 + .2 is as much as .3, although it is not in binary; more votes win, then the earliest."""
    # cisc, T = 1, over e^.9: c 1; b e^-.3 + e^-.4 = 1.41; a 3 e^-.6 = 1.65.
    assert [won(f"cisc{t}", stated_by("cisc", *SURE)) for t in ("", ":1", ":0.1")] == ["a", "a", "c"]
    # borda, p = 0: 3, 2 and 1 points. p = 3: c 216; b 125 + 64 = 189; a 27 + 8 + 1 = 36.
    assert [won(f"borda:s:{p}", stated_by("borda", *STEADY)) for p in (0, 0.5, 3)] == ["a", "b", "c"]
    counted = stated_by("bcrl_max", "aab", (0.2, 0.2, 0.5))
    assert count("bcrl_abstaining", counted).preferred == count("bcrl_max", counted).preferred == 2
    reply = count("bcrl_abstaining:0.51", counted)
    assert (reply.abstained, "preferred" in reply) == ("the highest confidence is 0.5, below 0.51", False)
    assert won("weighted_best_of_n:s", stated_by("best_of_n", "baa", (0.3, 0.1, 0.2))) == "a"
    assert won("bcrl_vote", stated_by("bcrl_vote", "bbaa", (0.15, 0.15, 0.1, 0.2))) == "b"
    assert won("bcrl_vote", stated_by("bcrl_vote", "aabb", (0.1, 0.2, 0.15, 0.15))) == "a"


few = settings(max_examples=40)
FORMULAS = (*READS, "borda:1", "borda:2", "cisc:0.1", "cisc:2", "bcrl_abstaining:0.3")


def drawn(formula: str, *, missing: bool = True) -> st.SearchStrategy[Any]:
    """Classes with values in tenths; scores may be negative, and values may be missing."""
    name = formula.partition(":")[0]
    tenths = st.integers(-3 if WEIGHINGS[name].column == "scores" else 0, 10).map(lambda n: str(n / 10))
    values = st.lists(tenths | st.none() if missing else tenths, min_size=6, max_size=6)
    return st.tuples(classes(), st.one_of(values, st.just([None] * 6) if missing else values))


def told(reply: Any) -> int | str:
    """What is said in the words of the naive version."""
    reason = str(reply.get("abstained", ""))
    assert ("preferred" in reply) is not bool(reason)
    if not reason:
        return int(reply.preferred)
    words = reason.split()
    kinds = {"no": "missing", "weights": "negative"}
    if words[0] in kinds:
        return f"{kinds[words[0]]} {words[words.index('candidate') + 1]}"
    known = {"not applicable: ": "none", "the highest confidence": "low", "there is no candidate": "empty"}
    return next(kind for begin, kind in known.items() if reason.startswith(begin))


@pytest.mark.parametrize("formula", FORMULAS)
@few
@given(st.data())
def test_a_formula_is_its_naive_version(formula: str, data: st.DataObject) -> None:
    keys, values = data.draw(drawn(formula))
    name, _, parameter = formula.partition(":")
    given_values = [None if value is None else float(value) for value in values[: len(keys)]]
    counted = stated_by(name, keys, given_values)
    asked = ":".join(filter(None, (READS[name], parameter)))
    assert told(count(asked, counted)) == naive.preferred(formula, counted.classes, values[: len(keys)])


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
    values, order = [2.0**-index for index in shuffled(len(keys), seed + 1)], shuffled(len(keys), seed)
    reply = count(READS[formula], stated_by(formula, keys, values))
    moved = stated_by(formula, "".join(keys[i] for i in order), [values[i] for i in order])
    again = count(READS[formula], moved)
    if "preferred" in reply:
        assert order[again.preferred] == reply.preferred
    else:
        assert again.abstained == reply.abstained


@pytest.mark.parametrize("formula", READS)
@few
@given(st.data())
def test_a_higher_value_of_the_preferred_candidate_keeps_it(formula: str, data: st.DataObject) -> None:
    keys, values = data.draw(drawn(formula, missing=False))
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
    assert told(judge(ballot=tenths)) == told(judge(ballot=cubes))
    assert dict(judge(ballot=other)) == dict(before)


@each_case("judges", "values that cannot be used")
def test_values_that_cannot_be_used_are_an_abstention(formula: str, value: Any, reason: str) -> None:
    reply = count(formula, ballot("ab", [stating("best_of_n", 0.5), stating("best_of_n", value)]))
    assert reply.abstained.startswith(reason)
    assert "preferred" not in reply


@pytest.mark.parametrize("formula", ["best_of_n:s", "weighted_best_of_n:s", "borda:s"])
def test_a_score_of_steps_alone_does_not_apply_until_a_fold_is_named(formula: str) -> None:
    counted = stated_by("best_of_n", "ab-", ([0.1, 0.2], [0.3, 0.1], 0.5))
    reason = "score 's' has a number for each step; min, last or product makes one of them"
    assert count(formula, counted).abstained == f"not applicable: {reason}"
    assert count("best_of_n:s:min", counted).preferred == 0


def test_the_reason_names_the_summary_that_the_pool_lacks_and_the_facts_what_formulas_need() -> None:
    for formula, known, lacking in (
        ("soft_sc", Logprobs(least=-1.0), "mean probability of tokens"),
        ("soft_sc:min", Logprobs(probability=0.5), "lowest log-probability"),
        ("soft_sc", None, "log-probabilities"),
    ):
        reply = count(formula, ballot("ab", [Stated(logprobs=known)] * 2))
        assert reply.abstained == f"not applicable: the pool states no {lacking}"
    counted = stated_by("best_of_n", "aab", (0.5, [0.9, 0.8], 0.6))
    assert [count(f"best_of_n:s:{fold}", counted).preferred for fold in ("min", "last", "product")] == [1, 1, 1]
    counted = stated_by("best_of_n", "abb", ([0.1, 0.2], [0.02], [0.02]))  # as floats .1 times .2 is more than .02
    assert count("best_of_n:s:product", counted).preferred == 1
    facts = {name: WeightedVote(READS[name]).facts for name in READS}
    assert {name for name, of in facts.items() if of["logprobs"]} == {"soft_sc"}
    assert {name for name, of in facts.items() if of["positioned"]} == {"bcrl_max", "bcrl_vote", "bcrl_abstaining"}
    assert not any(of["gold_in_training"] for of in facts.values())


@pytest.mark.parametrize("judge", [WeightedVote("bcrl_max"), BestOf(lambda _, candidate: candidate.answer == "b")])
def test_values_from_0_to_1_are_the_scores_of_the_verdict_also_beside_a_candidate_without_an_answer(judge: Any) -> None:
    reply = count("best_of_n:s", stated_by("best_of_n", "ab", (0.25, 1.0)))
    assert [one["scalar"] for one in reply.assessments] == [0.25, 1.0]
    assert count("best_of_n:s", stated_by("best_of_n", "ab", (0.25, 1.5))).assessments is None
    counted = stated_by("bcrl_max", "a-b", (0.0, None, 1.0))
    verdict = read_reply("judge", judge(ballot=counted).toDict(), counted.answers, 1)
    assert isinstance(verdict, Verdict)
    assert (verdict.preferred, verdict.scores) == (2, (0.0, 0.0, 1.0))


@each_case("judges", "formulas that are refused")
def test_a_formula_with_other_words_is_refused(formula: str, end: str) -> None:
    message = refused(lambda: WeightedVote(formula))
    assert end in message and repr(formula) in message and message.endswith(".")
