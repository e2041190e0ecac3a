"""What a user's rule or certificate decides in small situations, as a hash that a lock holds.

It notices what a hash of its source does not: a change in a module that it imports.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from eldgr_dspy.cases import Case
from eldgr_dspy.errors import ArgumentError, EldgrError
from eldgr_dspy.laws.situations import situations
from eldgr_dspy.laws.trials import Subject, Trial
from eldgr_dspy.own_certificates import OwnCertificate
from eldgr_dspy.questions import Settings
from eldgr_dspy.rules import rule_named

SOURCELESS = "certificate={!s} cannot be frozen, because Python finds no source of it; write it in a module."


def rule_decisions(rule: str, settings: Settings) -> dict[str, str]:
    """Return a hash of what a user's rule decides, including through modules that it imports."""
    if settings.own and settings.own.consulted:  # nobody is asked here
        settings = replace(settings, certificate="folded")
    subject = Subject(rule_named(rule))

    def decided(trial: Trial) -> object:
        outcome = subject.settle(trial)
        return outcome.asked, outcome.branch, outcome.answer

    trials = [replace(trial, settings=settings) for trial in situations()]
    return _decided_twice(decided, trials, f"rules={rule!r}", "question and replies")


def certificate_decisions(own: OwnCertificate | None) -> dict[str, Any]:
    """Return a hash of what a user's certificate decides, including through modules that it imports.

    Raises:
        ArgumentError: It has no source, or does not decide the same twice.
    """
    if own is None:
        return {}
    if own.source is None:
        raise ArgumentError(SOURCELESS.format(own))
    if own.consulted:  # nobody is asked here
        return {"certificate": {}}

    def certified(trial: Trial) -> object:
        case = Case(trial.question, trial.settings)
        return [case.certified(answer) for answer in case.question.answers]

    trials = [replace(trial, settings=Settings(certificate=own)) for trial in situations("retrieval")]
    what = f"certificate={own.name!r}"
    return {"certificate": _decided_twice(certified, trials, what, "answer, evidence and question")}


def _decided_twice(decide: Callable[[Trial], object], trials: Sequence[Trial], what: str, about: str) -> dict[str, str]:
    """Return a hash of what is decided on trials, where an error counts by its name.

    Raises:
        ArgumentError: In reversed order something else is decided.
    """

    def decided(trial: Trial) -> object:
        try:
            return decide(trial)
        except EldgrError as error:
            return type(error).__name__

    first = [*map(decided, trials)]
    if first != [*map(decided, reversed(trials))][::-1]:
        raise ArgumentError(
            f"{what} must decide the same each time; it decided differently about the same {about}. Remove what is "
            "random, and any memory of earlier questions."
        )
    return {"decisions": digits(repr(first).encode())}


def digits(content: bytes) -> str:
    """Return 16 hexadecimal digits of a hash."""
    return sha256(content).hexdigest()[:16]
