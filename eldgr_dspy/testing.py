"""For those who test decisions: Hypothesis strategies, and one line that holds a rule or a certificate to the laws.

    check_laws()                            # the rule of this package
    check_laws(my_rule)                     # a generator function that takes a case
    check_laws(my_rule, without=["the_cases_partition"])
    check_laws(certificate=my_certificate)  # (answer, passages) -> True, False, or None where it does not apply

It calls no LM: what a role would reply is drawn. No count of examples is a proof. Needs the extra `testing`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

from eldgr_dspy.cases import Case
from eldgr_dspy.decision import Rule, evidence_locked
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LAWS, Law, LawBroken, laws_named
from eldgr_dspy.laws.constants import Constants, constants_of
from eldgr_dspy.laws.pointed import pointed
from eldgr_dspy.laws.shrinking import smallest
from eldgr_dspy.laws.situations import situations
from eldgr_dspy.laws.trials import CertifiedBy, OwnCertificate, Subject, Trial
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.rules import rule_named
from eldgr_dspy.strategies import (
    consultations,
    derivations,
    evidence,
    exemplified,
    families_of,
    lm_contents,
    lm_replies,
    pools,
    questions,
    raw_text,
    repairs,
    rule_settings,
    verdicts,
)
from eldgr_dspy.words import Task

# Behind what says how to install it.
from hypothesis import HealthCheck, Phase, given, settings  # isort: skip

__all__ = [
    "check_laws",
    "consultations",
    "pools",
    "evidence",
    "questions",
    "rule_settings",
    "verdicts",
    "repairs",
    "derivations",
    "lm_replies",
    "lm_contents",
    "raw_text",
    "LAWS",
    "LawBroken",
    "Subject",
    "Trial",
]


_OWN_PER_DRAWN = 4
"""How many situations around constants take the place of a trial that is drawn, which takes as long."""


def check_laws(
    rule: Rule | str = evidence_locked,
    *,
    certificate: OwnCertificate | None = None,
    case: Callable[[Question, Settings], Case] = Case,
    laws: Sequence[str] | None = None,
    without: Sequence[str] = (),
    task: Task | None = None,
    max_examples: int | None = None,
) -> dict[str, int]:
    """Hold a rule to the laws, and say of how many trials each law had something to say.

    A rule is a generator function that takes a `Case`, yields the roles that it asks and returns a `Choice`. Every law
    is tried on it, also where it was never meant to be lawful: `scalar_judge` breaks `override_needs_a_certificate`,
    and a rule that never overrides breaks `certified_preference_outranks_repair`. First come the small situations, the
    same each time (`eldgr_dspy.laws.situations`), and those around the numbers and texts that rule, certificate and
    case are written with (`eldgr_dspy.laws.pointed`); where none of them breaks a law, trials are drawn, also with
    these texts. A count of 0 says that a law was not tried. No count is a proof.

    Args:
        rule: The rule, or the name of one: of `eldgr_dspy.decision.RULES`, or `module:function`.
        certificate: A certificate of your own, in the place of the policies; it is never asked about an empty answer.
        case: A case of your own, where votes or ranking are yours; not together with `certificate`.
        laws: The names of the laws to try; all those about a rule if it is not given. without: the names of laws that
            are left out.
        task: `retrieval` or `arithmetic`, for a rule that is meant for one of them alone.
        max_examples: How many trials are drawn; if it is not given, as many as the Hypothesis profile says, less one
            for every four situations around constants.

    Raises:
        LawBroken: For the first law that is broken, on a trial that is made small; the message names the others.
        ArgumentError: A rule or a law is not known, nothing would be tried, or rule or certificate return something
            that they may not.
    """
    if isinstance(rule, str):
        rule = rule_named(rule)
    if not callable(rule):
        raise ArgumentError(f"rule={rule!r:.60} is not a rule; expected a generator function that takes a case.")
    if certificate is not None and case is not Case:
        raise ArgumentError(
            "certificate and case were both given; a case brings its certificates, so give one of them."
        )
    if max_examples is not None and max_examples < 1:
        raise ArgumentError(f"max_examples={max_examples!r} tries nothing; expected a whole number from 1.")
    subject = Subject(rule, case if certificate is None else partial(CertifiedBy, certificate=certificate))
    chosen = _chosen(laws, without)
    constants, about = exemplified(constants_of(rule, certificate, case)), _told_by(rule, task)
    survey = _Survey(subject, chosen)
    own = [*pointed(constants, about)]
    survey.attempt_listed(chain(situations(task), own))
    if not survey.broken:
        usual = max(1, settings().max_examples - len(own) // _OWN_PER_DRAWN)
        survey.attempt_drawn(task, usual if max_examples is None else max_examples, constants)
    broken = [law for law in chosen if law.name in survey.broken]
    if broken:
        raise _smallest(broken[0], survey.broken[broken[0].name]).also([law.name for law in broken[1:]])
    return survey.tried


def _told_by(rule: Rule, task: Task | None) -> Task | None:
    """The task in which the user's own constants can tell; a certificate's do so in retrieval alone."""
    return "retrieval" if task is None and rule is evidence_locked else task


def _chosen(laws: Sequence[str] | None, without: Sequence[str]) -> list[Law]:
    about_rules = [law for law in LAWS if law.statement is not None]
    wanted = about_rules if laws is None else laws_named("laws", laws, about_rules)
    if not wanted:
        raise ArgumentError(f"laws={laws!r} names no law, so nothing would be tried; leave it out to try all.")
    left_out = laws_named("without", without, about_rules)
    if not (chosen := [law for law in wanted if law not in left_out]):
        raise ArgumentError(f"without={without!r} leaves no law to be tried; name fewer.")
    return chosen


class _AllBroken(Exception):
    """There is nothing left to find out."""


class _Survey:
    """Tries every law on every trial; counts, and keeps the first trial that broke each."""

    def __init__(self, subject: Subject, laws: Sequence[Law]) -> None:
        self.tried, self.broken = dict.fromkeys((law.name for law in laws), 0), dict[str, LawBroken]()
        self._subject, self._laws = subject, laws

    def attempt(self, trial: Trial) -> None:
        """Try a trial; raises `_AllBroken` once each law has been broken."""
        outcome = self._subject.settle(trial)
        for law in self._laws:
            try:
                self.tried[law.name] += law.check(outcome)
            except LawBroken as found:
                self.tried[law.name] += 1
                self.broken.setdefault(law.name, found)
        if len(self.broken) == len(self._laws):
            raise _AllBroken

    def attempt_listed(self, trials: Iterable[Trial]) -> None:
        """Try each trial, until each law has been broken."""
        with suppress(_AllBroken):
            for trial in trials:
                self.attempt(trial)

    def attempt_drawn(self, task: Task | None, examples: int, constants: Constants) -> None:
        """Try as many trials as are to be drawn, half of them with answers that are made of these constants."""

        @settings(
            max_examples=examples,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(trial=consultations(task, families_of(constants)))
        def drawn(trial: Trial) -> None:
            self.attempt(trial)

        with suppress(_AllBroken):
            drawn()


def _smallest(law: Law, known: LawBroken) -> LawBroken:
    """Return the same law, broken on a trial that no single step makes smaller."""
    subject, least = known.outcome.subject, [known]

    def breaks(trial: Trial) -> bool:
        try:
            law.check(subject.settle(trial))
        except LawBroken as found:
            least[0] = found
            return True
        return False

    smallest(known.outcome.trial, breaks)
    return least[0]
