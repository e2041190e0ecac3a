"""Stopping early: what the remaining samples could still change, and what the Beta rule says."""

import json
import pickle
from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.special import betainc

from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.base.structured import Structure
from eldgr_dspy.certificates import Certificate, Passage, certify
from eldgr_dspy.decision import drive
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.stopping import Posterior, Settled, lead, next_batch, votes_of
from eldgr_dspy.words import HOMOGENEOUS, POLICIES, Task
from tests.refusing import refuses
from tests.rule.keys import cases

PASSAGES = (
    Passage("Qatar", "Doha is the capital."), Passage("", "The answer is Doha."), Passage("A short one", "Doha"),
    Passage("", "Dubai lies on the coast. Yes, it does."), Passage("", "Two lines\nDubai"),
)  # fmt: skip
SPELLINGS = ("Doha", "doha.", "**Doha**", "Dubai", "the Dubai", "yes", "No", "12", "12.0", "Nice", None, " ")
TEXTS = ("", "Doha is the capital.", "The answer is Doha.", "A short one\nDoha", "Two lines\nDubai", "I think")
DERIVATION = Derivation((Step("3 * 4", "12"),), "12", "")

samples = st.tuples(st.sampled_from(SPELLINGS), st.sampled_from(TEXTS))


def case_of(pairs: list[Any], passages: tuple[Passage, ...], task: Task, settings: Settings) -> Case:
    answers, texts = tuple(answer for answer, _ in pairs), tuple(text for _, text in pairs)
    return Case(Question("Which 3 times 4 is it?", task, answers, texts, passages), settings)


def ships(case: Case, repeats: bool) -> str | None:
    """The class that ships when judge and repairer are as hostile as they can be, and the deriver repeats its reply."""
    voters = [index for index, key in enumerate(case.vote.classes) if key is not None]
    replies = {
        "judge": Verdict(voters[-1], None, "") if voters else Abstention("no one"),
        "repairer": Repair("Dubai"),
        "deriver": DERIVATION if repeats else Abstention("no sum"),
    }
    choice = drive(case.rule("eldgr")(case), replies.__getitem__)
    result = answer_class(choice.answer, case.task)
    return result.key if result else None


@given(
    st.lists(samples, max_size=6), st.lists(samples, max_size=4),
    st.lists(st.sampled_from(PASSAGES), max_size=3, unique=True), st.lists(st.sampled_from(PASSAGES), max_size=2),
    st.sampled_from(("retrieval", "arithmetic")),
    st.builds(Settings, certificate=st.sampled_from(POLICIES), homogeneous=st.sampled_from((None, *HOMOGENEOUS))),
    st.booleans(),
)  # fmt: skip
@example(  # its only passage is the text of a later sample, and then certifies nothing
    [("Doha", "")] * 3,
    [("Doha", "The answer is Doha."), ("Dubai", "")],
    [PASSAGES[1], PASSAGES[3]],
    [],
    "retrieval",
    Settings(),
    False,
)
def test_where_it_is_settled_no_remaining_sample_changes_the_class_that_ships(
    pairs: list[Any],
    further: list[Any],
    passages: list[Passage],
    later: list[Passage],
    task: Task,
    settings: Settings,
    repeats: bool,
) -> None:
    now = case_of(pairs, tuple(passages), task, settings)
    assume(next_batch(Settled(), now, len(pairs) + len(further)) == 0)
    then = case_of([*pairs, *further], (*passages, *(later if further else ())), task, settings)
    assert ships(then, repeats) == ships(now, repeats)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 6))
@example([1, 3], 2)  # the earlier class ties
@example([3, 1], 2)
def test_votes_are_settled_exactly_where_no_class_can_pass_the_leader(votes: list[int], remaining: int) -> None:
    """Against every way to give all remaining votes to one class, an unseen one included."""
    leader = votes.index(max(votes))
    ends = [[n + remaining * (rank == gains) for rank, n in enumerate([*votes, 0])] for gains in range(len(votes) + 1)]
    assert Settled().is_decided(votes, remaining) == all(end.index(max(end)) == leader for end in ends)


@pytest.mark.parametrize(("answers", "n", "more"), cases("fewest further samples"))
def test_a_batch_is_the_fewest_samples_after_which_it_may_stop(answers: list[str], n: int, more: int) -> None:
    case = case_of([(one, "") for one in answers], PASSAGES[:1], "retrieval", Settings())
    assert next_batch(Settled(), case, n) == more


@pytest.mark.parametrize(("answer", "passage", "more"), cases("passages that may be repeated"))
def test_a_passage_that_a_candidate_may_repeat_settles_nothing(answer: str, passage: Any, more: int) -> None:
    """A passage that is a candidate's own text no longer certifies its answer."""
    own = PASSAGES[passage] if isinstance(passage, int) else Passage("", passage)
    assert next_batch(Settled(), case_of([(answer, "")] * 3, (own,), "retrieval", Settings()), 5) == more


def test_a_passage_that_is_too_long_to_read_may_be_repeated() -> None:
    for length, more in ((1_496, 0), (1_497, 2)):
        passage = Passage("", f"Doha{chr(10) * 500}{'x' * length}")
        assert next_batch(Settled(), case_of([("Doha", "")] * 3, (passage,), "retrieval", Settings()), 5) == more


def quotes(answer: str, evidence: tuple[Passage, ...], question: str) -> bool:
    return any(answer in passage.text for passage in evidence)


@pytest.mark.parametrize(("stop", "answers", "certificate", "more"), cases("what settles it"))
def test_what_settles_it_depends_on_the_rule(stop: Any, answers: list[str], certificate: Any, more: int) -> None:
    settings = Settings(certificate=quotes if certificate == "quotes" else certificate)  # type: ignore[arg-type]
    case = case_of([(one, "") for one in answers], PASSAGES[:1], "retrieval", settings)
    assert next_batch(Settled(**stop), case, 5) == more


def test_letters_lists_and_sums_are_settled_as_what_they_name_unless_a_passage_may_be_repeated() -> None:
    # A later sample may give its letter and repeat the passage, which then no longer certifies the option.
    repeat, other = Passage("", "The answer is Doha."), PASSAGES[0]
    for passages, more in (((repeat,), 2), ((other,), 0), ((other, repeat), 0)):
        cases = [
            Case(Question("Which?", "choice", ("B",) * 3, (text,) * 3, passages, ("Dubai", "Doha")))
            for text in ("B", repeat.text)
        ]
        assert [case.certified("B") for case in cases] == [True, other in passages]
        assert next_batch(Settled(), cases[0], 5) == more
    # It may be the reasoning and the answer of a later sample, and then certifies nothing.
    for value, certified in ((["Doha"], True), ({"city": "Doha"}, True), (["Doha", None], None)):
        answer, passage = Structure(value), Passage("", f"So.\n{json.dumps(value)}")
        now = case_of([(answer, f"It is.\n{answer}")] * 3, (passage,), "retrieval", Settings())
        then = case_of([(answer, passage.text)] * 3, (passage,), "retrieval", Settings())
        assert (now.certified(answer), then.certified(answer)) == (certified, False)
        assert next_batch(Settled(), now, 5) == 2
    # By default the deriver is asked only about several classes, and a remaining sample may add one.
    three = [("12", "")] * 3
    assert next_batch(Settled(), case_of(three, (), "arithmetic", Settings()), 5) == 2
    assert next_batch(Settled(), case_of(three, (), "arithmetic", Settings(homogeneous="repair")), 5) == 0
    assert next_batch(Settled(), case_of([("12", ""), ("3", ""), *three], (), "arithmetic", Settings()), 7) == 0


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_lead_is_the_tail_of_a_beta_distribution(first: int, second: int) -> None:
    assert float(lead(first, second)) == pytest.approx(betainc(second + 1, first + 1, 0.5))


def test_the_beta_rule_compares_the_two_largest_classes_and_stops_at_four_votes_to_none() -> None:
    # At the published threshold: 31 of 32, where three votes give 15 of 16.
    assert (lead(3, 0), lead(4, 0)) == (Fraction(15, 16), Fraction(31, 32))
    pools = [case_of([("Nice", "")] * votes, (), "retrieval", Settings()) for votes in (0, 3, 4)]
    assert [next_batch(Posterior(), case, 40) for case in pools] == [4, 1, 0]
    assert [Posterior().is_decided(v, 9) for v in ([1, 7], [7, 1, 1], [1, 1, 7], [7, 7])] == [True, True, True, False]
    assert Posterior(31 / 32).is_decided([4], 9)
    assert not Posterior(0.7).is_decided([], 9)


@pytest.mark.parametrize("threshold", [0.5, 1, True, float("nan"), -1])
def test_a_threshold_that_means_nothing_is_refused(threshold: float) -> None:
    refuses(ArgumentError, r"threshold must be above 0.5 and below 1; got", Posterior, threshold)


def test_answers_that_are_lists_vote_by_their_leaves_and_are_copied_whole() -> None:
    one, other = Structure(["Doha", 4, None, ""]), Structure(["doha.", 4, None, ""])
    apart = Structure(["Doha 4", None])
    keys = [result.key for text in (one, other, apart) if (result := answer_class(text, "retrieval"))]
    assert keys[0] == keys[1] == 'json:["doha","4",null,""]' != keys[2]
    assert votes_of(case_of([(one, ""), (apart, ""), (other, "")], (), "retrieval", Settings())) == [2, 1]
    one = Structure({"b": [1, "x"], "a": None})
    assert one == '{"a":null,"b":[1,"x"]}'
    for twin in (deepcopy(one), pickle.loads(pickle.dumps(one))):  # noqa: S301 - our own bytes
        assert (twin, twin.value, type(twin)) == (one, one.value, Structure)


@pytest.mark.parametrize(("value", "certified", "reason"), cases("certified lists"))
def test_a_list_is_certified_only_if_every_leaf_is(value: Any, certified: bool | None, reason: str) -> None:
    assert certify(Structure(value), PASSAGES[:1]) == Certificate(certified, reason)
