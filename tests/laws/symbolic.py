"""Drives a rule over answers of which nothing is known, and returns what it computes as a z3 term.

An answer is a constant of an uninterpreted sort; classes, certificates and the pool are arbitrary. Whenever the rule
asks something that this does not fix, the run forks, once for each answer that the solver finds possible.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple, NoReturn, TypeVar

import z3

from eldgr_dspy.decision import drive
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.words import ROLES, Role

T = TypeVar("T")
Term = Any
"""A z3 expression; z3 ships no types."""

ANSWER = z3.DeclareSort("Answer")
MARK, (CERTIFIED, UNCERTIFIED, INAPPLICABLE) = z3.EnumSort("Mark", ["certified", "uncertified", "inapplicable"])
BRANCHES = ("first", "consensus", "certified", "judge", "repair", "raised")
BRANCH, _BRANCHES = z3.EnumSort("Branch", list(BRANCHES))
BRANCH_OF: Mapping[str, Term] = dict(zip(BRANCHES, _BRANCHES, strict=True))

NONE, BLANK = z3.Consts("none blank", ANSWER)
"""No answer, and the empty string."""
M, FIRST = z3.Consts("consensus first", ANSWER)
OPINION, P, R, D = z3.Consts("stated preference repair derivation", ANSWER)
"""The answers of replies: the judge's statement, the preference under the reading that was chosen, and so on."""
OPINION2, P2, R2, D2 = z3.Consts("other_stated other_preference other_repair other_derivation", ANSWER)
"""A second reply of each role, for the laws that compare two."""
ARITHMETIC, REPAIRABLE = z3.Bools("arithmetic repairable")
same = z3.Function("same", ANSWER, ANSWER, z3.BoolSort())
mark = z3.Function("mark", ANSWER, MARK)
pool = z3.Function("pool", ANSWER, z3.BoolSort())
"""The candidates' answers that vote."""
correct = z3.Function("correct", ANSWER, z3.BoolSort())

_A, _B, _C = z3.Consts("a b c", ANSWER)


def some(claim: Callable[..., Term], *variables: Term) -> Term:
    return z3.Exists(list(variables), claim(*variables))


def every(claim: Callable[..., Term], *variables: Term) -> Term:
    return z3.ForAll(list(variables), claim(*variables))


CONTEST = some(lambda a, b: z3.And(pool(a), pool(b), z3.Not(same(a, b))), _A, _B)
RIVAL = some(lambda a: z3.And(pool(a), z3.Not(same(a, M)), mark(a) == CERTIFIED), _A)

EMPTY = (NONE != BLANK, mark(NONE) == UNCERTIFIED, mark(BLANK) == UNCERTIFIED)


def _judge(opinion: Term, preferred: Term) -> tuple[Term, ...]:
    """A judge names candidates that have an answer, or nothing."""
    both = (z3.Or(one == NONE, pool(one)) for one in (opinion, preferred))
    return (*both, (opinion == NONE) == (preferred == NONE))


QUESTION: Sequence[Term] = (
    *EMPTY,
    *_judge(OPINION, P),
    every(lambda a, b: z3.Implies(same(a, b), same(b, a)), _A, _B),
    every(lambda a, b, c: z3.Implies(z3.And(same(a, b), same(b, c)), same(a, c)), _A, _B, _C),
    every(lambda a: z3.Not(z3.Or(same(NONE, a), same(BLANK, a))), _A),
    every(lambda a: z3.Implies(pool(a), same(a, a)), _A),
    every(lambda a, b: z3.Implies(z3.And(pool(a), pool(b), same(a, b)), mark(a) == mark(b)), _A, _B),
    z3.Or(pool(M), z3.And(M == NONE, every(lambda a: z3.Not(pool(a)), _A))),
)
"""All that is assumed of a question and its replies. A certificate belongs to a class of the pool; a repair may be a
spelling that the pool lacks, and carry its own. No answer, and the empty one, are in no class."""

WORLD: Sequence[Term] = (*QUESTION, *_judge(OPINION2, P2))
"""The same, with a second reply of each role."""

PLAIN: Sequence[Term] = (*EMPTY, z3.Not(ARITHMETIC), REPAIRABLE)
"""All that is assumed of what `decide` is given."""

_FIRST, _SECOND = z3.Var(0, ANSWER), z3.Var(1, ANSWER)
IDENTICAL = z3.And(_FIRST == _SECOND, _FIRST != NONE, _FIRST != BLANK)
"""What `same` is to `decide`: a class is a spelling."""


class Path(NamedTuple):
    """One run of a rule: the condition under which it is this one, what shipped, and who was asked, in order."""

    condition: Term
    branch: str
    answer: Term
    roles: tuple[Role, ...]
    error: Exception | None


class Oracle:
    """Answers one run: follows `script` as far as it goes, then takes the first way and notes the others."""

    def __init__(self, premises: Sequence[Term], script: Sequence[int]) -> None:
        self.script, self.picks, self.others = script, list[int](), list[list[int]]()
        self.conditions: list[Term] = []
        self.values: dict[tuple[Any, ...], Any] = {}
        self.solver = z3.Solver()
        self.solver.set(mbqi=False)  # to look for models takes long; a way that is possible for all it knows is taken
        self.solver.add(*premises)

    def choose(self, *options: tuple[T, Term]) -> T:
        """Return the value of one option whose condition is possible here; each other gets a run of its own."""
        question = tuple(options)
        if question not in self.values:
            self.values[question], condition = options[self._take([condition for _, condition in options])]
            self.conditions.append(condition)
            self.solver.add(condition)
        value: T = self.values[question]
        return value

    def _take(self, conditions: Sequence[Term]) -> int:
        at = len(self.picks)
        assert at < 100, "the rule asks without end"
        if at < len(self.script):
            pick = self.script[at]
        else:
            pick, *others = [i for i, one in enumerate(conditions) if self.solver.check(one) != z3.unsat]
            self.others += [[*self.picks, other] for other in others]
        self.picks.append(pick)
        return pick

    def whether(self, condition: Term) -> bool:
        return self.choose((True, condition), (False, z3.Not(condition)))

    def answer(self, term: Term) -> "Answer | None":
        return None if self.whether(term == NONE) else Answer(term, self)

    def mark(self, term: Term) -> bool | None:
        marks: dict[bool | None, Any] = {True: CERTIFIED, False: UNCERTIFIED, None: INAPPLICABLE}
        return self.choose(*((value, mark(term) == name) for value, name in marks.items()))


class Answer:
    """An answer of which only the term is known. To compare it, or to test it as a string is tested, forks the run."""

    def __init__(self, term: Term, oracle: Oracle) -> None:
        self.term, self.oracle = term, oracle

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self.oracle.whether(self.term == other.term)

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return self.oracle.whether(self.term != BLANK)


def term_of(answer: Any) -> Term:
    return answer.term if isinstance(answer, Answer) else NONE


class Reply:
    """What a role replied. It is opaque: a rule may hand it to its case, and nothing else."""

    def __init__(self, role: Role) -> None:
        self.role = role

    def refuse(self, *_: object) -> NoReturn:
        """Raise: no rule may look at a reply, so that it cannot tell a failed role from a silent one."""
        raise TypeError(f"the rule looks into the {self.role}'s reply")

    __eq__ = __bool__ = __len__ = refuse
    __hash__ = refuse


def reading(role: Role, term: Term) -> Callable[["SymbolicCase", Any], Answer | None]:
    def read(case: "SymbolicCase", reply: Any) -> Answer | None:
        if not isinstance(reply, Reply) or reply.role != role:
            raise TypeError(f"the rule reads another reply as the {role}'s")
        return case.oracle.answer(term)

    return read


class SymbolicCase:
    """The protocol `eldgr_dspy.decision.Case` over symbols."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle

    roles: Any = Case.roles
    task = property(lambda case: case.oracle.choose(("arithmetic", ARITHMETIC), ("retrieval", z3.Not(ARITHMETIC))))
    first = property(lambda case: case.oracle.answer(FIRST))
    consensus = property(lambda case: case.oracle.answer(M))
    contested = property(lambda case: case.oracle.whether(CONTEST))
    repairable = property(lambda case: case.oracle.whether(REPAIRABLE))

    def same(self, one: Any, other: Any) -> bool:
        return self.oracle.whether(same(term_of(one), term_of(other)))

    def certified(self, answer: Any) -> bool | None:
        return self.oracle.mark(term_of(answer))

    def rival(self) -> bool:
        return self.oracle.whether(RIVAL)

    stated, preferred = reading("judge", OPINION), reading("judge", P)
    repaired, derived = reading("repairer", R), reading("deriver", D)


# The bound is on classes, not on candidates, votes or k. A rule goes through the standings and treats every class after
# consensus alike, so that a third class shows it all that a fourth could.

SECOND, THIRD = z3.Consts("second third", ANSWER)
"""The other classes, as the answers that ship; `NONE` where there are fewer."""
OTHERS = (SECOND, THIRD)
votes: Term = z3.Function("votes", ANSWER, z3.IntSort())
J, K = z3.Ints("j k")
"""How many votes a class may lack to be near; j is at most k."""

STANDING: Sequence[Term] = (
    *WORLD,
    z3.Implies(M == NONE, SECOND == NONE),
    z3.Implies(SECOND == NONE, THIRD == NONE),
    *(z3.Or(other == NONE, z3.And(pool(other), z3.Not(same(other, M)), votes(other) > 0)) for other in OTHERS),
    z3.Not(same(SECOND, THIRD)),
    every(lambda a: z3.Implies(pool(a), z3.Or(*(same(a, class_) for class_ in (M, *OTHERS)))), _A),
    z3.Implies(SECOND != NONE, votes(M) >= votes(SECOND)),
    z3.Implies(THIRD != NONE, votes(SECOND) >= votes(THIRD)),
    z3.Implies(CONTEST, REPAIRABLE),
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
    @property
    def standings(self) -> Sequence[tuple[Answer | None, Votes]]:
        answers = ((self.oracle.answer(term), Votes(votes(term), self.oracle)) for term in (M, *OTHERS))
        return [*takewhile(lambda standing: standing[0] is not None, answers)]


@dataclass(frozen=True)
class Outcome:
    """What a rule computes, as terms: the branch, the answer, and for each role whether it is asked."""

    branch: Term
    answer: Term
    asks: Mapping[Role, Term]
    paths: Sequence[Path] = field(default=(), repr=False)

    def replacing(self, *pairs: tuple[Term, Term]) -> "Outcome":
        """The outcome with other replies in place of the first of each pair."""
        roles: dict[Role, Term] = {role: z3.substitute(term, *pairs) for role, term in self.asks.items()}
        return Outcome(z3.substitute(self.branch, *pairs), z3.substitute(self.answer, *pairs), roles)


def outcome_of(
    rule: Any, premises: Sequence[Term] = QUESTION, case: Callable[[Oracle], SymbolicCase] = SymbolicCase
) -> Outcome:
    def run(oracle: Oracle) -> tuple[Any, list[Role]]:
        roles: list[Role] = []

        def ask(role: Role) -> Reply:
            roles.append(role)
            return Reply(role)

        return drive(rule(case(oracle)), ask), roles

    return _explore(run, premises)


def outcome_of_table(decide: Any) -> Outcome:
    """What `decide` computes; the certificate refuses to be asked about no answer, an empty one, or one twice."""

    def run(oracle: Oracle) -> tuple[Any, list[Role]]:
        queries: list[Answer] = []

        def certified(answer: Answer) -> bool | None:
            assert answer, "the certificate is asked about an empty answer"
            assert answer not in queries, "the certificate is asked twice about one answer"
            queries.append(answer)
            return oracle.mark(answer.term)

        return decide(oracle.answer(M), oracle.answer(P), oracle.answer(R), certified), []

    return _explore(run, EMPTY)


def _explore(run: Callable[[Oracle], tuple[Any, list[Role]]], premises: Sequence[Term]) -> Outcome:
    paths, scripts = list[Path](), [list[int]()]
    while scripts:
        oracle = Oracle(premises, scripts.pop())
        paths.append(_follow(run, oracle))
        scripts += oracle.others
    branch = _nest(paths, [BRANCH_OF[path.branch] for path in paths])
    answer = _nest(paths, [path.answer for path in paths])
    roles: dict[Role, Term] = {role: _nest(paths, [z3.BoolVal(role in path.roles) for path in paths]) for role in ROLES}
    return Outcome(branch, answer, roles, paths)


def _follow(run: Callable[[Oracle], tuple[Any, list[Role]]], oracle: Oracle) -> Path:
    try:
        choice, roles = run(oracle)
    except Exception as error:  # noqa: BLE001 -- a rule that raises has not decided, and the laws say so
        return Path(z3.And(*oracle.conditions), "raised", NONE, (), error)
    return Path(z3.And(*oracle.conditions), choice.branch, term_of(choice.answer), tuple(roles), None)


def _nest(paths: Sequence[Path], values: Sequence[Term]) -> Term:
    """The value of the path whose condition holds."""
    conditions: dict[Term, list[Term]] = {}
    for path, value in zip(paths, values, strict=True):
        conditions.setdefault(value, []).append(path.condition)
    term, *others = conditions
    for value in others:
        term = z3.If(z3.Or(*conditions[value]), value, term)
    return term
