"""Test decisions: Hypothesis strategies, and one line that checks a rule, a certificate or a type against the laws.

    check_laws()                            # the rule of this package
    check_laws(my_rule)                     # a generator function that takes a case
    check_laws(my_rule, without=["the_cases_partition"])
    check_laws(certificate=my_certificate)  # (answer, evidence, question) -> True, False, or None
    check_answer_type(MyType())             # an answer type of your own

It calls no LM: the replies of roles are drawn. No number of examples is a proof. Needs the extra `testing`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from eldgr_dspy.answer_types import BUILT_IN, answer_type, load_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.decision import RULES, Rule, evidence_locked
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LAWS, Law, LawBroken
from eldgr_dspy.laws.findings import laws_left, require_laws
from eldgr_dspy.laws.literals import around, literals
from eldgr_dspy.laws.of_types import LAWS_OF_TYPES, kept
from eldgr_dspy.laws.situations import situations, typed
from eldgr_dspy.laws.trials import Outcome, Subject, Trial
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.own_certificates import own_certificate
from eldgr_dspy.rule.rules import rule_given
from eldgr_dspy.strategies import (
    consultations,
    derivations,
    evidence,
    falsify,
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


def check_laws(
    rule: Rule | str = evidence_locked,
    *,
    certificate: Callable[..., object] | str | None = None,
    laws: Sequence[str] | None = None,
    without: Sequence[str] = (),
    answer: Task | AnswerType | None = None,
    max_examples: int | None = None,
) -> dict[str, int]:
    """Check a rule against the laws, and return on how many trials each law applied.

    A rule is a generator function that takes a `Case`, yields the roles that it asks and returns a `Choice`. Every law
    is tried on it, also if it was never meant to be lawful: `scalar_judge` breaks `override_needs_a_certificate`.
    First come the small situations, the same each time (`eldgr_dspy.laws.situations`), and those around the texts in
    the code of rule and certificate (`eldgr_dspy.laws.literals`). If none of them breaks a law, trials are drawn, and
    Hypothesis makes one that breaks a law small. A count of 0 says that a law was not tried. No count is a proof.

    Args:
        rule: The rule, or the name of one: of `eldgr_dspy.decision.RULES`, or `module:function`.
        certificate: A certificate of your own instead of the policies, or its name; see
            `eldgr_dspy.rule.own_certificates`. It is never asked about an empty answer.
        laws: The names of the laws to try; all those about a rule if it is not given. without: the names of laws that
            are left out.
        answer: An answer type or its name, for a rule that is meant for it alone; short text and numbers if it is not
            given. The laws that the type gives up are not tried, and count 0.
        max_examples: How many trials are drawn, 0 for the fixed ones alone; if it is not given, as many as the
            Hypothesis profile says.

    Raises:
        LawBroken: For the first trial that breaks a law; the message names the other laws that it breaks.
        ArgumentError: A rule or a law is not known, nothing would be tried, or rule or certificate return something
            invalid, change what they are given, or do something else when they are called again.
        Exception: What rule or certificate raise, with the trial as its note.
    """
    __tracebackhide__ = True
    if isinstance(rule, str):
        _, rule = rule_given(rule)
    if not callable(rule):
        raise ArgumentError(f"rule={rule!r:.60} is not a rule; expected a generator function that takes a case.")
    own = None if certificate is None else own_certificate(certificate)
    if own is not None and own.consulted:
        raise ArgumentError("certificate is async, and it was called without await; give a function that is not.")
    subject = Subject(rule)
    if own is not None:
        subject = Subject(rule, lambda question, settings: Case(question, replace(settings, certificate=own)))
    kind = None if answer is None else answer_type(answer, "answer", BUILT_IN)
    chosen = laws_left([law for law in LAWS if law.statement is not None], laws, without)
    texts = around(literals(rule, own and own.function), "retrieval" if rule is evidence_locked else kind)
    return _tried(subject.settle_twice, chosen, kind, chain(situations(kind), texts), max_examples)


def check_answer_type(
    answer: AnswerType | Task, *, without: Sequence[str] = (), max_examples: int | None = None
) -> dict[str, int]:
    """Check an answer type against the laws of classes, certificates and scores.

    It returns on how many pools each law applied; a law that the type gives up is not tried and counts 0. The laws are
    `eldgr_dspy.laws.of_types.LAWS_OF_TYPES`. The rule relies on them for every type. First come the small situations,
    with the type's examples as answers, then drawn ones.

    Args:
        answer: The type, or its name: a built-in one, or `module:name`.
        without: The names of laws that are left out. max_examples: as `check_laws` has it.

    Raises:
        LawBroken: For the first pool that breaks a law; the message names the other laws that it breaks.
        ArgumentError: The type gives up what it cannot, or a law is not known.
        Exception: What the type raises, with the trial as its note.
    """
    __tracebackhide__ = True
    found, chosen = load_type(answer), laws_left(LAWS_OF_TYPES, None, without)
    return _tried(Subject(RULES["majority"]).settle, chosen, found, situations(found), max_examples)


def _tried(
    settle: Callable[[Trial], Outcome],
    laws: Sequence[Law],
    kind: AnswerType | None,
    listed: Iterable[Trial],
    max_examples: int | None,
) -> dict[str, int]:
    """Try every law on the listed trials, then on drawn ones; return on how many each law applied."""
    __tracebackhide__ = True
    tried, tested = Counter[str](), laws if kind is None else kept(kind, laws)
    falsify(
        consultations(kind),
        lambda trial: tried.update(require_laws(tested, settle(trial))),
        max_examples,
        typed(listed, kind),
    )
    return {law.name: tried[law.name] for law in laws}
