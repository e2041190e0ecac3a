"""The laws of the rules as claims about what they compute; a failed proof says the docstring of the law."""

from collections.abc import Callable, Mapping, Sequence

import z3

from eldgr_dspy.words import Role

from tests.laws.symbolic import (  # isort: skip
    ARITHMETIC, BRANCH_OF, CERTIFIED, CONTEST, D2, FIRST, INAPPLICABLE, NONE, OPINION, OPINION2, OTHERS, P2, R2,
    REPAIRABLE, RIVAL, SECOND, THIRD, UNCERTIFIED, D, K, M, Outcome, P, R, Term, correct, every, mark, pool, same, some,
    votes,
)  # fmt: skip

RETRIEVAL = z3.Not(ARITHMETIC)
OPEN = z3.And(RETRIEVAL, mark(M) == UNCERTIFIED)
PASSES = z3.And(ARITHMETIC, D != NONE)
_X = z3.Const("x", P.sort())
either: Callable[[Term, Term, Term], Term] = z3.If


def admissible(answer: Term) -> Term:
    return z3.And(answer != NONE, mark(answer) == CERTIFIED, z3.Not(same(answer, M)))


CASE_R = z3.And(OPEN, REPAIRABLE, admissible(R), z3.Not(admissible(P)))
CASE_S = z3.And(OPEN, admissible(P))
CASE_D = z3.And(PASSES, REPAIRABLE, z3.Not(same(D, M)))
"""The cases of Eq. 3, in its order, and the one of arithmetic."""


def by(it: Outcome, branch: str) -> Term:
    return it.branch == BRANCH_OF[branch]


def ships(outcome: Outcome, branch: str, answer: Term) -> Term:
    return z3.And(by(outcome, branch), outcome.answer == answer)


def keeps(outcome: Outcome) -> Term:
    return ships(outcome, "consensus", M)


def agree(one: Outcome, other: Outcome) -> Term:
    return z3.And(one.branch == other.branch, one.answer == other.answer)


def is_or_says(answer: Term, other: Term) -> Term:
    return z3.Or(answer == other, same(answer, other))


def certified_consensus_is_final(it: Outcome) -> Term:
    """In retrieval a certified consensus ships, and nobody is asked."""
    return z3.Implies(z3.And(RETRIEVAL, mark(M) == CERTIFIED), z3.And(keeps(it), z3.Not(z3.Or(*it.asks.values()))))


def inapplicable_consensus_is_final(it: Outcome) -> Term:
    """In retrieval a consensus to which no certificate applies ships, and nobody is asked."""
    final = z3.And(RETRIEVAL, mark(M) != UNCERTIFIED, mark(M) != CERTIFIED)
    return z3.Implies(final, z3.And(keeps(it), z3.Not(z3.Or(*it.asks.values()))))


def no_correct_certified_consensus_is_overridden(it: Outcome) -> Term:
    """A correct consensus that is certified, or that a checked derivation repeats, ships."""
    backing = either(ARITHMETIC, z3.And(D != NONE, same(D, M)), mark(M) == CERTIFIED)
    return z3.Implies(z3.And(correct(M), backing), z3.And(keeps(it), correct(it.answer)))


def override_needs_a_certificate(it: Outcome) -> Term:
    """In consensus's place ships a certified answer of another class, consensus being uncertified, or a derivation."""
    certified = z3.And(mark(M) == UNCERTIFIED, it.answer != NONE, mark(it.answer) == CERTIFIED)
    derivation = z3.And(it.branch == BRANCH_OF["repair"], is_or_says(it.answer, D), D != NONE)
    other = z3.Not(same(it.answer, M))
    return z3.Or(keeps(it), z3.And(other, either(ARITHMETIC, derivation, certified)))


def certified_preference_outranks_repair(it: Outcome) -> Term:
    """Where consensus is uncertified and the preference certified, the preference ships, whatever the repair."""
    return z3.Implies(CASE_S, ships(it, "judge", P))


def repair_only_when_neither_is_certified(it: Outcome) -> Term:
    """In retrieval a repair ships only if it is certified, and neither consensus nor the preference is."""
    neither = z3.And(mark(M) == UNCERTIFIED, z3.Or(P == NONE, mark(P) != CERTIFIED))
    repair = z3.And(it.answer == R, R != NONE, mark(R) == CERTIFIED)
    return z3.Implies(z3.And(RETRIEVAL, by(it, "repair")), z3.And(neither, repair))


def default_is_consensus(it: Outcome) -> Term:
    """Without a certified preference, repair or checked derivation of another class, consensus ships."""
    return z3.Implies(z3.Not(z3.Or(admissible(P), admissible(R), z3.And(PASSES, z3.Not(same(D, M))))), keeps(it))


def answer_is_consensus_preference_or_repair(it: Outcome) -> Term:
    """What ships is consensus, the preference, the repair or the derivation, as its branch says."""
    repair = either(ARITHMETIC, ships(it, "repair", D), ships(it, "repair", R))
    return z3.Or(keeps(it), z3.And(RETRIEVAL, ships(it, "judge", P)), repair)


def the_cases_partition(it: Outcome) -> Term:
    """The cases of Eq. 3 exclude each other, and each branch is taken in its own case and in no other."""
    disjoint = z3.AtMost(CASE_R, CASE_S, CASE_D, 1)
    return z3.And(disjoint, _partition(it, {"repair": z3.Or(CASE_R, CASE_D), "judge": CASE_S}))


def judges_differ_only_where_admissible(it: Outcome) -> Term:
    """Two judges change the outcome only if consensus is uncertified and one of them prefers a certified answer."""
    alike = agree(it, it.replacing((OPINION, OPINION2), (P, P2)))
    return z3.Or(alike, z3.And(OPEN, z3.Or(admissible(P), admissible(P2))))


def a_regression_needs_a_certified_wrong_answer(it: Outcome) -> Term:
    """A correct consensus is lost only to a wrong answer that is certified (or derived), and only if it is not."""
    loss = z3.And(correct(M), z3.Not(correct(it.answer)))
    certified = z3.And(mark(M) == UNCERTIFIED, mark(it.answer) == CERTIFIED, z3.Not(same(it.answer, M)))
    return z3.Implies(loss, either(ARITHMETIC, z3.And(PASSES, is_or_says(it.answer, D)), certified))


def failed_judge_equals_silent_judge(it: Outcome) -> Term:
    """Without a preference, consensus and repair alone decide; nothing else of the judge's reply is looked at."""
    repair = z3.And(OPEN, REPAIRABLE, admissible(R))
    return z3.Implies(z3.And(RETRIEVAL, P == NONE), either(repair, ships(it, "repair", R), keeps(it)))


def unchecked_derivation_changes_nothing(it: Outcome) -> Term:
    """In arithmetic consensus ships where no derivation passes the check."""
    return z3.Implies(z3.And(ARITHMETIC, D == NONE), keeps(it))


def homogeneous_pools_consult_no_judge(it: Outcome) -> Term:
    """Where all candidates agree the judge is not asked."""
    return z3.Implies(z3.Not(CONTEST), z3.Not(it.asks["judge"]))


def lazy_equals_always(lazy: Outcome, always: Outcome) -> Term:
    """Asked lazily or always, a rule ships the same, by the same branch."""
    return agree(lazy, always)


def is_eq3(it: Outcome) -> Term:
    """The rule is Eq. 3 and Eq. 4, in branch and answer."""
    retrieval = either(CASE_R, ships(it, "repair", R), either(CASE_S, ships(it, "judge", P), keeps(it)))
    return either(ARITHMETIC, either(CASE_D, ships(it, "repair", D), keeps(it)), retrieval)


def is_the_scalar_judge(it: Outcome) -> Term:
    """The preference ships, whatever its certificate, unless it is consensus's own or there is one class alone."""
    opinion = z3.And(CONTEST, OPINION != NONE, z3.Not(same(OPINION, M)))
    return either(opinion, ships(it, "judge", OPINION), keeps(it))


def is_majority(it: Outcome) -> Term:
    """Consensus ships."""
    return keeps(it)


def is_first(it: Outcome) -> Term:
    """The first candidate ships."""
    return ships(it, "first", FIRST)


def asks_who_can_matter(it: Outcome) -> Term:
    """The judge is asked where a rival is certified, the repairer where it is still open, in arithmetic the deriver."""
    return z3.And(
        it.asks["judge"] == z3.And(OPEN, RIVAL),
        it.asks["repairer"] == z3.And(OPEN, REPAIRABLE, z3.Not(admissible(P))),
        it.asks["deriver"] == z3.And(ARITHMETIC, REPAIRABLE),
    )


def who_is_not_asked_cannot_matter(it: Outcome) -> Term:
    """Where a role is not asked, no other reply of it changes the outcome."""
    second: Mapping[Role, Sequence[tuple[Term, Term]]]
    second = {"judge": ((OPINION, OPINION2), (P, P2)), "repairer": ((R, R2),), "deriver": ((D, D2),)}
    return z3.And(*(z3.Or(it.asks[role], agree(it, it.replacing(*pairs))) for role, pairs in second.items()))


def who_is_asked_can_matter(it: Outcome) -> Term:
    """Where a role is asked, some reply changes the outcome: a certified one, for the repairer, if there is any.

    The judge's may change the branch alone, where the repair would have been the same answer.
    """
    silent = it.replacing((OPINION, NONE), (P, NONE))
    judge = some(lambda x: z3.And(pool(x), z3.Not(agree(it.replacing((OPINION, x), (P, x)), silent))), _X)
    repair = z3.Not(every(lambda x: z3.Implies(admissible(x), it.replacing((R, x)).answer == M), _X))
    derivation = z3.Not(every(lambda x: z3.Implies(another(x), it.replacing((D, x)).answer == M), _X))
    return z3.And(
        z3.Implies(it.asks["judge"], judge),
        z3.Implies(z3.And(it.asks["repairer"], some(admissible, _X)), repair),
        z3.Implies(z3.And(it.asks["deriver"], some(another, _X)), derivation),
    )


def another(answer: Term) -> Term:
    return z3.And(answer != NONE, z3.Not(same(answer, M)))


LEADER = either(mark(SECOND) == CERTIFIED, SECOND, either(mark(THIRD) == CERTIFIED, THIRD, NONE))
"""The certified class with most votes, consensus aside."""
CASE_M = z3.And(OPEN, P == NONE, z3.Not(CASE_R), LEADER != NONE)
"""The case in which the certified majority follows the locked rule."""


def near(answer: Term) -> Term:
    """That an uncertified class has at least consensus's votes - k."""
    return z3.And(answer != NONE, mark(answer) == UNCERTIFIED, votes(answer) >= votes(M) - K)


NEARLY = z3.And(mark(M) == UNCERTIFIED, z3.Not(z3.Or(CASE_R, CASE_S)), z3.Not(z3.And(PASSES, REPAIRABLE)))
"""That it is still open, after certified preference, certified repair and derivation had their turn."""
CASE_N = z3.And(NEARLY, P != NONE, z3.Or(*(z3.And(near(other), same(P, other)) for other in OTHERS)))
"""The case in which a preference ships because it nearly won the vote."""
PREFERENCE = either(same(P, SECOND), SECOND, THIRD)
"""The preference in the spelling that ships, where it is not consensus's."""
HALF = z3.Sum(*(either(other != NONE, votes(other), 0) for other in OTHERS)) >= votes(M)
"""That consensus has not more than half the votes."""
SUPPORT = either(same(D, SECOND), SECOND, THIRD)
"""The class of the derivation's answer in the spelling that ships, where it is not consensus's."""


def supportable(answer: Term, margin: bool) -> Term:
    """That a derivation may support a class, with a margin of k votes or without one."""
    return z3.And(answer != NONE, *([votes(answer) >= votes(M) - K, HALF] if margin else []))


def is_the_certified_majority(it: Outcome) -> Term:
    """In retrieval, if consensus is uncertified, the certified class with most votes ships; else consensus ships."""
    return either(z3.And(OPEN, LEADER != NONE), ships(it, "certified", LEADER), keeps(it))


def asks_nobody(it: Outcome) -> Term:
    """No role is asked."""
    return z3.Not(z3.Or(*it.asks.values()))


def is_eq3_then_the_certified_majority(it: Outcome) -> Term:
    """Eq. 3 and Eq. 4, but for a judge that abstains where no certified repair is given: then certified majority."""
    return either(CASE_M, ships(it, "certified", LEADER), is_eq3(it))


def a_silent_judge_leaves_repair_and_certified_majority(it: Outcome) -> Term:
    """Without a preference, a certified repair ships, else the certified majority."""
    without = either(z3.And(OPEN, REPAIRABLE, admissible(R)), ships(it, "repair", R), is_the_certified_majority(it))
    return z3.Implies(z3.And(RETRIEVAL, P == NONE), without)


def the_four_cases_partition(it: Outcome) -> Term:
    """The cases of Eq. 3 and that of the certified majority exclude each other, and each branch is taken in its own."""
    return _partition(it, {"repair": z3.Or(CASE_R, CASE_D), "judge": CASE_S, "certified": CASE_M})


def is_eq3_then_near(it: Outcome) -> Term:
    """Eq. 3 and Eq. 4, and where they keep an uncertified consensus, a preference that nearly won the vote."""
    return either(CASE_N, ships(it, "judge", PREFERENCE), is_eq3(it))


def the_near_case_is_apart(it: Outcome) -> Term:
    """The cases of Eq. 3 and the near one exclude each other, and each branch is taken in its own."""
    return _partition(it, {"repair": z3.Or(CASE_R, CASE_D), "judge": z3.Or(CASE_S, CASE_N)})


def an_inapplicable_preference_never_overrides(it: Outcome) -> Term:
    """What a judge ships is certified or uncertified: never an answer to which no certificate applies."""
    return z3.Implies(by(it, "judge"), mark(it.answer) != INAPPLICABLE)


def an_uncertified_override_nearly_won(it: Outcome) -> Term:
    """In consensus's place ships a certified answer, a checked derivation or the preference for a near class."""
    nearly = z3.And(by(it, "judge"), mark(M) == UNCERTIFIED, near(it.answer), same(it.answer, P))
    return z3.Or(override_needs_a_certificate(it), nearly)


def near_acts_only_without_a_derivation(it: Outcome) -> Term:
    """In arithmetic a preference ships only where no derivation passes; where one does, the rule is Eq. 4."""
    return z3.Implies(z3.And(ARITHMETIC, REPAIRABLE, D != NONE), z3.And(is_eq3(it), z3.Not(it.asks["judge"])))


def judges_differ_only_where_admissible_or_near(it: Outcome) -> Term:
    """Two judges change the outcome only if consensus is uncertified and one prefers a certified or near answer."""
    alike = agree(it, it.replacing((OPINION, OPINION2), (P, P2)))
    nearly = [z3.And(near(class_), same(one, class_)) for class_ in OTHERS for one in (P, P2)]
    certain = z3.And(RETRIEVAL, z3.Or(admissible(P), admissible(P2)))
    return z3.Or(alike, z3.And(mark(M) == UNCERTIFIED, z3.Or(certain, *nearly)))


def asks_the_judge_where_it_can_matter(it: Outcome) -> Term:
    """The judge is asked where a rival is certified, or a class is near and nothing certified has shipped."""
    return it.asks["judge"] == z3.Or(z3.And(OPEN, RIVAL), z3.And(NEARLY, z3.Or(*map(near, OTHERS))))


def is_eq3_and_support(it: Outcome, margin: bool = False) -> Term:
    """In retrieval Eq. 3; in arithmetic another candidate's class, if a checked derivation says so, else consensus."""
    backing = z3.Or(*(z3.And(supportable(other, margin), same(D, other)) for other in OTHERS))
    derivation = either(z3.And(REPAIRABLE, D != NONE, backing), ships(it, "repair", SUPPORT), keeps(it))
    return either(ARITHMETIC, derivation, is_eq3(it))


def is_eq3_and_support_within_k(it: Outcome) -> Term:
    """The same for a class that lacks at most k votes, if consensus has not more than half of them."""
    return is_eq3_and_support(it, margin=True)


def a_derivation_brings_no_answer(it: Outcome) -> Term:
    """In arithmetic what ships is consensus, or another candidate's answer."""
    candidate = z3.And(it.answer != NONE, pool(it.answer), z3.Not(same(it.answer, M)))
    return z3.Implies(ARITHMETIC, z3.Or(keeps(it), candidate))


def derivers_differ_only_where_a_candidate_is_derived(it: Outcome) -> Term:
    """Two derivers change the outcome only if a derivation of one passes and says what another candidate says."""
    alike = agree(it, it.replacing((D, D2)))
    cases = [z3.And(class_ != NONE, one != NONE, same(one, class_)) for class_ in OTHERS for one in (D, D2)]
    return z3.Or(alike, z3.And(ARITHMETIC, z3.Or(*cases)))


def a_consensus_of_more_than_half_is_final(it: Outcome) -> Term:
    """In arithmetic a consensus with more than half of the votes ships, and nobody is asked."""
    return z3.Implies(z3.And(ARITHMETIC, z3.Not(HALF)), z3.And(keeps(it), asks_nobody(it)))


def asks_the_deriver_about_rivals(it: Outcome, margin: bool = False) -> Term:
    """The deriver is asked where there is another candidate's class."""
    rivals = z3.Or(*(supportable(other, margin) for other in OTHERS))
    return it.asks["deriver"] == z3.And(ARITHMETIC, REPAIRABLE, rivals)


def asks_the_deriver_about_rivals_within_k(it: Outcome) -> Term:
    """The deriver is asked where another candidate's class may be supported."""
    return asks_the_deriver_about_rivals(it, margin=True)


def _partition(it: Outcome, cases: dict[str, Term]) -> Term:
    branches = [by(it, branch) == case for branch, case in cases.items()]
    default = by(it, "consensus") == z3.Not(z3.Or(*cases.values()))
    conditions = [path.condition for path in it.paths]
    return z3.And(z3.AtMost(*cases.values(), 1), *branches, default, z3.AtMost(*conditions, 1))


def includes(narrow: Outcome, wide: Outcome) -> Term:
    """With the repairer silent, the wide rule ships what judge and deriver make the narrow one ship, if they say so."""
    target = narrow.replacing((R, NONE)).answer
    derivation = either(z3.And(D != NONE, is_or_says(D, target), z3.Not(same(D, M))), D, NONE)
    preferred = either(pool(target), target, NONE)
    got = wide.replacing((R, NONE), (OPINION, preferred), (P, preferred), (D, derivation)).answer
    return z3.And(z3.Or(target == NONE, pool(target), target == D), is_or_says(got, target))
