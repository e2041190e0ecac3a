"""The laws of the rule as claims about what it computes, and Eq. 3 and Eq. 4 as terms.

Each function is a law by its name; its docstring is what the message of a failed proof says.
"""

from collections.abc import Callable, Mapping, Sequence

import z3

from eldgr_dspy.words import Role
from tests.laws.symbolic import (
    ARITHMETIC,
    BRANCH_OF,
    CERTIFIED,
    CONTESTED,
    D2,
    FIRST,
    NONE,
    P2,
    R2,
    REPAIRABLE,
    RIVAL,
    STATED,
    STATED2,
    UNCERTIFIED,
    D,
    M,
    Outcome,
    P,
    R,
    Term,
    correct,
    every,
    mark,
    pool,
    same,
    some,
)

RETRIEVAL = z3.Not(ARITHMETIC)
OPEN = z3.And(RETRIEVAL, mark(M) == UNCERTIFIED)
CHECKED = z3.And(ARITHMETIC, D != NONE)
_X = z3.Const("x", P.sort())


def admissible(answer: Term) -> Term:
    """That an answer is certified and not consensus's own."""
    return z3.And(answer != NONE, mark(answer) == CERTIFIED, z3.Not(same(answer, M)))


CASE_R = z3.And(OPEN, REPAIRABLE, admissible(R), z3.Not(admissible(P)))
CASE_S = z3.And(OPEN, admissible(P))
CASE_D = z3.And(CHECKED, REPAIRABLE, z3.Not(same(D, M)))
"""The cases of Eq. 3, in its order, and the one of arithmetic."""


def ships(outcome: Outcome, branch: str, answer: Term) -> Term:
    return z3.And(outcome.branch == BRANCH_OF[branch], outcome.answer == answer)


def kept(outcome: Outcome) -> Term:
    return ships(outcome, "consensus", M)


def agree(one: Outcome, other: Outcome) -> Term:
    """That two outcomes are the same answer by the same branch."""
    return z3.And(one.branch == other.branch, one.answer == other.answer)


def is_or_says(answer: Term, other: Term) -> Term:
    """That two answers are one, or vote together."""
    return z3.Or(answer == other, same(answer, other))


def either(condition: Term, yes: Term, no: Term) -> Term:
    return z3.If(condition, yes, no)


# --- the laws ---------------------------------------------------------------------------------------------------------


def certified_consensus_is_final(it: Outcome) -> Term:
    """In retrieval a certified consensus ships, and nobody is asked."""
    return z3.Implies(z3.And(RETRIEVAL, mark(M) == CERTIFIED), z3.And(kept(it), z3.Not(z3.Or(*it.asked.values()))))


def inapplicable_consensus_is_final(it: Outcome) -> Term:
    """In retrieval a consensus to which no certificate applies ships, and nobody is asked."""
    final = z3.And(RETRIEVAL, mark(M) != UNCERTIFIED, mark(M) != CERTIFIED)
    return z3.Implies(final, z3.And(kept(it), z3.Not(z3.Or(*it.asked.values()))))


def no_correct_certified_consensus_is_overridden(it: Outcome) -> Term:
    """A correct consensus that is certified, or that a checked derivation repeats, ships."""
    supported = either(ARITHMETIC, z3.And(D != NONE, same(D, M)), mark(M) == CERTIFIED)
    return z3.Implies(z3.And(correct(M), supported), z3.And(kept(it), correct(it.answer)))


def override_needs_a_certificate(it: Outcome) -> Term:
    """In consensus's place ships a certified answer of another class, consensus being uncertified, or a derivation."""
    certified = z3.And(mark(M) == UNCERTIFIED, it.answer != NONE, mark(it.answer) == CERTIFIED)
    derived = z3.And(it.branch == BRANCH_OF["repair"], is_or_says(it.answer, D), D != NONE)
    other = z3.Not(same(it.answer, M))
    return z3.Or(kept(it), z3.And(other, either(ARITHMETIC, derived, certified)))


def certified_preference_outranks_repair(it: Outcome) -> Term:
    """Where consensus is uncertified and the preference certified, the preference ships, whatever the repair."""
    return z3.Implies(CASE_S, ships(it, "judge", P))


def repair_only_when_neither_is_certified(it: Outcome) -> Term:
    """In retrieval a repair ships only if it is certified, and neither consensus nor the preference is."""
    neither = z3.And(mark(M) == UNCERTIFIED, z3.Or(P == NONE, mark(P) != CERTIFIED))
    repaired = z3.And(it.answer == R, R != NONE, mark(R) == CERTIFIED)
    return z3.Implies(z3.And(RETRIEVAL, it.branch == BRANCH_OF["repair"]), z3.And(neither, repaired))


def default_is_consensus(it: Outcome) -> Term:
    """Without a certified preference, repair or checked derivation of another class, consensus ships."""
    return z3.Implies(z3.Not(z3.Or(admissible(P), admissible(R), z3.And(CHECKED, z3.Not(same(D, M))))), kept(it))


def answer_is_consensus_preference_or_repair(it: Outcome) -> Term:
    """What ships is consensus, the preference, the repair or the derivation, as its branch says."""
    repaired = either(ARITHMETIC, ships(it, "repair", D), ships(it, "repair", R))
    return z3.Or(kept(it), z3.And(RETRIEVAL, ships(it, "judge", P)), repaired)


def the_cases_partition(it: Outcome) -> Term:
    """The cases of Eq. 3 exclude each other, and each branch is taken in its own case and in no other."""
    disjoint = z3.Not(z3.Or(z3.And(CASE_R, CASE_S), z3.And(CASE_R, CASE_D), z3.And(CASE_S, CASE_D)))
    by_judge = (it.branch == BRANCH_OF["judge"]) == CASE_S
    by_repair = (it.branch == BRANCH_OF["repair"]) == z3.Or(CASE_R, CASE_D)
    default = (it.branch == BRANCH_OF["consensus"]) == z3.Not(z3.Or(CASE_R, CASE_S, CASE_D))
    conditions = [path.condition for path in it.paths]
    return z3.And(disjoint, by_judge, by_repair, default, z3.AtMost(*conditions, 1))


def judges_differ_only_where_admissible(it: Outcome) -> Term:
    """Two judges change the outcome only if consensus is uncertified and one of them prefers a certified answer."""
    other = it.replacing((STATED, STATED2), (P, P2))
    differ = z3.Or(it.answer != other.answer, it.branch != other.branch)
    return z3.Implies(differ, z3.And(OPEN, z3.Or(admissible(P), admissible(P2))))


def a_regression_needs_a_certified_wrong_answer(it: Outcome) -> Term:
    """A correct consensus is lost only to a wrong answer that is certified (or derived), and only if it is not."""
    lost = z3.And(correct(M), z3.Not(correct(it.answer)))
    certified = z3.And(mark(M) == UNCERTIFIED, mark(it.answer) == CERTIFIED, z3.Not(same(it.answer, M)))
    return z3.Implies(lost, either(ARITHMETIC, z3.And(CHECKED, is_or_says(it.answer, D)), certified))


def failed_judge_equals_silent_judge(it: Outcome) -> Term:
    """Without a preference, consensus and repair alone decide; nothing else of the judge's reply is looked at."""
    repaired = z3.And(OPEN, REPAIRABLE, admissible(R))
    without = either(repaired, ships(it, "repair", R), kept(it))
    return z3.Implies(z3.And(RETRIEVAL, P == NONE), without)


def unchecked_derivation_changes_nothing(it: Outcome) -> Term:
    """In arithmetic consensus ships where no derivation passes the check."""
    return z3.Implies(z3.And(ARITHMETIC, D == NONE), kept(it))


def homogeneous_pools_consult_no_judge(it: Outcome) -> Term:
    """Where all candidates agree the judge is not asked."""
    return z3.Implies(z3.Not(CONTESTED), z3.Not(it.asked["judge"]))


def lazy_equals_always(lazy: Outcome, always: Outcome) -> Term:
    """Asked lazily or always, a rule ships the same, by the same branch."""
    return agree(lazy, always)


LAWS: Sequence[Callable[[Outcome], Term]] = (
    certified_consensus_is_final, inapplicable_consensus_is_final, no_correct_certified_consensus_is_overridden,
    override_needs_a_certificate, certified_preference_outranks_repair, repair_only_when_neither_is_certified,
    default_is_consensus, answer_is_consensus_preference_or_repair, the_cases_partition,
    judges_differ_only_where_admissible, a_regression_needs_a_certified_wrong_answer,
    failed_judge_equals_silent_judge, unchecked_derivation_changes_nothing,
)  # fmt: skip
"""The laws of the rule `eldgr`. The two above hold of every rule."""


# --- what else is claimed of the rules --------------------------------------------------------------------------------


def is_eq3(it: Outcome) -> Term:
    """The rule is Eq. 3 and Eq. 4, in branch and answer."""
    retrieval = either(CASE_R, ships(it, "repair", R), either(CASE_S, ships(it, "judge", P), kept(it)))
    return either(ARITHMETIC, either(CASE_D, ships(it, "repair", D), kept(it)), retrieval)


def is_the_scalar_judge(it: Outcome) -> Term:
    """The preference ships, whatever its certificate, unless it is consensus's own or there is one class alone."""
    stated = z3.And(CONTESTED, STATED != NONE, z3.Not(same(STATED, M)))
    return either(stated, ships(it, "judge", STATED), kept(it))


def is_majority(it: Outcome) -> Term:
    """Consensus ships."""
    return kept(it)


def is_first(it: Outcome) -> Term:
    """The first candidate ships."""
    return ships(it, "first", FIRST)


def asks_who_can_matter(it: Outcome) -> Term:
    """The judge is asked where a rival is certified, the repairer where it is still open, in arithmetic the deriver."""
    return z3.And(
        it.asked["judge"] == z3.And(OPEN, RIVAL),
        it.asked["repairer"] == z3.And(OPEN, REPAIRABLE, z3.Not(admissible(P))),
        it.asked["deriver"] == z3.And(ARITHMETIC, REPAIRABLE),
    )


def who_is_not_asked_cannot_matter(it: Outcome) -> Term:
    """Where a role is not asked, no other reply of it changes the outcome."""
    second: Mapping[Role, Sequence[tuple[Term, Term]]] = {
        "judge": ((STATED, STATED2), (P, P2)),
        "repairer": ((R, R2),),
        "deriver": ((D, D2),),
    }
    return z3.And(*(z3.Or(it.asked[role], agree(it, it.replacing(*pairs))) for role, pairs in second.items()))


def who_is_asked_can_matter(it: Outcome) -> Term:
    """Where a role is asked, some reply changes the outcome: a certified one, for the repairer, if there is any.

    The judge's may change the branch alone, where the repair would have been the same answer.
    """
    silent = it.replacing((STATED, NONE), (P, NONE))
    judge = some(lambda x: z3.And(pool(x), z3.Not(agree(it.replacing((STATED, x), (P, x)), silent))), _X)
    repair = z3.Not(every(lambda x: z3.Implies(admissible(x), it.replacing((R, x)).answer == M), _X))
    derived = z3.Not(every(lambda x: z3.Implies(another(x), it.replacing((D, x)).answer == M), _X))
    return z3.And(
        z3.Implies(it.asked["judge"], judge),
        z3.Implies(z3.And(it.asked["repairer"], some(admissible, _X)), repair),
        z3.Implies(z3.And(it.asked["deriver"], some(another, _X)), derived),
    )


def another(answer: Term) -> Term:
    return z3.And(answer != NONE, z3.Not(same(answer, M)))


CLAIMS: Sequence[tuple[Callable[[Outcome], Term], str]] = (
    *((law, "eldgr") for law in (*LAWS, is_eq3)), *((law, "decide") for law in (*LAWS, is_eq3)),
    *((homogeneous_pools_consult_no_judge, rule) for rule in ("first", "majority", "judge", "eldgr", "always(eldgr)")),
    (is_the_scalar_judge, "judge"), (is_majority, "majority"), (is_first, "first"), (asks_who_can_matter, "eldgr"),
    (who_is_not_asked_cannot_matter, "eldgr"), (who_is_not_asked_cannot_matter, "judge"),
    (who_is_asked_can_matter, "eldgr"), (who_is_asked_can_matter, "judge"),
)  # fmt: skip
"""What is claimed of which rule; `lazy_equals_always` is claimed of each."""
