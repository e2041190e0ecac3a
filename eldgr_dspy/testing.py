"""Test decisions: Hypothesis strategies, and one line that checks a rule, a certificate or a type against the laws.

    check_laws()                            # the rule of this package
    check_laws(my_rule)                     # a generator function that takes a case
    check_laws(my_rule, without=["the_cases_partition"])
    check_laws(certificate=my_certificate)  # (answer, evidence, question) -> True, False, or None
    check_answer_type(MyType())             # an answer type of your own

It calls no LM: the replies of roles are drawn. No number of examples is a proof. Needs the extra `testing`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain

from eldgr_dspy.answer_types import answer_type, load_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.cases import Case
from eldgr_dspy.decision import RULES, Rule, evidence_locked
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LAWS, Law, LawBroken, laws_named
from eldgr_dspy.laws.answers import Family
from eldgr_dspy.laws.constants import constants_of
from eldgr_dspy.laws.of_types import LAWS_OF_TYPES, kept
from eldgr_dspy.laws.pointed import pointed
from eldgr_dspy.laws.reporting import reported
from eldgr_dspy.laws.shrinking import smallest
from eldgr_dspy.laws.situations import situations
from eldgr_dspy.laws.steady import Steady, settle_twice
from eldgr_dspy.laws.trials import CertifiedBy, Outcome, Subject, Trial, describe_trial, table
from eldgr_dspy.laws.typed import typed
from eldgr_dspy.own_certificates import own_certificate
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.rules import rule_given
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

# After the import whose error says how to install it.
from hypothesis import HealthCheck, Phase, given, settings  # isort: skip

__all__ = [
    "check_laws",
    "check_answer_type",
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


_SPELLINGS = 3
_OWN_PER_DRAWN = 4
"""How many situations around constants replace one drawn trial, which takes as long."""


def check_laws(
    rule: Rule | str = evidence_locked,
    *,
    certificate: Callable[..., object] | str | None = None,
    case: Callable[[Question, Settings], Case] = Case,
    laws: Sequence[str] | None = None,
    without: Sequence[str] = (),
    task: Task | AnswerType | None = None,
    max_examples: int | None = None,
) -> dict[str, int]:
    """Check a rule against the laws, and return on how many trials each law applied.

    A rule is a generator function that takes a `Case`, yields the roles that it asks and returns a `Choice`. Every law
    is tried on it, also if it was never meant to be lawful: `scalar_judge` breaks `override_needs_a_certificate`,
    and a rule that never overrides breaks `certified_preference_outranks_repair`. First come the small situations, the
    same each time (`eldgr_dspy.laws.situations`), and those around the numbers and texts in the code of rule,
    certificate and case (`eldgr_dspy.laws.pointed`). If none of them breaks a law, trials are drawn, also with these
    texts. A count of 0 says that a law was not tried. No count is a proof.

    Args:
        rule: The rule, or the name of one: of `eldgr_dspy.decision.RULES`, or `module:function`.
        certificate: A certificate of your own instead of the policies, or its name; see
            `eldgr_dspy.own_certificates`. It is never asked about an empty answer.
        case: A case of your own, with your own votes or ranking; not together with `certificate`.
        laws: The names of the laws to try; all those about a rule if it is not given. without: the names of laws that
            are left out.
        task: An answer type or its name, for a rule that is meant for it alone; short text and numbers if it is not
            given. The laws that the type gives up are not tried, and count 0.
        max_examples: How many trials are drawn; if it is not given, as many as the Hypothesis profile says, less one
            for every four situations around constants.

    Raises:
        LawBroken: For the first broken law, on a trial that was made small; the message names the others.
        ArgumentError: A rule or a law is not known, nothing would be tried, or rule or certificate return something
            invalid, change what they are given, or do something else when they are called again.
        Exception: What rule, certificate or case raise. The note of every exception that a trial causes has the
            trial, made small.
    """
    __tracebackhide__ = True
    if isinstance(rule, str):
        _, rule = rule_given(rule)
    if not callable(rule):
        raise ArgumentError(f"rule={rule!r:.60} is not a rule; expected a generator function that takes a case.")
    if certificate is not None and case is not Case:
        raise ArgumentError(
            "certificate and case were both given; a case has its own certificates, so give only one of them."
        )
    _require_some(max_examples)
    theirs = None if certificate is None else own_certificate(certificate)
    if theirs is not None and theirs.consulted:
        raise ArgumentError("certificate is async, and it was called without await; give a function that is not.")
    subject = Subject(rule, case if theirs is None else partial(CertifiedBy, certificate=Steady.of(theirs)))
    kind = None if task is None else answer_type(task)
    survey = _Survey(subject, _chosen([law for law in LAWS if law.statement is not None], laws, without), kind)
    constants = exemplified(constants_of(rule, theirs and theirs.function, case))
    own = [*pointed(constants, _told_by(rule, kind))]
    survey.attempt(chain(situations(kind), own), families_of(constants), len(own), max_examples)
    failure = survey.failure()
    if failure is not None:
        raise failure
    return survey.tried


def check_answer_type(
    kind: AnswerType | Task,
    *,
    examples: Sequence[Sequence[str]] = (),
    without: Sequence[str] = (),
    max_examples: int | None = None,
) -> dict[str, int]:
    """Check an answer type against the laws of classes, certificates and scores.

    It returns on how many pools each law applied; a law that the type gives up is not tried and counts 0. The laws are
    `eldgr_dspy.laws.of_types.LAWS_OF_TYPES`. The rule relies on them for every type. First come the small situations,
    with the type's examples as answers, then those around the constants in its code, then drawn ones.

    Args:
        kind: The type, or its name: a built-in one, or `module:name`.
        examples: More answers beside those of `kind.examples()`: a list of one class each, in one to three spellings.
        without: The names of laws that are left out.
        max_examples: As `check_laws` has it.

    Raises:
        LawBroken: For the first broken law, on a pool that was made small; the message names the others.
        ArgumentError: The type gives up what it cannot, or a law is not known, or `examples` are not lists of answers.
        Exception: What the type raises, with the trial, made small, as its note.
    """
    __tracebackhide__ = True
    _require_some(max_examples)
    found = load_type(kind, "kind")
    survey = _Survey(Subject(RULES["majority"]), _chosen(LAWS_OF_TYPES, None, without), found, Subject.settle)
    constants = exemplified(constants_of(type(found)))
    families = [*map(_family, examples), *families_of(constants)]
    own = [*pointed(constants, found)]
    survey.attempt(chain(situations(found), own), families, len(own), max_examples)
    failure = survey.failure()
    if failure is not None:
        raise failure
    return survey.tried


def _family(spellings: Sequence[str]) -> Family:
    if isinstance(spellings, str) or not 1 <= len(spellings) <= _SPELLINGS:
        raise ArgumentError(f"examples must be lists of one to three answers of one class; got {spellings!r:.80}.")
    first, second, third, *_ = (*spellings, *spellings, *spellings)
    return first, second, third


def _require_some(max_examples: int | None) -> None:
    if max_examples is not None and max_examples < 1:
        raise ArgumentError(f"max_examples must be a whole number from 1; got {max_examples!r}.")


def _told_by(rule: Rule, kind: AnswerType | None) -> Task | AnswerType | None:
    """The type in which the user's own constants matter; a certificate's matter only in retrieval."""
    return "retrieval" if kind is None and rule is evidence_locked else kind


def _chosen(among: Sequence[Law], laws: Sequence[str] | None, without: Sequence[str]) -> list[Law]:
    wanted = [*among] if laws is None else laws_named("laws", laws, among)
    if not wanted:
        raise ArgumentError(f"laws={laws!r} names no law, so nothing would be tried; leave it out to try all.")
    left_out = laws_named("without", without, among)
    if not (chosen := [law for law in wanted if law not in left_out]):
        raise ArgumentError(f"without={without!r} leaves no law to be tried; name fewer.")
    return chosen


@dataclass(frozen=True, slots=True)
class _Failed:
    """What a rule, certificate or case raised, and the trial that causes it."""

    error: Exception
    trial: Trial


class _Done(Exception):
    """Every law has been broken, or something was raised, so the search can stop."""


class _Survey:
    """Tries every law on every trial; counts, and keeps the first trial that broke each."""

    def __init__(
        self,
        subject: Subject,
        laws: Sequence[Law],
        kind: AnswerType | None,
        settle: Callable[[Subject, Trial], Outcome] = settle_twice,
    ) -> None:
        self.tried, self.broken = dict.fromkeys((law.name for law in laws), 0), dict[str, LawBroken]()
        self.failed: _Failed | None = None
        self._subject, self._kind, self._settle = subject, kind, settle
        self._laws = [*laws] if kind is None else [*kept(kind, laws)]

    def attempt(
        self, listed: Iterable[Trial], families: Sequence[Family], n_own: int, max_examples: int | None
    ) -> None:
        """Try the listed trials, of which some are the user's own; if they break no law, try drawn ones too."""
        with suppress(_Done):
            for trial in typed(listed, self._kind):
                self._attempt(trial)
        if not (self.broken or self.failed):
            usual = max(1, settings().max_examples - n_own // _OWN_PER_DRAWN)
            self._attempt_drawn(usual if max_examples is None else max_examples, families)

    def failure(self) -> Exception | None:
        """Return what is to be raised, with the smallest trial that was found; None if nothing was."""
        if self.failed is not None:
            return self._smallest_failure(self.failed)
        broken = [law for law in self._laws if law.name in self.broken]
        if not broken:
            return None
        found = _smallest(broken[0], self.broken[broken[0].name])
        return reported(found.also([law.name for law in broken[1:]]))

    def _attempt(self, trial: Trial) -> None:
        """Try a trial; raises `_Done` once there is nothing more to find."""
        error = self._error(trial)
        if error is not None:
            self.failed = _Failed(error, trial)
        if error is not None or len(self.broken) == len(self._laws):
            raise _Done

    def _attempt_drawn(self, examples: int, families: Sequence[Family]) -> None:
        """Draw and try the trials, half of them with answers of these families."""

        @settings(
            max_examples=examples,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(trial=consultations(self._kind, families))
        def drawn(trial: Trial) -> None:
            self._attempt(trial)

        with suppress(_Done):
            drawn()

    def _check(self, trial: Trial) -> None:
        """Check every law on a trial; raises what the rule, its certificate or its case do wrong."""
        outcome = self._settle(self._subject, trial)
        for law in self._laws:
            try:
                self.tried[law.name] += law.check(outcome)
            except LawBroken as found:
                self.tried[law.name] += 1
                self.broken.setdefault(law.name, found)

    def _error(self, trial: Trial) -> Exception | None:
        try:
            self._check(trial)
        except Exception as error:  # noqa: BLE001 - it is raised again with its trial
            return error
        return None

    def _smallest_failure(self, failed: _Failed) -> Exception:
        least = [failed]

        def fails(trial: Trial) -> bool:
            error = self._error(trial)
            if type(error) is type(failed.error) and error is not None:
                least[0] = _Failed(error, trial)
            return least[0].trial is trial

        smallest(failed.trial, fails)
        return reported(least[0].error, table(describe_trial(least[0].trial)))


def _smallest(law: Law, known: LawBroken) -> LawBroken:
    """Return the same law, broken on a trial that no single step makes smaller."""
    subject, least = known.outcome.subject, [known]

    def breaks(trial: Trial) -> bool:
        try:
            law.check(subject.settle(trial))
        except LawBroken as broken:
            least[0] = broken
            return True
        return False

    smallest(known.outcome.trial, breaks)
    return least[0]
