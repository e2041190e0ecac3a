"""The laws of the shipped rule hold for every string, class relation, certificate and pool: z3 proves it."""

from collections.abc import Sequence
from itertools import product

import pytest
import z3

from eldgr_dspy import decision
from tests.laws.law_claims import CASE_D, CASE_M, CASE_N, CASE_R, CASE_S
from tests.laws.proving import CLAIMS, Rules, refute

from tests.laws.symbolic import (  # isort: skip
    ARITHMETIC, CERTIFIED, INAPPLICABLE, PLAIN, SECOND, STANDING, UNCERTIFIED, WORLD, M, P, R, Term, mark, same, votes,
)  # fmt: skip
from tests.laws.tried_counts import count

PROOF = Rules(decision)


def counter_models(law: str) -> str:
    """Counter-models of all that is claimed by the name `law`; counts the runs of the rules that the claims cover."""
    claims = list(PROOF.claims(law))
    assert claims, f"nothing is claimed by the name {law}"
    count(sum(len(claim.outcome.paths) for claim in claims))
    return "\n\n".join(filter(None, map(refute, claims)))


PROOFS = (
    "certified_consensus_is_final inapplicable_consensus_is_final no_correct_certified_consensus_is_overridden "
    "override_needs_a_certificate certified_preference_outranks_repair repair_only_when_neither_is_certified "
    "default_is_consensus answer_is_consensus_preference_or_repair the_cases_partition lazy_equals_always "
    "judges_differ_only_where_admissible a_regression_needs_a_certified_wrong_answer failed_judge_equals_silent_judge "
    "unchecked_derivation_changes_nothing homogeneous_pools_consult_no_judge"
)
"""What is correct is an arbitrary predicate of answers; who is asked always is what the shipped case says."""


@pytest.mark.law(PROOFS, "proved")
@pytest.mark.parametrize("law", PROOFS.split())
def test_a_law_is_proved(law: str) -> None:
    assert counter_models(law) == ""


OTHERS = sorted({law for law, _ in CLAIMS} - {*PROOFS.split()})


@pytest.mark.parametrize("name", OTHERS)
def test_each_rule_is_what_is_said_of_it_and_asks_only_what_can_matter(name: str) -> None:
    """What the paper says of its rules, and the laws of those between majority and full authority."""
    assert counter_models(name) == ""


def possible(premises: Sequence[Term], *conditions: Term) -> bool:
    """A proof from assumptions that nothing satisfies would be none."""
    solver = z3.Solver()
    solver.add(*premises, *conditions)
    return bool(solver.check() == z3.sat)


@pytest.mark.parametrize("premises", [WORLD, PLAIN], ids=["question", "three_strings"])
def test_every_pattern_of_certificates_is_possible_where_the_laws_are_proved(premises: Sequence[Term]) -> None:
    apart = [one != other for one, other in ((M, P), (M, R), (P, R))]
    for marks in product((CERTIFIED, UNCERTIFIED, INAPPLICABLE), repeat=3):
        assert possible(premises, *apart, *(mark(a) == value for a, value in zip((M, P, R), marks, strict=True)))


def test_every_case_of_eq_3_and_of_the_other_rules_is_possible_and_so_is_every_run_of_the_rule() -> None:
    assert all(possible(WORLD, case) for case in (CASE_R, CASE_S, CASE_D, z3.Not(z3.Or(CASE_R, CASE_S, CASE_D))))
    assert all(possible(WORLD, path.condition) for path in PROOF.outcome("eldgr").paths)
    equal, fewer = votes(SECOND) == votes(M), votes(SECOND) < votes(M)
    assert all(possible(STANDING, CASE_N, same(P, SECOND), gap) for gap in (equal, fewer))
    assert possible(STANDING, CASE_M, mark(SECOND) != CERTIFIED)
    assert possible(STANDING, CASE_N, ARITHMETIC)


def test_a_repair_of_consensus_class_may_be_certified_where_consensus_is_not() -> None:
    """A spelling that no candidate has: this is why the rule compares classes beside reading certificates."""
    assert possible(WORLD, z3.And(same(R, M), mark(R) == CERTIFIED, mark(M) == UNCERTIFIED))
    assert not possible(WORLD, same(P, M), mark(P) == CERTIFIED, mark(M) == UNCERTIFIED)
