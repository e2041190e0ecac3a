"""The laws of the rule hold for every string, every class relation, every certificate and every pool: z3 proves it.

What is proved of is the shipped rule itself, driven over symbols (`tests/laws/symbolic.py`); what is proved is in
`tests/laws/claims.py`; a failure shows a counter-model in words. `test_plants.py` shows that the proof can fail.
"""

from collections.abc import Sequence
from itertools import product

import pytest
import z3

from eldgr_dspy import decision
from tests.laws.claims import CASE_D, CASE_R, CASE_S
from tests.laws.counting import tried
from tests.laws.proving import Rules, refute
from tests.laws.symbolic import CERTIFIED, INAPPLICABLE, PLAIN, UNCERTIFIED, WORLD, M, P, R, Term, mark, same

SHIPPED = Rules(decision)


def counter_models(law: str) -> str:
    """Counter-models of all that is claimed by the name `law`; none where it is proved.

    Counts the runs of the rules that the claims cover.
    """
    claims = list(SHIPPED.claims(law))
    assert claims, f"nothing is claimed by the name {law}"
    tried(sum(claim.paths for claim in claims))
    return "\n\n".join(filter(None, map(refute, claims)))


@pytest.mark.law("certified_consensus_is_final", "proved")
def test_a_certified_consensus_is_final_and_asks_nothing() -> None:
    assert counter_models("certified_consensus_is_final") == ""


@pytest.mark.law("inapplicable_consensus_is_final", "proved")
def test_an_inapplicable_consensus_is_final_and_asks_nothing() -> None:
    assert counter_models("inapplicable_consensus_is_final") == ""


@pytest.mark.law("no_correct_certified_consensus_is_overridden", "proved")
def test_no_correct_certified_consensus_is_overridden() -> None:
    """Whatever correct means: an arbitrary predicate of answers."""
    assert counter_models("no_correct_certified_consensus_is_overridden") == ""


@pytest.mark.law("override_needs_a_certificate", "proved")
def test_an_override_needs_a_certificate() -> None:
    assert counter_models("override_needs_a_certificate") == ""


@pytest.mark.law("certified_preference_outranks_repair", "proved")
def test_a_certified_preference_outranks_repair() -> None:
    assert counter_models("certified_preference_outranks_repair") == ""


@pytest.mark.law("repair_only_when_neither_is_certified", "proved")
def test_a_repair_ships_only_when_neither_is_certified() -> None:
    assert counter_models("repair_only_when_neither_is_certified") == ""


@pytest.mark.law("default_is_consensus", "proved")
def test_the_default_is_consensus() -> None:
    assert counter_models("default_is_consensus") == ""


@pytest.mark.law("answer_is_consensus_preference_or_repair", "proved")
def test_what_ships_is_consensus_preference_or_repair() -> None:
    assert counter_models("answer_is_consensus_preference_or_repair") == ""


@pytest.mark.law("the_cases_partition", "proved")
def test_the_cases_partition_and_so_do_the_runs_of_the_rule() -> None:
    assert counter_models("the_cases_partition") == ""


@pytest.mark.law("lazy_equals_always", "proved")
def test_lazily_and_always_every_rule_ships_the_same() -> None:
    """Who is asked always is what the shipped case says, driven over the same symbols."""
    assert counter_models("lazy_equals_always") == ""


@pytest.mark.law("judges_differ_only_where_admissible", "proved")
def test_judges_differ_only_where_admissible() -> None:
    assert counter_models("judges_differ_only_where_admissible") == ""


@pytest.mark.law("a_regression_needs_a_certified_wrong_answer", "proved")
def test_a_regression_needs_a_certified_wrong_answer() -> None:
    assert counter_models("a_regression_needs_a_certified_wrong_answer") == ""


@pytest.mark.law("failed_judge_equals_silent_judge", "proved")
def test_a_failed_judge_equals_a_silent_judge() -> None:
    """A reply is opaque to the rule, and both come to no preference."""
    assert counter_models("failed_judge_equals_silent_judge") == ""


@pytest.mark.law("unchecked_derivation_changes_nothing", "proved")
def test_an_unchecked_derivation_changes_nothing() -> None:
    assert counter_models("unchecked_derivation_changes_nothing") == ""


@pytest.mark.law("homogeneous_pools_consult_no_judge", "proved")
def test_homogeneous_pools_consult_no_judge() -> None:
    assert counter_models("homogeneous_pools_consult_no_judge") == ""


@pytest.mark.parametrize(
    "claimed",
    [
        "is_eq3",
        "is_the_scalar_judge",
        "is_majority",
        "is_first",
        "asks_who_can_matter",
        "who_is_not_asked_cannot_matter",
        "who_is_asked_can_matter",
    ],
)
def test_each_rule_is_what_the_paper_says_and_asks_only_what_can_matter(claimed: str) -> None:
    assert counter_models(claimed) == ""


# --- a proof from assumptions that nothing satisfies would be none ----------------------------------------------------


def possible(assumed: Sequence[Term], *conditions: Term) -> bool:
    solver = z3.Solver()
    solver.add(*assumed, *conditions)
    return bool(solver.check() == z3.sat)


@pytest.mark.parametrize("assumed", [WORLD, PLAIN], ids=["question", "three_strings"])
def test_every_pattern_of_certificates_is_possible_where_the_laws_are_proved(assumed: Sequence[Term]) -> None:
    apart = [one != other for one, other in ((M, P), (M, R), (P, R))]
    for marks in product((CERTIFIED, UNCERTIFIED, INAPPLICABLE), repeat=3):
        assert possible(assumed, *apart, *(mark(a) == value for a, value in zip((M, P, R), marks, strict=True)))


def test_every_case_of_eq_3_is_possible_and_every_run_of_the_rule_is_one_of_a_question() -> None:
    assert all(possible(WORLD, case) for case in (CASE_R, CASE_S, CASE_D, z3.Not(z3.Or(CASE_R, CASE_S, CASE_D))))
    assert all(possible(WORLD, path.condition) for path in SHIPPED.outcome("eldgr").paths)


def test_a_repair_of_consensus_class_may_be_certified_where_consensus_is_not() -> None:
    """A spelling that no candidate has: this is why the rule compares classes beside reading certificates."""
    own = z3.And(same(R, M), mark(R) == CERTIFIED, mark(M) == UNCERTIFIED)
    assert possible(WORLD, own)
    assert not possible(WORLD, same(P, M), mark(P) == CERTIFIED, mark(M) == UNCERTIFIED)
