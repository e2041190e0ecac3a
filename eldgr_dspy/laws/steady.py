"""Check that a rule and a certificate of a user's own only read what they are given, and repeat themselves.

A law that compares two outcomes says nothing of a rule that draws lots. This module uses only the standard library.
Source: ours.
"""

from dataclasses import replace

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.trials import Outcome, Subject, Trial, name_of
from eldgr_dspy.own_certificates import OwnCertificate

_ADVICE = "Keep nothing from call to call, and use no random numbers."


def settle_twice(subject: Subject, trial: Trial) -> Outcome:
    """Return a rule's outcome on a trial, having checked that the rule only reads and repeats itself.

    Raises:
        ArgumentError: As `Subject.settle`; or the rule changed its case or a reply, or did something else the second
            time.
    """
    before, name = repr(trial), name_of(subject.rule)
    outcome, untouched = subject.settle(trial), subject.case(trial.question, trial.settings)
    read = {part: getattr(untouched, part) for part in ("question", "settings", "vote")}
    changed = [f"case.{part}" for part, value in read.items() if getattr(outcome.case, part) != value]
    if "case.vote" in changed and subject.case(trial.question, trial.settings).vote != untouched.vote:
        raise ArgumentError(
            f"The answer type {outcome.case.type.name!r} must put the same answers into the same classes; first "
            f"{outcome.case.vote.classes!r:.80}, then {untouched.vote.classes!r:.80}. {_ADVICE}"
        )
    if changed or repr(trial) != before:
        what = ", ".join(changed) or "the question or a reply"
        raise ArgumentError(f"The rule {name!r} changed {what}. A rule must only read what it is given.")
    again = subject.settle(trial)
    if (again.decision, again.asked) != (outcome.decision, outcome.asked):
        raise ArgumentError(
            f"The rule {name!r} must decide one question in one way; first {outcome!r}, then {again!r}. {_ADVICE}"
        )
    return outcome


class Steady:
    """A certificate of a user's own that is checked, in every call, to repeat itself and to change no passage."""

    def __init__(self, own: OwnCertificate) -> None:
        self._own = own
        self._said = dict[tuple[str, tuple[Passage, ...], str], object]()

    @classmethod
    def of(cls, own: OwnCertificate) -> OwnCertificate:
        """Return the certificate, checked in every call."""
        return replace(own, function=cls(own))

    def __call__(self, answer: str, passages: tuple[Passage, ...], question: str) -> object:
        """Return what the certificate says.

        Raises:
            ArgumentError: It changed a passage, or said something else of the same answer and passages before.
        """
        before = repr(passages)
        value: object = self._own.call(answer, passages, question)
        if repr(passages) != before:
            raise ArgumentError(
                f"certificate({answer!r:.60}, ...) changed its passages. A certificate must only read what it is given."
            )
        if isinstance(value, bool | None):
            earlier = self._said.setdefault((answer, passages, question), value)
            if earlier is not value:
                raise ArgumentError(
                    f"certificate({answer!r:.60}, ...) must return the same each time; it returned {earlier}, then"
                    f" {value} for the same passages. {_ADVICE}"
                )
        return value
