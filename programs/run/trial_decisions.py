"""What a user's rule or certificate decides on small questions, as a hash that a freeze holds.

It notices what a hash of its source does not: a change in a module that it imports.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from typing import Any

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import drive
from eldgr_dspy.errors import ArgumentError, EldgrError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.own_certificates import OwnCertificate
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.rules import require_choice, require_role, rule_named
from eldgr_dspy.words import Role

SOURCELESS = "certificate={!s} cannot be frozen, because Python finds no source of it; write it in a module."


_ANSWERS = ("Lyon", "Oslo", "Rome", "yes", None)
_EVIDENCE = ((), ("It was Lyon then.",), ("Rome", "and then Lyon"), ("It was Rome, and Rome is not Lyon.",))
_SILENT = Abstention("silent")
_SOUND = Derivation((Step("3 * 6", "18"),), "18", "18 / 6 = 3")


@dataclass(frozen=True, slots=True)
class _Trial:
    """A question, and what each role would reply."""

    question: Question
    replies: Mapping[Role, Reply]


def _of_texts() -> list[_Trial]:
    """Three votes over towns, a yes and no answer, with each judge and a repair in the evidence or not."""
    trials = []
    for pool, passages, judge, offer in product(product(_ANSWERS, repeat=3), _EVIDENCE, (-1, 0, 2), ("Lyon", "Bern")):
        question = Question("Which?", "retrieval", pool, (), tuple(Passage("", text) for text in passages))
        verdict = Verdict(judge) if judge >= 0 and pool[judge] else _SILENT
        trials.append(_Trial(question, {"judge": verdict, "repairer": Repair(offer)}))
    return trials


def _of_sums() -> list[_Trial]:
    text = "A crate holds 3 jars. How many jars do 6 crates hold?"
    replies: tuple[Reply, ...] = (_SILENT, _SOUND, replace(_SOUND, check=""))
    pools = product(("9", "18", "$18", None), repeat=3)
    return [
        _Trial(Question(text, "arithmetic", pool), {"judge": Verdict(0) if pool[0] else _SILENT, "deriver": reply})
        for pool, reply in product(pools, replies)
    ]


def rule_decisions(rule: str, settings: Settings) -> dict[str, str]:
    """Return a hash of what a user's rule decides, including through modules that it imports."""
    if settings.own and settings.own.consulted:  # nobody is asked here
        settings = replace(settings, certificate="folded")
    decide = rule_named(rule)

    def decided(trial: _Trial) -> object:
        roles: list[Role] = []

        def ask(wanted: Any) -> Reply:
            roles.append(require_role(rule, wanted))
            return trial.replies.get(roles[-1], _SILENT)

        choice = require_choice(rule, drive(decide(Case(trial.question, settings)), ask))
        return roles, choice.branch, choice.answer

    return _decided_twice(decided, [*_of_texts(), *_of_sums()], f"rules={rule!r}", "question and replies")


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

    def certified(trial: _Trial) -> object:
        case = Case(trial.question, Settings(certificate=own))
        return [case.certified(answer) for answer in case.question.answers]

    what = f"certificate={own.name!r}"
    return {"certificate": _decided_twice(certified, _of_texts(), what, "answer, evidence and question")}


def _decided_twice(
    decide: Callable[[_Trial], object], trials: Sequence[_Trial], what: str, about: str
) -> dict[str, str]:
    """Return a hash of what is decided on trials, where an error counts by its name.

    Raises:
        ArgumentError: In reversed order something else is decided.
    """

    def decided(trial: _Trial) -> object:
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
