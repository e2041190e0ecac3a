"""Refusals keep every law of the rule, are final, never override, and without a vote are as good as absent."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import evidence_locked
from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.trials import SILENT, Outcome, Subject, Trial, require_laws
from eldgr_dspy.rule.consultations import Derivation, Repair, Reply, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.refusals import Refusing
from eldgr_dspy.testing import consultations
from eldgr_dspy.words import REFUSAL, Refusal, Role

ELDGR = Subject(evidence_locked)


@st.composite
def refusing(draw: st.DrawFn) -> Trial:
    """Draw a trial some of whose own words are refusals, by phrases or by a function that names the same classes."""
    trial = draw(consultations())
    task = trial.question.task
    values = [one.answer for one in trial.replies.values() if isinstance(one, Repair | Derivation)]
    words = [one for one in (*trial.question.answers, *values) if one and answer_class(one, "retrieval")]
    phrases = draw(st.lists(st.sampled_from(words), max_size=2, unique=True)) if words else []
    refusals: Any = tuple(phrases)
    if draw(st.booleans()):
        reader = Refusing(tuple(phrases), (), answer_type(task))
        refusals = lambda answer: reader(answer)  # noqa: E731 - a callable instance would be named by its class
    refusal = draw(st.sampled_from(REFUSAL))
    return replace(trial, settings=replace(trial.settings, refusals=refusals, refusal=refusal))


@settings(max_examples=2 * settings().max_examples)
@given(refusing())
def test_every_law_holds_with_refusals(trial: Trial) -> None:
    require_laws(OF_RULES, ELDGR.settle(trial))


@given(refusing())
def test_a_refusing_consensus_is_final_and_no_refusal_overrides(trial: Trial) -> None:
    outcome = ELDGR.settle(trial)
    is_binary = outcome.case.task == "arithmetic" or trial.settings.certificate == "substring"
    assume(not (trial.settings.refusal == "inapplicable" and is_binary))
    if outcome.case.refuses(outcome.case.consensus):
        expected = (outcome.case.consensus, "consensus", ())
        assert (outcome.decision.answer, outcome.decision.branch, outcome.roles) == expected
        assert trial.settings.refusal == "inapplicable"
    if outcome.decision.branch in ("judge", "repair"):
        assert not outcome.case.refuses(outcome.decision.answer)


def without_refusals(outcome: Outcome) -> Trial:
    """The trial in which candidates that refuse have no answer, and roles whose answer refuses abstain."""
    trial, refuses = outcome.trial, outcome.case.refuses

    def reply_of(reply: Reply) -> Reply:
        return SILENT if isinstance(reply, Repair | Derivation) and refuses(reply.answer) else reply

    answers = tuple(None if refuses(answer) else answer for answer in trial.question.answers)
    replies: dict[Role, Reply] = {role: reply_of(reply) for role, reply in trial.replies.items()}
    return replace(trial.about(answers=answers), replies=replies, settings=replace(trial.settings, refusals=()))


@settings(max_examples=2 * settings().max_examples)
@given(refusing())
def test_refusals_that_do_not_vote_are_candidates_without_an_answer(trial: Trial) -> None:
    outcome = ELDGR.settle(replace(trial, settings=replace(trial.settings, refusal="no_answer")))
    other = ELDGR.settle(without_refusals(outcome))
    for name in ("answer", "branch", "reason", "certified", "witness", "consensus", "tie", "preference", "ranking"):
        assert getattr(outcome.decision, name) == getattr(other.decision, name), name
    assert outcome.roles == other.roles


EVIDENCE = (Passage("", "Doha and Muscat are capitals. None of them is Dubai's; I don't know why."),)
CERTIFIED, PHRASE = ("Doha", "Muscat"), "None"  # "Bern" is in no passage
POOLS = [pool for n in range(1, 5) for pool in product(("Doha", "Bern", PHRASE), repeat=n)]
REPAIRS = (None, "Doha", "Bern", "Muscat", PHRASE)


def expected(pool: tuple[str, ...], preferred: int | None, repair: str | None, refusal: Refusal) -> tuple[Any, str]:
    voters = [one for one in pool if refusal == "inapplicable" or one != PHRASE]
    consensus = max(voters, key=voters.count) if voters else None  # the earliest of those with most votes
    if consensus in (*CERTIFIED, PHRASE):
        return consensus, "consensus"
    if preferred is not None and pool[preferred] in CERTIFIED:
        return pool[preferred], "judge"
    return (repair, "repair") if repair in CERTIFIED else (consensus, "consensus")


@pytest.mark.parametrize("certificate", ["folded", "token"])
@pytest.mark.parametrize("refusal", REFUSAL)
def test_every_small_pool_is_decided_as_spelled_out(refusal: Refusal, certificate: Any) -> None:
    count = 0
    options = Settings(certificate, refusal=refusal)
    for pool in POOLS:
        question = Question("Which?", "retrieval", pool, (), EVIDENCE)
        for preferred, repair in product((None, *range(len(pool))), REPAIRS):
            replies: dict[Role, Reply] = {"judge": SILENT if preferred is None else Verdict(preferred)}
            replies["repairer"] = SILENT if repair is None else Repair(repair)
            outcome = ELDGR.settle(Trial(question, options, replies))
            assert (outcome.decision.answer, outcome.decision.branch) == expected(pool, preferred, repair, refusal)
            count += 1
    assert count == sum(3**n * (n + 1) * len(REPAIRS) for n in range(1, 5)) == 2_730
