"""The decision rules, written as generators that yield the role to ask, and Eq. 3 as a table.

A rule yields the name of a role whose answer can still change the outcome, is sent that role's reply, and returns a
`Choice`. It never uses an LM, a network, a clock, or even text: everything that it may ask about a question is in the
protocol `Case`. So the selector, the batch runner, the replay of a journal and the prover all drive the same code.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple, Protocol, TypeVar

from eldgr_dspy.certificates import Witness
from eldgr_dspy.words import Branch, Role, Task

Q = TypeVar("Q")
T = TypeVar("T")


class Case(Protocol):
    """What a rule may ask about one question. Answers are opaque to the rule: it compares them only through `same`."""

    @property
    def task(self) -> Task:
        """`retrieval` (the evidence certifies) or `arithmetic` (a derivation does), by the declared type of answers."""
        ...

    @property
    def first(self) -> Any:
        """The first candidate's answer, None where it has none."""
        ...

    @property
    def consensus(self) -> Any:
        """The majority's answer in the spelling that ships, None where no candidate has an answer."""
        ...

    @property
    def contested(self) -> bool:
        """Whether the candidates' answers form more than one class."""
        ...

    @property
    def standings(self) -> Sequence[tuple[Any, int]]:
        """An answer of each class with its votes: most votes first, then earliest, so consensus is the first."""
        ...

    @property
    def repairable(self) -> bool:
        """Whether the repairer or the deriver may be asked at all (`homogeneous`, empty pools)."""
        ...

    def same(self, one: Any, other: Any) -> bool:
        """Whether two answers vote together; None never equals an answer."""
        ...

    def certified(self, answer: Any) -> bool | None:
        """Whether the evidence certifies an answer's class; None if none applies, as to a yes or a refusal."""
        ...

    def rival(self) -> bool:
        """Whether a candidate outside the consensus's class is certified."""
        ...

    def stated(self, reply: Any) -> Any:
        """The answer that a judge's reply names, None where it abstained."""
        ...

    def preferred(self, reply: Any) -> Any:
        """The answer that a judge's reply stands for under the chosen reading of Eq. 3, None if it abstained."""
        ...

    def repaired(self, reply: Any) -> Any:
        """The span that a repairer's reply gives, certified or not, None where it abstained."""
        ...

    def derived(self, reply: Any) -> Any:
        """The answer of a deriver's reply, None where it abstained or its derivation does not pass the check."""
        ...


class Choice(NamedTuple):
    """What a rule returns: the branch that decided and the answer that ships, or None without an answer."""

    branch: Branch
    answer: Any


class NearChoice(Choice):
    """A judge's preference for a class that nearly won the vote."""


class TiedChoice(Choice):
    """A judge's preference for a class that has as many votes as consensus."""


Steps = Generator[Role, Any, Choice]
Rule = Callable[[Any], Steps]


def first_candidate(case: Case) -> Steps:
    """Ship the first candidate."""
    yield from ()
    return Choice("first", case.first)


def majority_vote(case: Case) -> Steps:
    """Ship consensus."""
    yield from ()
    return Choice("consensus", case.consensus)


def scalar_judge(case: Case) -> Steps:
    """Ship the judge's preference, with full authority; consensus where it abstains or has nothing to choose."""
    if case.contested:
        preference = case.stated((yield "judge"))
        if preference is not None and not case.same(preference, case.consensus):
            return Choice("judge", preference)
    return Choice("consensus", case.consensus)


def certified_majority(case: Case) -> Steps:
    """Ship the certified class with most votes where consensus is uncertified; no role is asked. Source: ours."""
    yield from ()
    if case.task == "retrieval" and case.certified(case.consensus) is False:
        for answer, _ in case.standings:
            if case.certified(answer) is True:
                return Choice("certified", answer)
    return Choice("consensus", case.consensus)


def evidence_locked(case: Case) -> Steps:
    """EL-DGR, Eq. 3 and Eq. 4: consensus, unless another answer is certified and consensus is not."""
    if case.task == "arithmetic":
        return (yield from _derive(case))
    if case.certified(case.consensus) is not False:
        return Choice("consensus", case.consensus)
    if case.rival():
        preference = case.preferred((yield "judge"))
        if _overrides(case, preference):
            return Choice("judge", preference)
    if case.repairable:
        repair = case.repaired((yield "repairer"))
        if _overrides(case, repair):
            return Choice("repair", repair)
    return Choice("consensus", case.consensus)


def _derive(case: Case) -> Steps:
    if case.repairable:
        answer = case.derived((yield "deriver"))
        if answer is not None and not case.same(answer, case.consensus):
            return Choice("repair", answer)
    return Choice("consensus", case.consensus)


def _overrides(case: Case, answer: Any) -> bool:
    return answer is not None and case.certified(answer) is True and not case.same(answer, case.consensus)


def locked_then_certified(case: Case) -> Steps:
    """EL-DGR; then certified majority, if the judge abstains and no certified repair is given. Source: ours."""
    replies: dict[Role, Any] = {}
    choice = yield from relay(evidence_locked(case), replies.__setitem__)
    if choice.branch == "consensus" and "judge" in replies and case.preferred(replies["judge"]) is None:
        return (yield from certified_majority(case))
    return choice


@cache
def near(k: int) -> Rule:
    """Return EL-DGR that lets the judge, as the last step, prefer a class that nearly won the vote. Source: ours.

    Such a class has at least consensus's votes - k; a tie is k = 0. It overrides only if certificates apply to it and
    to consensus, and neither has one; in arithmetic only if no derivation passes.
    """

    def locked_or_near(case: Case) -> Steps:
        replies: dict[Role, Any] = {}
        choice = yield from relay(evidence_locked(case), replies.__setitem__)
        derivation = case.derived(replies["deriver"]) if "deriver" in replies else None
        rivals = _near(case, k) if choice.branch == "consensus" and derivation is None else []
        if rivals:
            preference = case.preferred(replies["judge"] if "judge" in replies else (yield "judge"))
            return next((rival for rival in rivals if case.same(preference, rival.answer)), choice)
        return choice

    locked_or_near.__qualname__ = f"near({k})"
    return locked_or_near


def _near(case: Case, k: int) -> list[Choice]:
    """A choice for each uncertified class that nearly won; empty if consensus is certified or inapplicable."""
    if case.consensus is None or case.certified(case.consensus) is not False:
        return []
    (_, most), *others = case.standings
    return [
        TiedChoice("judge", answer) if votes == most else NearChoice("judge", answer)
        for answer, votes in others
        if votes >= most - k and case.certified(answer) is False
    ]


@cache
def support(k: int | None = None) -> Rule:
    """Return EL-DGR in which a derivation supports a candidate, and never brings a number of its own. Source: ours.

    In arithmetic a checked derivation overrides only with the answer of a candidate of another class than consensus's.
    With k, that class has at least consensus's votes - k, and a consensus of more than half the votes is final.
    """

    def locked_to_candidates(case: Case) -> Steps:
        if case.task != "arithmetic":
            return (yield from evidence_locked(case))
        rivals = _supportable(case, k) if case.repairable else []
        answer = case.derived((yield "deriver")) if rivals else None
        default = Choice("consensus", case.consensus)
        return next((Choice("repair", rival) for rival in rivals if case.same(answer, rival)), default)

    locked_to_candidates.__qualname__ = "support" if k is None else f"support({k})"
    return locked_to_candidates


def _supportable(case: Case, k: int | None) -> list[Any]:
    standings = case.standings
    if k is None:
        return [answer for answer, _ in standings[1:]]
    most = standings[0][1] if standings else 0
    if sum(votes for _, votes in standings[1:]) >= most:
        return [answer for answer, votes in standings[1:] if votes >= most - k]
    return []


RULES: Mapping[str, Rule] = {
    "first": first_candidate,
    "majority": majority_vote,
    "certified": certified_majority,
    "judge": scalar_judge,
    "eldgr": evidence_locked,
    "eldgr_certified": locked_then_certified,
    "support": support(),
}
"""The rules under the names that the command and `summary.json` use."""

MARGINS: Mapping[str, Callable[[int], Rule]] = {"support": support, "near": near}
"""The rules with a margin of k votes, named `near(k)` for each k."""

DEFAULT_RULES = ("first", "majority", "certified", "judge", "eldgr")
"""The rules of a run that names none: the four matched selectors, and certified majority, which a judge must beat."""


def always(rule: Rule, roles: Callable[[Any], tuple[Role, ...]]) -> Rule:
    """Return `rule`, asking every role of `roles(case)` first. Answer and branch are those of `rule` (law 9)."""

    def asking(case: Any) -> Steps:
        replies: dict[Role, Any] = {}
        for role in roles(case):
            replies[role] = yield role
        return drive(rule(case), replies.__getitem__)

    return asking


def relay(steps: Steps, hear: Callable[[Role, Any], Generator[Any, Any, None] | None]) -> Generator[Any, Any, Choice]:
    """Run a rule within another generator, and return its choice.

    `hear` is called with each role and its reply. If it returns a generator, that asks further first.
    """
    reply = None
    while True:
        try:
            role = steps.send(reply)
        except StopIteration as stop:
            choice: Choice = stop.value
            return choice
        reply = yield role
        further = hear(role, reply)
        if further is not None:
            yield from further


def drive(steps: Generator[Q, Any, T], ask: Callable[[Q], Any]) -> T:
    """Run a rule, or any generator that asks, to its end with `ask(role)`; what `ask` raises is raised here."""
    is_over, value = _step(steps, None)
    while not is_over:
        is_over, value = _step(steps, ask(value))
    result: T = value
    return result


async def adrive(
    steps: Generator[Q, Any, T],
    ask: Callable[[Q], Awaitable[Any]],
    taking: Callable[[Callable[[], tuple[bool, Any]]], Awaitable[tuple[bool, Any]]] | None = None,
) -> T:
    """Run a rule to its end as `drive` does, awaiting each reply; `taking` takes each step, such as in a thread."""
    reply: Any = None
    while True:
        step = partial(_step, steps, reply)
        is_over, value = step() if taking is None else await taking(step)
        if is_over:
            result: T = value
            return result
        reply = await ask(value)


def _step(steps: Generator[Any, Any, Any], reply: object) -> tuple[bool, Any]:
    """Return whether a generator ended, with what it returns or yields; no thread can hand over a StopIteration."""
    try:
        return False, steps.send(reply)
    except StopIteration as stop:
        return True, stop.value


@dataclass(frozen=True, slots=True)
class Decision:
    """Which answer ships, and why: a rule's result on one question, with all that it took into account.

    Attributes:
        answer: The answer that ships; None for an empty pool, or if no candidate has an answer.
        branch: What decided: `first`, `consensus`, `certified`, `judge` or `repair`.
        reason: A code that names the case: `empty_pool`, `no_answers`, `first`, `default`, `homogeneous`,
            `consensus_certified`, `consensus_inapplicable`, `certified_majority`, `preference_certified`, `preference`
            (a judge with full authority), `preference_tied`, `preference_near`, `repair_certified`,
            `derivation_checked`, `derivation_agrees`.
        certified: Whether the shipped answer carries a certificate; None where a certificate is inapplicable.
        witness: Where in the evidence it occurs, for a certified retrieval answer.
        consensus: The majority's answer. tie: whether several classes had as many votes.
        preference: The pool index, from 0, that the judge prefers; None if it was not asked or abstained.
        repair: The repairer's span or the deriver's answer as it was given, certified or not.
        consulted: The roles that were asked, in order. abstentions: for each of them that abstained, why.
        ranking: All pool indices, best first; see `eldgr_dspy.rule.ranking`. `ranking[0]` may differ from `answer`.
        notes: What a reader of the decision should also know, each a phrase: candidates without an answer,
            answers that could not be told apart for certain, several certified answers, why consensus is uncertified.
    """

    answer: str | None
    branch: Branch
    reason: str = "default"
    certified: bool | None = False
    witness: Witness | None = None
    consensus: str | None = None
    tie: bool = False
    preference: int | None = None
    repair: str | None = None
    consulted: tuple[Role, ...] = ()
    abstentions: Mapping[Role, str] = field(default_factory=dict)
    ranking: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def decide(
    consensus: str | None, preference: str | None, repair: str | None, certified: Callable[[str], bool | None]
) -> Decision:
    """Return the decision of Eq. 3 on three answers: the table itself, when all of them are known.

    Args:
        consensus: m. preference: s, or None if the judge abstains. repair: r, or None without a repair.
        certified: The certificate: True, False, or None where it is inapplicable (a yes or no). It is called at
            most once an answer, never with None or an empty string: an empty answer is uncertified.

    Source: Eq. 3; the third value is ours (an inapplicable consensus is final, and nothing inapplicable overrides).
    Answers are compared as they are; the caller takes care of classes of answers (see `eldgr_dspy.rule.cases`).
    """
    three = (consensus, preference, repair)
    marks: dict[str | None, bool | None] = {answer: certified(answer) for answer in dict.fromkeys(three) if answer}
    m, s, r = (marks.get(answer, False) for answer in three)
    table: dict[tuple[bool, bool, bool], tuple[Branch, str | None, str]] = {
        # m open, s certified, r certified
        (True, True, True): ("judge", preference, "preference_certified"),
        (True, True, False): ("judge", preference, "preference_certified"),
        (True, False, True): ("repair", repair, "repair_certified"),
    }
    otherwise = "default" if consensus else "no_answers"
    default = "consensus_certified" if m else "consensus_inapplicable" if m is None else otherwise
    branch, answer, reason = table.get((m is False, s is True, r is True), ("consensus", consensus, default))
    return Decision(answer, branch, reason, marks.get(answer, False), consensus=consensus, repair=repair)
