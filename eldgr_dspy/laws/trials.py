"""One question as a law tries it: the question, every role's reply, the changes to try, and the rule's outcome.

A trial is plain data, drawn by `eldgr_dspy.testing` or written by hand; a `Subject` is the rule under test, over a
case of its own if it has one. The laws are in `eldgr_dspy.laws`. This module uses only the standard library.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import isgenerator
from textwrap import indent
from typing import Any

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Decision, Rule, drive
from eldgr_dspy.errors import ArgumentError, result_of
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.rules import require_choice, require_role
from eldgr_dspy.words import Branch, Role

SILENT = Abstention("silent")
MOST_REQUESTS = 100
"""A rule that asks more often than this on one question counts as endless."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A question under settings, and what each role would reply to it.

    Attributes:
        question: The question with its pool and evidence. settings: the choices that a rule leaves open.
        replies: What each role would reply if it were asked; a missing role abstains.
        gold: The right answer, for the laws about right and wrong; empty if it is not known.
        more: Passages that the law on more evidence adds.
    """

    question: Question
    settings: Settings = field(default_factory=Settings)
    replies: Mapping[Role, Reply] = field(default_factory=dict)
    gold: str = ""
    more: tuple[Passage, ...] = ()

    def reply(self, role: Role) -> Reply:
        """Return what a role would reply."""
        return self.replies.get(role, SILENT)

    def replying(self, role: Role, reply: Reply) -> "Trial":
        """Return the same trial in which a role replies otherwise."""
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
        """Return the rule's outcome on a trial, giving only the replies that it asks for.

        Raises:
            ArgumentError: The rule is not a generator, asks for something that is not a role, never ends, or
                returns something other than a `Choice` of a branch and a string or None.
        """
        case, name, replies = self.case(trial.question, trial.settings), name_of(self.rule), list[tuple[Role, Reply]]()

        def reply(role: Any) -> Reply:
            if len(replies) == MOST_REQUESTS:
                raise ArgumentError(
                    f"The rule {name!r} asked {MOST_REQUESTS} times about one question and did not end; ask a role"
                    " once."
                )
            replies.append((require_role(name, role), trial.reply(role)))
            return replies[-1][1]

        steps = result_of(self.rule(case), "rule(case)", "a rule is a plain generator function")
        if not isgenerator(steps):
            raise ArgumentError(
                f"rule(case) returned {steps!r:.80}; a rule is a generator function: it yields the roles that it asks,"
                " and one that asks no role begins with `yield from ()`."
            )
        choice = require_choice(name, drive(steps, reply))
        return Outcome(self, trial, case, case.record(choice, dict(replies)), tuple(role for role, _ in replies))

    def settle_twice(self, trial: Trial) -> "Outcome":
        """Return the outcome, having checked that all that is under test repeats itself, and only reads what it gets.

        A law that compares two outcomes says nothing of a rule that draws lots.

        Raises:
            ArgumentError: As `settle`; or something was changed, or was another the second time.
        """
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
                if what == "vote" and self.case(trial.question, trial.settings).vote != fresh.vote:
                    raise ArgumentError(
                        f"The answer type {fresh.type.name!r} must put the same answers into the same classes; first "
                        f"{first!r:.80}, then {then!r:.80}. Keep nothing from call to call."
                    )
                raise ArgumentError(
                    f"The rule {name_of(self.rule)!r}, its certificate and its answer type must only read what they are"
                    f" given, and repeat themselves; the {what} was first {first!r:.200}, then {then!r:.200}. Keep"
                    " nothing from call to call, and use no random numbers."
                )
        return outcome


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """A rule's outcome on a trial: the case, the whole decision, and the roles that it asked, in order.

    The methods are what a law may ask about it, also about replies that the rule did not ask for. Its `repr` says in a
    line what shipped.
    """

    subject: Subject
    trial: Trial
    case: Case
    decision: Decision
    roles: tuple[Role, ...]

    def __repr__(self) -> str:
        return f"<Outcome: {describe_shipment(self)}; asked {', '.join(self.roles) or 'nobody'}>"

    def again(self, trial: Trial) -> "Outcome":
        """Return the same rule's outcome on another trial."""
        return self.subject.settle(trial)

    @property
    def answer(self) -> str | None:
        """What ships."""
        return self.decision.answer

    @property
    def branch(self) -> Branch:
        """The branch that decided, as the rule says."""
        return self.decision.branch

    @property
    def consensus(self) -> str | None:
        """The majority's answer."""
        return self.case.consensus

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
    def derived(self) -> str | None:
        """The answer of the deriver's reply if its check passes."""
        return self.case.derived(self.trial.reply("deriver"))

    @property
    def repair(self) -> str | None:
        """The answer of the repairer's reply, or of the deriver's checked one; None if neither may be asked."""
        if not self.case.repairable:
            return None
        return self.case.repaired(self.trial.reply("repairer")) if self.case.task == "retrieval" else self.derived

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
        return self.alike(answer, self.consensus)

    def supports(self, answer: str | None) -> bool:
        """Whether an answer has the support that its task requires: a certificate, or a checked derivation."""
        if self.case.task == "retrieval":
            return self.case.certified(answer) is True
        return self.derived is not None and self.alike(answer, self.derived)

    def admits(self, answer: str | None) -> bool:
        """Whether an answer may replace consensus: it is another one, and supported."""
        return answer is not None and not self.keeps(answer) and self.supports(answer)

    def agrees(self, other: "Outcome") -> bool:
        """Whether another outcome ships the same class of answers by the same branch."""
        return self.branch == other.branch and self.alike(self.answer, other.answer)


def describe(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield pairs of a heading and a text with which a reader can follow an outcome by hand."""
    trial, question, default = outcome.trial, outcome.trial.question, Settings()
    yield "question", f"{question.text!r} ({question.task})"
    yield "candidates", "\n".join(f"{i}: {answer!r}" for i, answer in enumerate(question.answers)) or "none"
    if any(text != (answer or "") for text, answer in zip(question.texts, question.answers, strict=False)):
        yield "texts", "\n".join(f"{i}: {text!r}" for i, text in enumerate(question.texts))
    if question.options:
        yield "options", "\n".join(map(repr, question.options))
    if question.passages or question.type.way == "evidence":
        passages = (f"{one.title!r}: {one.text!r}" if one.title else repr(one.text) for one in question.passages)
        yield "evidence", "\n".join(passages) or "none"
    changes = [(name, one) for name, one in trial.settings.arguments().items() if one != getattr(default, name)]
    yield "settings", ", ".join(f"{name}={one!r}" for name, one in changes) or "the defaults"
    for role in dict.fromkeys((*outcome.case.roles(), *outcome.roles)):
        yield role, in_words(trial.reply(role))
    yield "consensus", _mark(outcome.case, outcome.case.consensus)
    yield "asked", ", ".join(outcome.roles) or "nobody"
    yield "shipped", describe_shipment(outcome)


def describe_shipment(outcome: Outcome) -> str:
    """Return in words what ships, by which branch and with what certificate."""
    return f"{_mark(outcome.case, outcome.answer)}, by branch {outcome.branch}"


def table(lines: Iterable[tuple[str, str]]) -> str:
    """Return pairs of a heading and a text as lines in two columns."""
    return "\n".join(f"  {heading:12}{indent(text, ' ' * 14).lstrip()}" for heading, text in lines)


def name_of(function: object) -> str:
    """Return the name of a rule or a case, for a message."""
    return getattr(function, "__qualname__", None) or repr(function)


def _mark(case: Case, answer: str | None) -> str:
    if answer is None or case.task == "arithmetic":
        return repr(answer)
    words = {True: "certified", False: "uncertified", None: "certificate inapplicable"}
    return f"{answer!r} ({words[case.certified(answer)]})"


def in_words(reply: Reply) -> str:
    """Return a role's reply in words."""
    match reply:
        case Verdict(preferred, scores):
            return f"prefers candidate {preferred}" + (f", scores {list(scores)}" if scores is not None else "")
        case Repair(answer):
            return f"gives {answer!r}"
        case Derivation(steps, answer, check, others):
            chain = "; ".join(f"{step.expression} = {step.value}" for step in steps) or "no steps"
            return " and ".join([f"derives {answer!r} by {chain}, and checks {check!r}", *map(in_words, others)])
        case Abstention(reason):
            return "abstains" if reason == SILENT.reason else f"abstains: {reason!r}"
