"""Every pattern of answers, classes and certificates that a rule can tell apart, and Eq. 3 and Eq. 4 written as tables.

A rule compares answers by class and reads their certificates, so three candidates show it all that a pool can: the
consensus, the judge's preference, and one that is neither. Each class is certified, uncertified or beyond certificates,
with as many votes as consensus or fewer; a new spelling of the repairer's carries its own certificate.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, combinations_with_replacement, product
from operator import itemgetter
from types import ModuleType
from typing import Any, NamedTuple

from eldgr_dspy.rule.cases import Case
from eldgr_dspy.words import ROLES, TASKS, Role, Task

Mark = bool | None
MARKS: Sequence[Mark] = (True, False, None)


class Answer(NamedTuple):
    """An answer: its class, 0 being consensus's, and its spelling."""

    group: int
    spelling: int


NEW = 9
"""A spelling that no candidate has."""


@dataclass(frozen=True)
class Pool:
    """The different answers of a pool, consensus first, and each class's certificate and votes; empty if nobody votes.

    `behind` is how many votes each class after consensus lacks; the classes are in the order of their standing.
    """

    answers: tuple[Answer, ...]
    marks: tuple[Mark, ...]
    behind: tuple[int, ...]

    @property
    def consensus(self) -> Answer | None:
        return self.answers[0] if self.answers else None

    @property
    def standings(self) -> tuple[tuple[Answer, int], ...]:
        earliest = {answer.group: answer for answer in reversed(self.answers)}
        return tuple((earliest[group], 10 - lacks) for group, lacks in enumerate((0, *self.behind)) if self.answers)


class Pattern(NamedTuple):
    """A question and what each role replies to it."""

    task: Task
    repairable: bool
    pool: Pool
    judge: tuple[Answer, Answer] | None
    """What the judge states, and the preference under the reading that was chosen."""
    offer: tuple[Answer, Mark] | None
    """The repairer's span or the deriver's checked answer, with its certificate."""

    @property
    def preferred(self) -> Answer | None:
        return self.judge[1] if self.judge else None

    @property
    def proposal(self) -> Answer | None:
        return self.offer[0] if self.offer else None

    def mark(self, answer: Answer | None) -> Mark:
        """The certificate of an answer; no answer is uncertified."""
        if answer is None:
            return False
        return self.offer[1] if self.offer and answer == self.offer[0] else self.pool.marks[answer.group]


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Every way to sort `n` things into classes, which are numbered as they appear."""
    if n == 0:
        yield ()
    for before in partitions(n - 1) if n else ():
        for group in range(max(before, default=-1) + 2):
            yield (*before, group)


def pools(farthest: int = 0) -> Iterator[Pool]:
    """All pools, those included in which a class lacks up to `farthest` votes."""
    for groups in chain(*map(partitions, range(4))):
        answers = tuple(Answer(group, spelling) for spelling, group in enumerate(groups))
        others = max(len(set(groups)) - 1, 0)
        for marks in product(MARKS, repeat=len(set(groups))):
            for behind in combinations_with_replacement(range(farthest + 1), others):
                yield Pool(answers, marks, behind)


def judges(pool: Pool) -> Iterator[tuple[Answer, Answer] | None]:
    yield None
    yield from product(pool.answers, pool.answers)


def offers(pool: Pool) -> Iterator[tuple[Answer, Mark] | None]:
    yield None
    yield from ((answer, pool.marks[answer.group]) for answer in pool.answers)
    for group, mark in product(range(len(pool.marks) + 1), MARKS):
        yield Answer(group, NEW), mark


@cache
def patterns(farthest: int = 0) -> tuple[Pattern, ...]:
    """All of them, those included in which a class lacks up to `farthest` votes."""
    return tuple(
        Pattern(task, repairable, pool, judge, offer)
        for task, repairable, pool in product(TASKS, (True, False), pools(farthest))
        for judge, offer in product(judges(pool), offers(pool))
    )


class TableCase:
    """The protocol `eldgr_dspy.decision.Case` over a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern, self.task, self.repairable = pattern, pattern.task, pattern.repairable
        self.consensus = pattern.pool.consensus
        self.first = pattern.pool.answers[-1] if pattern.pool.answers else None
        self.contested, self.standings = len(pattern.pool.marks) > 1, pattern.pool.standings

    def same(self, one: Answer | None, other: Answer | None) -> bool:
        return one is not None and other is not None and one.group == other.group

    def certified(self, answer: Answer | None) -> Mark:
        return self.pattern.mark(answer)

    def rival(self) -> bool:
        return True in self.pattern.pool.marks[1:]

    def stated(self, reply: Any) -> Any:
        return reply["judge"] and reply["judge"][0]

    def preferred(self, reply: Any) -> Any:
        return reply["judge"] and reply["judge"][1]

    repaired, derived = itemgetter("repairer"), itemgetter("deriver")
    roles: Any = Case.roles


EQ3: Mapping[tuple[int, int, int], str] = {
    (0, 0, 0): "m", (0, 0, 1): "r", (0, 1, 0): "s", (0, 1, 1): "s",
    (1, 0, 0): "m", (1, 0, 1): "m", (1, 1, 0): "m", (1, 1, 1): "m",
}  # fmt: skip
"""Eq. 3: what ships by c(m), c(s) and c(r). A consensus beyond certificates counts as certified, any other answer as
not; so does an answer of consensus's own class, and a role that is silent or may not be asked."""

BRANCH = {"m": "consensus", "s": "judge", "r": "repair"}


class Target(NamedTuple):
    """What a rule is to return, and the roles that it is to ask, in order."""

    branch: str
    answer: Answer | None
    roles: tuple[Role, ...]
    kind: str = "Choice"


def eldgr(pattern: Pattern) -> Target:
    """Eq. 4: by the declared task."""
    return arithmetic(pattern) if pattern.task == "arithmetic" else retrieval(pattern)


def retrieval(pattern: Pattern) -> Target:
    """Eq. 3, and who can still matter."""
    m, s, r = pattern.pool.consensus, pattern.preferred, pattern.proposal if pattern.repairable else None
    certified = (int(pattern.mark(m) is not False), int(overrides(pattern, s)), int(overrides(pattern, r)))
    row = EQ3[certified]
    rival = any(overrides(pattern, answer) for answer in pattern.pool.answers)
    judge: tuple[Role, ...] = ("judge",) if rival and not certified[0] else ()
    repairer: tuple[Role, ...] = ("repairer",) if pattern.repairable and not any(certified[:2]) else ()
    return Target(BRANCH[row], {"m": m, "s": s, "r": r}[row], (*judge, *repairer))


def arithmetic(pattern: Pattern) -> Target:
    """A checked derivation ships unless it says what consensus says."""
    m, answer = pattern.pool.consensus, pattern.proposal
    roles: tuple[Role, ...] = ("deriver",) if pattern.repairable else ()
    if not roles or answer is None or (m is not None and answer.group == m.group):
        return Target("consensus", m, roles)
    return Target("repair", answer, roles)


def overrides(pattern: Pattern, answer: Answer | None) -> bool:
    own = pattern.pool.consensus is not None and answer is not None and answer.group == 0
    return pattern.mark(answer) is True and not own


def scalar_judge(pattern: Pattern) -> Target:
    """The judge's statement, with full authority."""
    choice = pattern.judge[0] if pattern.judge else None
    roles: tuple[Role, ...] = ("judge",) if len(pattern.pool.marks) > 1 else ()
    if choice is None or choice.group == 0:
        return Target("consensus", pattern.pool.consensus, roles)
    return Target("judge", choice, roles)


def majority_vote(pattern: Pattern) -> Target:
    return Target("consensus", pattern.pool.consensus, ())


def first_candidate(pattern: Pattern) -> Target:
    return Target("first", pattern.pool.answers[-1] if pattern.pool.answers else None, ())


def certified_majority(pattern: Pattern) -> Target:
    """The class of most votes among the certified, where consensus is uncertified."""
    leader = leading(pattern) if pattern.task == "retrieval" and pattern.mark(pattern.pool.consensus) is False else None
    return Target("certified", leader, ()) if leader else majority_vote(pattern)


def leading(pattern: Pattern) -> Answer | None:
    return next((answer for answer, _ in pattern.pool.standings if pattern.pool.marks[answer.group] is True), None)


def locked_then_majority(pattern: Pattern) -> Target:
    """The locked rule; where nothing overrides and the judge was asked and is silent, the certified majority."""
    base = eldgr(pattern)
    if base.branch == "consensus" and "judge" in base.roles and pattern.judge is None:
        return Target("certified", leading(pattern), base.roles)
    return base


def near(k: int) -> Callable[[Pattern], Target]:
    """The locked rule; where nothing overrides an uncertified consensus, a preference that lacks up to k votes."""

    def expected(pattern: Pattern) -> Target:
        base, pool = eldgr(pattern), pattern.pool
        own = pattern.task == "arithmetic" and pattern.repairable and pattern.offer
        if own or base.branch != "consensus" or pattern.mark(pool.consensus) is not False:
            return base
        lacks = {group: n for group, n in enumerate(pool.behind, 1) if n <= k and pool.marks[group] is False}
        roles = base.roles if "judge" in base.roles or not lacks else (*base.roles, "judge")
        preferred = pattern.preferred
        if preferred is None or preferred.group not in lacks:
            return base._replace(roles=roles)
        ships = dict(enumerate(answer for answer, _ in pool.standings))[preferred.group]
        return Target("judge", ships, roles, "NearChoice" if lacks[preferred.group] else "TiedChoice")

    return expected


def support(k: int | None) -> Callable[[Pattern], Target]:
    """A derivation ships only as the answer of another candidate; with k, of one that lacks up to k votes in a tie."""

    def expected(pattern: Pattern) -> Target:
        if pattern.task == "retrieval":
            return retrieval(pattern)
        own, others = pattern.proposal, pattern.pool.standings[1:]
        most = pattern.pool.standings[0][1] if pattern.pool.standings else 0
        open_ = pattern.repairable and (k is None or most <= sum(votes for _, votes in others))
        rivals = {answer.group: answer for answer, votes in others if open_ and (k is None or votes >= most - k)}
        roles: tuple[Role, ...] = ("deriver",) if rivals else ()
        if own is None or own.group not in rivals:
            return Target("consensus", pattern.pool.consensus, roles)
        return Target("repair", rivals[own.group], roles)

    return expected


TARGETS: dict[str, Callable[[Pattern], Target]] = {
    "support": support(None), "support(1)": support(1), "near(1)": near(1), "near(0)": near(0),
    "eldgr_certified": locked_then_majority, "certified": certified_majority, "first": first_candidate,
    "majority": majority_vote, "judge": scalar_judge, "eldgr": eldgr,
}  # fmt: skip
FARTHEST = {"near(0)": 1, "near(1)": 2, "support(1)": 2}
"""How many votes a class may lack in the patterns that a rule is held to; a rule that is not here compares no votes."""


@cache
def expected_of(rule: str) -> tuple[Target, ...]:
    return tuple(map(TARGETS[rule], patterns(FARTHEST.get(rule, 0))))


@dataclass
class Sweep:
    """A decision module on every pattern: the shipped one, or one with a planted change."""

    module: ModuleType

    @cached_property
    def rules(self) -> Mapping[str, Any]:
        margins = {f"{name}({k})": rule(k) for name, rule in self.module.MARGINS.items() for k in (0, 1)}
        return {**self.module.RULES, **margins}

    @cached_property
    def always(self) -> Mapping[str, Any]:
        rules = {name: self.module.always(rule, lambda _: ROLES) for name, rule in self.rules.items()}
        return {**rules, "eldgr": self.module.always(self.module.RULES["eldgr"], lambda case: case.roles())}

    def drive(self, rule: Any, pattern: Pattern) -> Target:
        roles, proposal = list[Role](), pattern.proposal
        replies: dict[Role, Any] = {"judge": pattern.judge, "repairer": proposal, "deriver": proposal}

        def ask(role: Role) -> Any:
            roles.append(role)
            return {role: replies[role]}

        choice = self.module.drive(rule(TableCase(pattern)), ask)
        return Target(choice.branch, choice.answer, tuple(roles), type(choice).__name__)

    def rule(self, name: str) -> int:
        """Hold a rule, asked lazily and always, to its table on every pattern; return how many there are."""
        lazy, always, every = self.rules[name], self.always[name], patterns(FARTHEST.get(name, 0))
        for pattern, expected in zip(every, expected_of(name), strict=True):
            assert self.drive(lazy, pattern) == expected, f"{name}: {pattern}"
            assert self.drive(always, pattern)[:2] == expected[:2], f"{name}, asked always: {pattern}"
        return len(every)

    def table(self) -> int:
        """Hold `decide` to Eq. 3 on every pattern of three strings; return how many there are."""
        for m, s, r, marks in strings():
            queries: list[str] = []

            def certified(answer: str, marks: Mapping[str, Mark] = marks, queries: list[str] = queries) -> Mark:
                queries.append(answer)
                return marks[answer]

            result = self.module.decide(m, s, r, certified)
            certified_m, *others = (marks.get(answer or "", False) for answer in (m, s, r))
            row = EQ3[int(certified_m is not False), int(others[0] is True), int(others[1] is True)]
            answer = {"m": m, "s": s, "r": r}[row]
            expected = (BRANCH[row], answer, marks.get(answer or "", False))
            assert (result.branch, result.answer, result.certified) == expected, f"decide: {(m, s, r, marks)}"
            assert sorted(queries) == sorted(marks), f"decide asks about {queries}"
        return sum(1 for _ in strings())

    def all(self) -> None:
        """Hold the whole module to the tables; of the near rules the one with fewest patterns."""
        self.table()
        for name in filter("near(1)".__ne__, reversed(TARGETS)):
            self.rule(name)


def strings() -> Iterator[tuple[str | None, str | None, str | None, Mapping[str, Mark]]]:
    """Every pattern of equality, emptiness and certificates that `decide` can be given."""
    for m, s, r in product((None, "", "m"), (None, "", "m", "s"), (None, "", "m", "s", "r")):
        different = list(dict.fromkeys(answer for answer in (m, s, r) if answer))
        for marks in product(MARKS, repeat=len(different)):
            yield m, s, r, dict(zip(different, marks, strict=True))
