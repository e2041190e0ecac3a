"""A law, how a check becomes one, and the error that says how a law is broken.

Source: the paper's statements about its rule, made exact; the names and the third value (inapplicable) are ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.trials import Outcome, describe, describe_shipment, table


class Finding(NamedTuple):
    """The result of a law on a trial to which it applies: whether it holds, and what it demands in words.

    `other` is what the same rule did on a changed trial, for a law that compares two.
    """

    holds: bool
    demanded: str
    other: Outcome | None = None


Statement = Callable[[Outcome], Finding | None]
"""Checks a law on a rule's outcome; None if the law does not apply to it."""


@dataclass(frozen=True, slots=True)
class Law:
    """A law.

    Attributes:
        number: As in the list of laws, from 1. name: the name of its tests.
        claim: What it says, in one sentence; `docs/laws.md` has what it does not say, although one might think so.
        statement: How it is checked on a rule; None for a law about the selector.
    """

    number: int
    name: str
    claim: str
    statement: Statement | None = None

    def check(self, outcome: Outcome) -> bool:
        """Return whether the law applies to a rule's outcome.

        Raises:
            LawBroken: It applies and demands another outcome.
        """
        return bool(require_laws([self], outcome))


def law(number: int, claim: str) -> Callable[[Statement], Law]:
    """Return a decorator that makes a law of the function that checks it."""
    return lambda statement: Law(number, statement.__name__, claim, statement)


class LawBroken(AssertionError):
    """A rule breaks a law; the message has the trial, what the rule shipped, and what the law demands."""

    def __init__(self, law: Law, outcome: Outcome, finding: Finding, others: Sequence[str] = ()) -> None:
        self.law, self.outcome = law, outcome
        lines = [*describe(outcome), ("demanded", finding.demanded)]
        if finding.other is not None:
            lines.append(("but there", describe_shipment(finding.other)))
        end = f"\n\nBroken too: {', '.join(others)}." if others else ""
        super().__init__(f"Law {law.number}, {law.name}, is broken. {law.claim}\n\n{table(lines)}{end}")


def weight(law: Law) -> tuple[bool, int]:
    """Return a key by which the law that matters most is the least: that of the lock, or else the first."""
    return law.name != "override_needs_a_certificate", law.number


def require_laws(laws: Sequence[Law], outcome: Outcome) -> list[str]:
    """Return the names of the laws that apply to an outcome, or raise the one that matters most of those it breaks."""
    findings = [(law, law.statement(outcome)) for law in sorted(laws, key=weight) if law.statement]
    applied = [(law, finding) for law, finding in findings if finding is not None]
    if broken := [(law, finding) for law, finding in applied if not finding.holds]:
        law, finding = broken[0]
        raise LawBroken(law, outcome, finding, [other.name for other, _ in broken[1:]])
    return [law.name for law, _ in applied]


def laws_left(among: Sequence[Law], laws: Sequence[str] | None, without: Sequence[str]) -> list[Law]:
    """Return those of some laws that are named, or all, without those that are left out; at least one."""
    selection = [*among] if laws is None else laws_named("laws", laws, among)
    left_out = laws_named("without", without, among)
    if not (left := [law for law in selection if law not in left_out]):
        raise ArgumentError(
            f"laws={laws!r} and without={without!r} must leave at least one law to try. Leave out fewer."
        )
    return left


def laws_named(argument: str, names: Sequence[str], among: Sequence[Law]) -> list[Law]:
    """Return the laws that an argument names, in the order of the laws."""
    if isinstance(names, str):
        raise ArgumentError(f"{argument} must be a sequence of names; got {names!r}. Put it in a list.")
    if unknown := [name for name in names if name not in {law.name for law in among}]:
        expected = ", ".join(law.name for law in among)
        raise ArgumentError(f"{argument}: {unknown[0]!r} is not a law that is tried here; expected some of {expected}.")
    return [law for law in among if law.name in names]
