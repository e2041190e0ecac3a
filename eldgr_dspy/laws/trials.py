"""One question as a law tries it: the question, every role's reply, and the rule's outcome; a law, and how it breaks.

This module uses only the standard library. Source: the paper's statements about its rule, made exact; the names and the
third value (inapplicable) are ours.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from textwrap import indent
from typing import Any, NamedTuple

from eldgr_dspy.base.differences import around_difference
from eldgr_dspy.base.named_objects import name_of
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Decision, Rule, drive
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Reply
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import Role

SILENT = Abstention("silent")


@dataclass(frozen=True, slots=True)
class Trial:
    """A question under settings, and what each role would reply to it; a missing role abstains.

    `gold` is the right answer, empty if it is not known; `more` are passages that the law on more evidence adds.
    """

    question: Question
    settings: Settings = field(default_factory=Settings)
    replies: Mapping[Role, Reply] = field(default_factory=dict)
    gold: str = ""
    more: tuple[Passage, ...] = ()

    def reply(self, role: Role) -> Reply:
        return self.replies.get(role, SILENT)

    def replying(self, role: Role, reply: Reply) -> "Trial":
        return replace(self, replies={**self.replies, role: reply})

    def about(self, **parts: Any) -> "Trial":
        """Return the same trial with other parts of the question, as `answers` or `passages`."""
        return replace(self, question=replace(self.question, **parts))


@dataclass(frozen=True, slots=True, repr=False)
class Subject:
    """The subject of the laws: a rule, and the case that it sees (classes, certificates, ranking)."""

    rule: Rule
    case: Callable[[Question, Settings], Case] = Case

    def settle(self, trial: Trial) -> "Outcome":
        """Return the rule's outcome on a trial, giving only the replies that it asks for."""
        case, roles = self.case(trial.question, trial.settings), list[Role]()

        def reply(role: Role) -> Reply:
            roles.append(role)
            return trial.reply(role)

        choice = drive(self.rule(case), reply)
        return Outcome(self, trial, case, case.record(choice, {role: trial.reply(role) for role in roles}), (*roles,))

    def settle_twice(self, trial: Trial) -> "Outcome":
        """Return the outcome; raise an ArgumentError if what is tried changes its input or does not repeat itself."""
        before, outcome = repr(trial), self.settle(trial)
        again, fresh, case = self.settle(trial), self.case(trial.question, trial.settings), outcome.case
        marks = [[one.certified(answer) for answer in trial.question.answers] for one in (fresh, case)]
        accounts: dict[str, tuple[object, object]] = {
            "question or a reply": (before, repr(trial)),
            "settings": (fresh.settings, case.settings),
            "vote": (fresh.vote, case.vote),
            "certificates": (marks[0], marks[1]),
            "decision": ((outcome.decision, outcome.roles), (again.decision, again.roles)),
        }
        for what, (first, then) in accounts.items():
            if then != first:
                was, now = around_difference(repr(first), repr(then))
                demand = (
                    f"The answer type {fresh.type.name!r} must put the same answers into the same classes"
                    if what == "vote" and self.case(trial.question, trial.settings).vote != fresh.vote
                    else f"The rule {name_of(self.rule)!r}, its certificate and its answer type must only read what"
                    " they are given, and repeat themselves"
                )
                raise ArgumentError(
                    f"{demand}; the {what} was first {was}, then {now}. Keep nothing from call to call, and use no"
                    " random numbers."
                )
        return outcome


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """A rule's outcome on a trial, and the roles that it asked, in order. Methods answer about other replies too."""

    subject: Subject
    trial: Trial
    case: Case
    decision: Decision
    roles: tuple[Role, ...]

    def __repr__(self) -> str:
        return f"<Outcome: {_shipment(self)}; asked {', '.join(self.roles) or 'nobody'}>"

    def again(self, trial: Trial) -> "Outcome":
        return self.subject.settle(trial)

    @property
    def mark(self) -> bool | None:
        """The certificate of consensus."""
        return self.case.certified(self.case.consensus)

    @property
    def nominee(self) -> str | None:
        """The candidate that the judge's reply names."""
        return self.case.stated(self.trial.reply("judge"))

    @property
    def preference(self) -> str | None:
        """The answer that the judge's reply stands for under the settings."""
        return self.case.preferred(self.trial.reply("judge"))

    @property
    def derivation(self) -> str | None:
        """The answer of the deriver's reply if its check passes."""
        return self.case.derived(self.trial.reply("deriver"))

    @property
    def repair(self) -> str | None:
        """The answer of the repairer's reply, or of the deriver's checked one; None if neither may be asked."""
        if not self.case.repairable:
            return None
        return self.case.repaired(self.trial.reply("repairer")) if self.case.task == "retrieval" else self.derivation

    @property
    def classes(self) -> list[list[int]]:
        """The candidates that vote, by class, each class and each member in pool order; counted apart from the vote."""
        answers, same = self.trial.question.answers, self.case.same
        voting = [index for index, answer in enumerate(answers) if same(answer, answer)]
        groups = [[other for other in voting if same(answers[index], answers[other])] for index in voting]
        return [group for index, group in zip(voting, groups, strict=True) if group[0] == index]

    def alike(self, answer: str | None, other: str | None) -> bool:
        """Whether two answers are the same, or vote together."""
        return answer == other or self.case.same(answer, other)

    def keeps(self, answer: str | None) -> bool:
        """Whether an answer is consensus, or votes with it."""
        return self.alike(answer, self.case.consensus)

    def supports(self, answer: str | None) -> bool:
        """Whether an answer has the support that its task requires: a certificate, or a checked derivation."""
        if self.case.task == "retrieval":
            return self.case.certified(answer) is True
        return self.derivation is not None and self.alike(answer, self.derivation)

    def admits(self, answer: str | None) -> bool:
        """Whether an answer may replace consensus: it is another one, and supported."""
        return answer is not None and not self.keeps(answer) and self.supports(answer)

    def agrees(self, other: "Outcome") -> bool:
        """Whether another outcome ships the same class of answers by the same branch."""
        return self.decision.branch == other.decision.branch and self.alike(self.decision.answer, other.decision.answer)


def describe(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield pairs of a heading and a text with which a reader can follow an outcome by hand."""
    trial, question = outcome.trial, outcome.trial.question
    yield "question", f"{question.text!r} ({question.task})"
    yield "candidates", "\n".join(f"{i}: {answer!r}" for i, answer in enumerate(question.answers)) or "none"
    if any(text != (answer or "") for text, answer in zip(question.texts, question.answers, strict=False)):
        yield "texts", "\n".join(f"{i}: {text!r}" for i, text in enumerate(question.texts))
    if question.options:
        yield "options", "\n".join(map(repr, question.options))
    if question.passages or question.type.way == "evidence":
        passages = (f"{one.title!r}: {one.text!r}" if one.title else repr(one.text) for one in question.passages)
        yield "evidence", "\n".join(passages) or "none"
    yield "settings", as_code(trial.settings)
    for role in dict.fromkeys((*outcome.case.roles(), *outcome.roles)):
        yield role, as_code(trial.reply(role))
    yield "consensus", _mark(outcome.case, outcome.case.consensus)
    yield "asked", ", ".join(outcome.roles) or "nobody"
    yield "shipped", _shipment(outcome)


def _shipment(outcome: Outcome) -> str:
    return f"{_mark(outcome.case, outcome.decision.answer)}, by branch {outcome.decision.branch}"


def table(lines: Iterable[tuple[str, str]]) -> str:
    """Return pairs of a heading and a text as lines in two columns."""
    return "\n".join(f"  {heading:12}{indent(text, ' ' * 14).lstrip()}" for heading, text in lines)


def as_code(value: Settings | Reply) -> str:
    """Return settings or a reply as code, without the fields that have their defaults."""
    pairs = [(one.name, getattr(value, one.name)) for one in fields(value) if getattr(value, one.name) != one.default]
    return f"{type(value).__name__}({', '.join(f'{name}={part!r}' for name, part in pairs)})"


def _mark(case: Case, answer: str | None) -> str:
    if answer is None or case.task == "arithmetic":
        return repr(answer)
    words = {True: "certified", False: "uncertified", None: "certificate inapplicable"}
    return f"{answer!r} ({words[case.certified(answer)]})"


class Finding(NamedTuple):
    """Whether a law that applies holds, what it demands, and the outcome that it compares with, if it does."""

    holds: bool
    demand: str
    other: Outcome | None = None


Statement = Callable[[Outcome], Finding | None]


@dataclass(frozen=True, slots=True)
class Law:
    """A law of the rule.

    Attributes:
        number: As in the list of laws, from 1. name: the name of its tests.
        claim: What it says, in one sentence; `docs/laws.md` has what it does not say, although one might think so.
        statement: Checks it on a rule's outcome; returns None if it does not apply. A law about the selector has none.
    """

    number: int
    name: str
    claim: str
    statement: Statement | None = None

    def check(self, outcome: Outcome) -> bool:
        """Return whether the law applies to a rule's outcome; raise `LawBroken` if it demands another."""
        return bool(require_laws([self], outcome))


def law(number: int, claim: str) -> Callable[[Statement], Law]:
    """Return a decorator that makes a law of the function that checks it."""
    return lambda statement: Law(number, statement.__name__, claim, statement)


class LawBroken(AssertionError):
    """A rule breaks a law; the message has the trial, what the rule shipped, and what the law demands."""

    def __init__(self, law: Law, outcome: Outcome, finding: Finding, others: Sequence[str] = ()) -> None:
        self.law, self.outcome = law, outcome
        there = [] if finding.other is None else [("but there", _shipment(finding.other))]
        lines = [*describe(outcome), ("demanded", finding.demand), *there]
        end = f"\n\nBroken too: {', '.join(others)}." if others else ""
        super().__init__(f"Law {law.number}, {law.name}, is broken. {law.claim}\n\n{table(lines)}{end}")


def weight(law: Law) -> tuple[bool, int]:
    """Return a key by which the law that matters most is the least: that of the lock, or else the first."""
    return law.name != "override_needs_a_certificate", law.number


def require_laws(laws: Sequence[Law], outcome: Outcome) -> list[str]:
    """Return the names of the laws that apply to an outcome, or raise the one that matters most of those it breaks."""
    findings = [(law, law.statement(outcome)) for law in sorted(laws, key=weight) if law.statement]
    applicable = [(law, finding) for law, finding in findings if finding is not None]
    if breaches := [(law, finding) for law, finding in applicable if not finding.holds]:
        law, finding = breaches[0]
        raise LawBroken(law, outcome, finding, [other.name for other, _ in breaches[1:]])
    return [law.name for law, _ in applicable]


def choose_laws(among: Sequence[Law], laws: Sequence[str] | None, without: Sequence[str]) -> list[Law]:
    """Return those of some laws that are named, or all, without those that are left out; at least one."""
    choice, left_out = among if laws is None else find_laws("laws", laws, among), find_laws("without", without, among)
    if not (selection := [law for law in choice if law not in left_out]):
        raise ArgumentError(
            f"laws={laws!r} and without={without!r} must leave at least one law to try. Leave out fewer."
        )
    return selection


def find_laws(argument: str, names: Sequence[str], among: Sequence[Law], what: str = "is tried here") -> list[Law]:
    """Return the laws that an argument names, in the order of the laws."""
    if isinstance(names, str):
        raise ArgumentError(f"{argument} must be a sequence of names; got {names!r}. Put it in a list.")
    if others := [name for name in names if name not in {law.name for law in among}]:
        choices = ", ".join(law.name for law in among)
        raise ArgumentError(f"{argument}: {others[0]!r} is not a law that {what}; expected some of {choices}.")
    return [law for law in among if law.name in names]
