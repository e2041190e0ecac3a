"""The twenty-one laws, each stated once: its claim, what it does not claim, and, for a rule, how it is tried.

    LAWS                                      every law, in order; a number with several names has an entry for each
    LAW["default_is_consensus"]               one of them
    law.check(Subject(rule).settle(trial))    whether it applied to the trial; raises `LawBroken` if it is broken
    laws_named("laws", [...], LAWS)           those with these names, for a caller's argument

Laws 18 to 20 are about the selector and are tried only on one. Those of answer types are in `eldgr_dspy.laws.of_types`.
Nothing here draws an example or calls an LM: `eldgr_dspy.testing` draws trials, and a trial contains what an LM would
say. This module uses only the standard library. Source: the paper's statements about its rule, made exact; the names
and the third value (inapplicable) are ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import eldgr_dspy.laws.statements as tried
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.statements import Finding
from eldgr_dspy.laws.trials import Outcome, describe, shipped, table

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


class LawBroken(AssertionError):
    """A rule breaks a law; the message has the trial, what the rule shipped, and what the law demands."""

    def __init__(self, law: Law, outcome: Outcome, finding: Finding, others: Sequence[str] = ()) -> None:
        self.law, self.outcome, self.found = law, outcome, finding
        lines = [*finding.lines, *describe(outcome), ("demanded", finding.demanded)]
        if finding.other is not None:
            lines.append(("but there", shipped(finding.other)))
        told = table(lines)
        end = f"\n\nBroken too: {', '.join(others)}." if others else ""
        super().__init__(f"Law {law.number}, {law.name}, is broken. {law.claim}\n\n{told}{end}")

    def also(self, others: Sequence[str]) -> "LawBroken":
        """Return the same with the names of other laws that the rule breaks."""
        return LawBroken(self.law, self.outcome, self.found, others)


def first_broken(broken: Sequence[LawBroken]) -> LawBroken:
    """Return the broken law that matters most, that of the lock or else the first, with the names of the others."""
    first, *others = sorted(
        broken, key=lambda one: (one.law is not LAW["override_needs_a_certificate"], one.law.number)
    )
    told = first.also([*dict.fromkeys(one.law.name for one in others if one.law is not first.law)])
    told.__cause__ = first.__cause__
    return told


LAWS: tuple[Law, ...] = (
    Law(
        1,
        "certified_consensus_is_final",
        "In retrieval a certified consensus ships, whatever any role would reply, and nobody is asked.",
        "That it is right: a certificate states an occurrence, and the majority or the passage may be wrong.",
        tried.certified_consensus_is_final,
    ),
    Law(
        1,
        "inapplicable_consensus_is_final",
        "In retrieval a consensus to which no certificate applies (a yes, no or refusal) ships, and nobody is asked.",
        "That it is right, or that the evidence supports it.",
        tried.inapplicable_consensus_is_final,
    ),
    Law(
        2,
        "no_correct_certified_consensus_is_overridden",
        "A consensus that is right and certified is not replaced by a wrong answer.",
        "That no right consensus is lost: one without a certificate may be.",
        tried.no_correct_certified_consensus_is_overridden,
    ),
    Law(
        3,
        "override_needs_a_certificate",
        "What ships in the place of consensus carries a certificate; in arithmetic, a checked derivation.",
        "That it is an improvement: a certified answer may be wrong.",
        tried.override_needs_a_certificate,
    ),
    Law(
        4,
        "certified_preference_outranks_repair",
        "In retrieval, where consensus is uncertified and the judge's preference certified, the preference ships,"
        " whatever the repairer would say.",
        "That the preference is better than the repair.",
        tried.certified_preference_outranks_repair,
    ),
    Law(
        5,
        "repair_only_when_neither_is_certified",
        "In retrieval a repair ships only where neither consensus nor the judge's preference is certified.",
        "That a repair ships wherever this is so: it has to be certified itself.",
        tried.repair_only_when_neither_is_certified,
    ),
    Law(
        6,
        "default_is_consensus",
        "Where nothing else carries what may override, consensus ships.",
        "That consensus is right, or that there is one.",
        tried.default_is_consensus,
    ),
    Law(
        7,
        "answer_is_consensus_preference_or_repair",
        "What ships is consensus, the judge's preference or the repair, and the branch says which.",
        "That it is the best of them, or that a repair is among the candidates.",
        tried.answer_is_consensus_preference_or_repair,
    ),
    Law(
        8,
        "the_cases_partition",
        "Exactly one case of Eq. 3 holds, whatever the three certificates are (true, false, inapplicable), and it"
        " decides.",
        "That these cases are the right ones.",
        tried.the_cases_partition,
    ),
    Law(
        9,
        "lazy_equals_always",
        "Asking only what can still matter and asking every role first give the same answer and branch.",
        "The same cost, or the same record of who was consulted.",
        tried.lazy_equals_always,
    ),
    Law(
        10,
        "judges_differ_only_where_admissible",
        "Two judges change what ships only where consensus is uncertified and a preference is certified; in"
        " arithmetic never.",
        "Which of the two judges is right.",
        tried.judges_differ_only_where_admissible,
    ),
    Law(
        11,
        "a_regression_needs_a_certified_wrong_answer",
        "Where a wrong answer replaces a right consensus, the wrong answer is certified.",
        "That regressions cannot happen: a certificate does not make an answer right.",
        tried.a_regression_needs_a_certified_wrong_answer,
    ),
    Law(
        12,
        "evidence_order_and_duplicates_do_not_matter",
        "The same passages in another order, or some of them twice, certify the same and ship the same class by the"
        " same branch.",
        "The same witness, or the same replies of an LM that reads the passages.",
        tried.evidence_order_and_duplicates_do_not_matter,
    ),
    Law(
        12,
        "more_evidence_never_uncertifies",
        "An answer that some passages certify is certified by these and more, and a final consensus stays final.",
        "That an override stays one: more evidence may certify consensus.",
        tried.more_evidence_never_uncertifies,
    ),
    Law(
        13,
        "scores_never_cross_strata",
        "Whatever the scores are, the ranking has every supported candidate before every other, and what ships is of"
        " the same stratum.",
        "That scores are meaningless: within a stratum they rank.",
        tried.scores_never_cross_strata,
    ),
    Law(
        14,
        "ties_go_to_the_earliest",
        "Consensus is the class with the most votes and, of several with as many, that of the earliest candidate.",
        "That the earliest is likelier to be right.",
        tried.ties_go_to_the_earliest,
    ),
    Law(
        14,
        "candidate_order_does_not_matter",
        "Without a tie, the same candidates in another order ship the same class by the same branch.",
        "The same spelling, or anything where votes or, under `stratum`, scores are equal: the earliest is taken.",
        tried.candidate_order_does_not_matter,
    ),
    Law(
        14,
        "spelling_within_a_class_does_not_matter",
        "Of a class, the earliest spelling found in the evidence as written ships, else the earliest spelling; which"
        " candidate wrote it does not matter.",
        "That this spelling scores best: the official score tells some spellings of a class apart.",
        tried.spelling_within_a_class_does_not_matter,
    ),
    Law(
        15,
        "failed_judge_equals_silent_judge",
        "A judge whose call failed or was late, or whose reply is unusable, changes as much as a judge that abstains.",
        "That failures cost nothing: they are counted, under `on_error='raise'` they are errors, and a judge that is"
        " given all of the time leaves none to the repairer.",
        tried.failed_judge_equals_silent_judge,
    ),
    Law(
        16,
        "unchecked_derivation_changes_nothing",
        "In arithmetic a derivation that fails its check ships the same as a deriver that abstains.",
        "That a checked derivation is right: it executes, and may answer another question.",
        tried.unchecked_derivation_changes_nothing,
    ),
    Law(
        17,
        "homogeneous_pools_consult_no_judge",
        "Where all candidates that answer agree, no judge is asked.",
        "That nobody is: a repairer or deriver may be, by the setting `homogeneous`.",
        tried.homogeneous_pools_consult_no_judge,
    ),
    Law(
        18,
        "sync_equals_async_equals_batch_equals_replay",
        "However a selector is called (sync, async, in a batch, from a journal), the same replies give the same"
        " decision.",
        "That an LM replies the same twice.",
    ),
    Law(
        19,
        "no_lm_text_breaks_a_law",
        "Whatever text or JSON an LM returns, laws 1 to 8 hold of what ships.",
        "That such a reply is understood: it is mostly an abstention.",
    ),
    Law(
        20,
        "no_optimizer_breaks_a_law",
        "Compiling, saving, loading, copying a selector or swapping its LM changes no law.",
        "That a compiled selector is better.",
    ),
    Law(
        21,
        "spelling_does_not_decide",
        "Full stops, quotes, brackets, Markdown, HTML and LaTeX around answers change neither the class that ships nor"
        " the branch nor a certificate.",
        "Anything of `substring`, the paper's letter: there spelling decides.",
        tried.spelling_does_not_decide,
    ),
)
LAW: Mapping[str, Law] = {law.name: law for law in LAWS}
"""The laws by name."""


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
            kind = "is not the name of a law" if name not in LAW else "is a law that is not tried here"
            expected = ", ".join(law.name for law in among)
            raise ArgumentError(f"{argument}: {name!r} {kind}; expected some of {expected}.")
    return [law for law in among if law.name in names]
