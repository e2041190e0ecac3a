"""A law, how a check becomes one, and the error that says how a law is broken.

Source: the paper's statements about its rule, made exact; the names and the third value (inapplicable) are ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.trials import Outcome, describe, shipped, table


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
        claim: What it says, in one sentence. disclaims: what it does not say, although one might think so.
        statement: How it is checked on a rule; None for a law about the selector.
    """

    number: int
    name: str
    claim: str
    disclaims: str
    statement: Statement | None = None

    def check(self, outcome: Outcome) -> bool:
        """Return whether the law applies to a rule's outcome.

        Raises:
            LawBroken: It applies and demands another outcome.
        """
        finding = self.statement(outcome) if self.statement else None
        if finding is not None and not finding.holds:
            raise LawBroken(self, outcome, finding)
        return finding is not None


def law_in(laws: list[Law]) -> Callable[[int, str, str], Callable[[Statement], Statement]]:
    """Return a decorator `law(number, claim, disclaims)` that adds the law that a function checks to a list."""

    def law(number: int, claim: str, disclaims: str) -> Callable[[Statement], Statement]:
        def add(check: Statement) -> Statement:
            laws.append(Law(number, check.__name__, claim, disclaims, check))
            return check

        return add

    return law


class LawBroken(AssertionError):
    """A rule breaks a law; the message has the trial, what the rule shipped, and what the law demands."""

    def __init__(self, law: Law, outcome: Outcome, finding: Finding, others: Sequence[str] = ()) -> None:
        self.law, self.outcome, self.found = law, outcome, finding
        lines = [*describe(outcome), ("demanded", finding.demanded)]
        if finding.other is not None:
            lines.append(("but there", shipped(finding.other)))
        told = table(lines)
        end = f"\n\nBroken too: {', '.join(others)}." if others else ""
        super().__init__(f"Law {law.number}, {law.name}, is broken. {law.claim}\n\n{told}{end}")


def laws_left(among: Sequence[Law], laws: Sequence[str] | None, without: Sequence[str]) -> list[Law]:
    """Return those of some laws that are named, or all, without those that are left out.

    Raises:
        ArgumentError: As `laws_named`; or no law is left.
    """
    wanted, left_out = (
        [*among] if laws is None else laws_named("laws", laws, among),
        laws_named("without", without, among),
    )
    if not (left := [law for law in wanted if law not in left_out]):
        raise ArgumentError(
            f"laws={laws!r} and without={without!r} must leave at least one law to try. Leave out fewer."
        )
    return left


def require_laws(laws: Sequence[Law], outcome: Outcome) -> list[str]:
    """Return the names of the laws that apply to an outcome.

    Raises:
        LawBroken: For one that it breaks; the message names the others.
    """
    applied, broken = list[str](), list[LawBroken]()
    for law in laws:
        try:
            applied += [law.name] * law.check(outcome)
        except LawBroken as error:
            broken.append(error)
    if broken:
        raise first_broken(broken)
    return applied


def first_broken(broken: Sequence[LawBroken]) -> LawBroken:
    """Return the broken law that matters most, that of the lock or else the first, with the names of the others."""
    first, *others = sorted(broken, key=lambda one: (one.law.name != "override_needs_a_certificate", one.law.number))
    names = dict.fromkeys(one.law.name for one in others if one.law is not first.law)
    told = LawBroken(first.law, first.outcome, first.found, [*names])
    told.__cause__ = first.__cause__
    return told


def laws_named(argument: str, names: Sequence[str], among: Sequence[Law]) -> list[Law]:
    """Return the laws with these names, in the order of the laws.

    Args:
        argument: The caller's argument that has the names, for the message.
        names: The names. among: the laws that may be named here.

    Raises:
        ArgumentError: `names` is one text instead of a sequence, or a name is not that of one of these laws.
    """
    if isinstance(names, str):
        raise ArgumentError(f"{argument} must be a sequence of names; got {names!r}. Put it in a list.")
    for name in names:
        if name not in {law.name for law in among}:
            expected = ", ".join(law.name for law in among)
            raise ArgumentError(f"{argument}: {name!r} is not a law that is tried here; expected some of {expected}.")
    return [law for law in among if law.name in names]
