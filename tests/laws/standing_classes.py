"""The standings of a symbolic question: consensus and up to two other classes, each with any number of votes.

The bound is on classes, not on candidates, votes or k. A rule goes through the standings and treats every class after
consensus alike, so that a third class shows it all that a fourth could.
"""

from collections.abc import Sequence

import z3

from tests.laws.symbolic import (
    ANSWER,
    CONTESTED,
    NONE,
    REPAIRABLE,
    WORLD,
    Answer,
    M,
    Oracle,
    SymbolicCase,
    Term,
    every,
    pool,
    same,
)

SECOND, THIRD = z3.Consts("second third", ANSWER)
"""The other classes, as the answers that ship; `NONE` where there are fewer."""
OTHERS = (SECOND, THIRD)
votes: Term = z3.Function("votes", ANSWER, z3.IntSort())
J: Term = z3.Int("j")
K: Term = z3.Int("k")
"""How many votes a class may lack to be near; j is at most k."""

_A = z3.Const("a", ANSWER)

STANDING: Sequence[Term] = (
    *WORLD,
    z3.Implies(M == NONE, SECOND == NONE),
    z3.Implies(SECOND == NONE, THIRD == NONE),
    *(z3.Or(other == NONE, z3.And(pool(other), z3.Not(same(other, M)), votes(other) > 0)) for other in OTHERS),
    z3.Not(same(SECOND, THIRD)),
    every(lambda a: z3.Implies(pool(a), z3.Or(*(same(a, class_) for class_ in (M, *OTHERS)))), _A),
    z3.Implies(SECOND != NONE, votes(M) >= votes(SECOND)),
    z3.Implies(THIRD != NONE, votes(SECOND) >= votes(THIRD)),
    z3.Implies(CONTESTED, REPAIRABLE),
    z3.And(J >= 0, K >= J),
)
"""All that is assumed of a question with standings. A pool of several classes may be repaired, as `Case` has it."""


class Votes:
    """A number of which only the term is known; to compare it forks the run."""

    def __init__(self, term: Term, oracle: Oracle) -> None:
        self.term, self.oracle = term, oracle

    def __sub__(self, other: "Votes") -> "Votes":
        return Votes(self.term - other.term, self.oracle)

    def __add__(self, other: "Votes | int") -> "Votes":
        return Votes(self.term + (other if isinstance(other, int) else other.term), self.oracle)

    __radd__ = __add__

    def __ge__(self, other: "Votes") -> bool:
        return self.oracle.whether(self.term >= other.term)

    def __le__(self, other: int) -> bool:
        return self.oracle.whether(self.term <= other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Votes) and self.oracle.whether(self.term == other.term)

    __hash__ = None  # type: ignore[assignment]


class StandingCase(SymbolicCase):
    """A symbolic case with standings."""

    @property
    def standings(self) -> Sequence[tuple[Answer, Votes]]:
        terms = list[tuple[Answer, Votes]]()
        for term in (M, *OTHERS):
            answer = self.oracle.answer(term)
            if answer is None:
                break
            terms.append((answer, self.number(votes(term))))
        return terms

    def number(self, term: Term) -> Votes:
        return Votes(term, self.oracle)
