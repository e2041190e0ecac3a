"""Check that a rule and a certificate of a user's own only read what they are given, and repeat themselves.

A law that compares two outcomes says nothing of a rule that draws lots.
"""

from eldgr_dspy.cases import Case
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.trials import Outcome, Subject, Trial, name_of

_ADVICE = "Keep nothing from call to call, and use no random numbers."


def settle_twice(subject: Subject, trial: Trial) -> Outcome:
    """Return a rule's outcome on a trial, having checked that rule and certificate only read and repeat themselves.

    Raises:
        ArgumentError: As `Subject.settle`; or something was changed, or something else was decided the second time.
    """
    before, name = repr(trial), name_of(subject.rule)
    outcome, untouched = subject.settle(trial), subject.case(trial.question, trial.settings)
    parts = ("question", "settings", "vote")
    changed = [f"case.{part}" for part in parts if getattr(outcome.case, part) != getattr(untouched, part)]
    if "case.vote" in changed and subject.case(trial.question, trial.settings).vote != untouched.vote:
        raise ArgumentError(
            f"The answer type {outcome.case.type.name!r} must put the same answers into the same classes; first "
            f"{outcome.case.vote.classes!r:.80}, then {untouched.vote.classes!r:.80}. {_ADVICE}"
        )
    certificates = [_certificates(case, trial) for case in (outcome.case, untouched)]
    if changed or repr(trial) != before:
        what = ", ".join(changed) or "the question or a reply"
        raise ArgumentError(
            f"The rule {name!r} or its certificate changed {what}. Both must only read what they are given."
        )
    if certificates[0] != certificates[1]:
        first, then = certificates
        raise ArgumentError(
            f"The certificate must return the same each time; for {trial.question.answers!r:.80} it returned {first},"
            f" then {then}. {_ADVICE}"
        )
    again = subject.settle(trial)
    if (again.decision, again.asked) != (outcome.decision, outcome.asked):
        raise ArgumentError(
            f"The rule {name!r} must decide one question in one way; first {outcome!r}, then {again!r}. {_ADVICE}"
        )
    return outcome


def _certificates(case: Case, trial: Trial) -> list[bool | None]:
    return [case.certified(answer) for answer in trial.question.answers]
