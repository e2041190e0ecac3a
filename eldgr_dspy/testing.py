"""For those who test decisions: Hypothesis strategies, and one line that holds a rule or a certificate to the laws.

    check_laws()                            # the rule of this package
    check_laws(my_rule)                     # a generator function that takes a case
    check_laws(certificate=my_certificate)  # (answer, passages) -> True, False, or None where it does not apply

It calls no LM: what a role would reply is drawn. No count of examples is a proof. Needs the extra `testing`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from eldgr_dspy.cases import Case
from eldgr_dspy.decision import Rule, evidence_locked
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LAW, LAWS, Law, LawBroken
from eldgr_dspy.laws.shrinking import smallest
from eldgr_dspy.laws.trials import CertifiedBy, OwnCertificate, Subject, Trial
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.strategies import (
    consultations,
    derivations,
    evidence,
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
from hypothesis import strategies as st  # isort: skip

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

_USUAL = 3
"""Times the examples of a Hypothesis profile: each law has something to say of a part of the trials only."""


def check_laws(
    rule: Rule = evidence_locked,
    *,
    certificate: OwnCertificate | None = None,
    case: Callable[[Question, Settings], Case] = Case,
    laws: Sequence[str] | None = None,
    task: Task | None = None,
    max_examples: int | None = None,
) -> dict[str, int]:
    """Hold a rule to the laws on generated trials, and say of how many trials each law had something to say.

    A rule is a generator function that takes a `Case`, yields the roles that it asks and returns a `Choice`. Every law
    is tried on it, also where it was never meant to be lawful: `scalar_judge` breaks `override_needs_a_certificate`,
    and a rule that never overrides breaks `certified_preference_outranks_repair`. A count of 0 says that a law was not
    tried. No count is a proof.

    Args:
        rule: The rule. certificate: a certificate of your own, in the place of the policies; it is never asked about an
            empty answer. case: a case of your own, where votes or ranking are yours; not together with `certificate`.
        laws: The names of the laws to try; all those about a rule if it is not given. task: `retrieval` or
            `arithmetic`, for a rule that is meant for one of them alone.
        max_examples: How many trials; three times what the Hypothesis profile says if it is not given.

    Raises:
        LawBroken: For the first law that is broken, on a trial that is made as small as can be; the message names the
            others.
        ArgumentError: A law is not known, nothing would be tried, or rule or certificate return something that they may
            not.
    """
    if not callable(rule):
        raise ArgumentError(f"rule={rule!r:.60} is not a rule; expected a generator function that takes a case.")
    if certificate is not None and case is not Case:
        raise ArgumentError(
            "certificate and case were both given; a case brings its certificates, so give one of them."
        )
    if max_examples is not None and max_examples < 1:
        raise ArgumentError(f"max_examples={max_examples!r} tries nothing; expected a whole number from 1.")
    subject = Subject(rule, case if certificate is None else partial(CertifiedBy, certificate=certificate))
    chosen = _chosen(laws)
    examples = _USUAL * settings().max_examples if max_examples is None else max_examples
    tried, broken = _survey(subject, chosen, consultations(task), examples)
    if broken:
        first = next(law for law in chosen if law.name in broken)
        others = [law.name for law in chosen if law.name in broken and law is not first]
        raise _smallest(first, broken[first.name]).also(others)
    return tried


def _chosen(laws: Sequence[str] | None) -> list[Law]:
    about_rules = {law.name: law for law in LAWS if law.statement is not None}
    if laws is None:
        return list(about_rules.values())
    if isinstance(laws, str):
        raise ArgumentError(f"laws={laws!r} is one name; expected a sequence of names: put it in a list.")
    if not laws:
        raise ArgumentError(f"laws={laws!r} names no law, so nothing would be tried; leave it out to try all.")
    for name in laws:
        if name not in about_rules:
            kind = "is a law about the selector" if name in LAW else "is not the name of a law"
            raise ArgumentError(f"laws: {name!r} {kind}; expected some of {', '.join(about_rules)}.")
    return [law for law in about_rules.values() if law.name in laws]


class _AllBroken(Exception):
    """There is nothing left to find out."""


def _survey(
    subject: Subject, laws: Sequence[Law], trials: st.SearchStrategy[Trial], examples: int
) -> tuple[dict[str, int], dict[str, LawBroken]]:
    """Try every law on every trial; count, and keep the first trial that broke each."""
    tried, broken = dict.fromkeys((law.name for law in laws), 0), dict[str, LawBroken]()

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(trial=trials)
    def attempt(trial: Trial) -> None:
        outcome = subject.settle(trial)
        for law in laws:
            try:
                tried[law.name] += law.check(outcome)
            except LawBroken as found:
                tried[law.name] += 1
                broken.setdefault(law.name, found)
        if len(broken) == len(laws):
            raise _AllBroken

    with suppress(_AllBroken):
        attempt()
    return tried, broken


def _smallest(law: Law, known: LawBroken) -> LawBroken:
    """Return the same law, broken on a trial that is as small as can be."""
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
