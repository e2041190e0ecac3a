"""The laws about the selector: whatever an LM says, however it is called, compiled or not, it decides as the rule."""

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dspy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import evidence_locked
from eldgr_dspy.laws import LAWS
from eldgr_dspy.laws.of_rules import is_stratified
from eldgr_dspy.laws.trials import Outcome, Subject, Trial, require_laws
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.plain_values import UnwritableError, plain
from eldgr_dspy.rule.consultations import Reply
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.testing import consultations, lm_contents, questions, rule_settings
from eldgr_dspy.words import Role
from tests import selecting
from tests.scorers import Rewards
from tests.selecting import any_reply, inputs_of, repair, saying, selector_of, shipped_lawfully, verdict

QATAR = Question("Where?", "retrieval", ("Dubai", "Doha"), (), (Passage("", "Doha is the capital."),))
OF_A_DECISION = [law for law in LAWS if law.number <= 8]

FIELDS: dict[str, Any] = dict.fromkeys(("preferred", "repaired_answer", "derivation_steps", "derived_answer"))
"""The fields without which a module is not a role: there in every content, with anything in them, or nothing."""

any_content = (lm_contents | selecting.nearly | st.just(selecting.DERIVATION)).map(lambda one: {**FIELDS, **one})
any_score = st.none() | st.floats() | st.integers() | st.sampled_from((0.0, 0.5, 1.0))
any_scores = st.lists(any_score, max_size=6) | st.sampled_from((None, "high", KeyError("a bug")))
teach = functools.cache(selecting.compiled_program)


def options_of(setting: Settings) -> dict[str, Any]:
    return {name: getattr(setting, name) for name in Settings.__slots__}


def as_plain(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """A module's output as the selector takes it: what no journal can hold is an abstention."""
    try:
        return dict(plain(content))
    except UnwritableError:
        return {"abstained": "unreadable"}


def by_the_rule(question: Question, setting: Settings, contents: Mapping[Role, Mapping[str, Any]]) -> Outcome:
    """What the rule alone does on the question as the selector reads it, where the roles return these objects."""
    question = to_question(**inputs_of(question), answer_field="answer")
    parts = question.answers, len(question.passages)
    replies: dict[Role, Reply] = {role: read_reply(role, as_plain(one), *parts) for role, one in contents.items()}
    return Subject(evidence_locked).settle(Trial(question, setting, replies, gold=question.text))


@pytest.mark.law("no_lm_text_breaks_a_law", "property")
@settings(max_examples=60)
@given(questions(), rule_settings, any_reply, any_reply)
@example(QATAR, Settings(), json.dumps(verdict(1, 2)), "")
@example(QATAR, Settings(), json.dumps(verdict(0, 2)), json.dumps(repair("capital")))
@example(QATAR, Settings(), "\ud800", '{"repair_passage": 0, "repaired_answer": "\\ud800"}')
def test_no_lm_text_breaks_a_law(question: Question, setting: Settings, judge: str, other: str) -> None:
    """Through DSPy and the strict adapter. Not that such a reply is understood: it is mostly an abstention."""
    lm = saying(judge, other, other)
    shipped_lawfully(selecting.pick(lm, inputs=inputs_of(question), **options_of(setting)), question, setting)


@pytest.mark.law("no_lm_text_breaks_a_law", "property")
@given(questions(), rule_settings, any_content, any_content)
@example(QATAR, Settings(), {"preferred": 1, "assessments": [{"scalar": 10**400}] * 2}, {"repaired_answer": ["Doha"]})
@example(QATAR, Settings(), {"preferred": True}, {"repaired_answer": "Doha", "repair_passage": float("nan")})
def test_no_content_of_a_role_breaks_a_law(
    question: Question, setting: Settings, judge: dict[str, Any], other: dict[str, Any]
) -> None:
    """Past every adapter: whatever object arrives, by a module of the user's or from a journal."""
    pred = selector_of(judge, other, other, **options_of(setting))(**inputs_of(question))
    shipped_lawfully(pred, question, setting)
    outcome = by_the_rule(question, setting, {"judge": judge, "repairer": other, "deriver": other})
    require_laws(OF_A_DECISION, outcome)
    assert (pred.answer, pred.branch) == (outcome.decision.answer, outcome.decision.branch)


@pytest.mark.law("sync_equals_async_equals_batch_equals_replay", "property")
@settings(max_examples=40)
@given(questions(), rule_settings, any_content, any_content)
@example(QATAR, Settings(), verdict(1, 2), repair("capital"))
def test_sync_equals_async_equals_batch_equals_replay(
    question: Question, setting: Settings, judge: dict[str, Any], other: dict[str, Any]
) -> None:
    """With the same replies. Not that an LM replies the same twice."""
    select, inputs = selector_of(judge, other, other, **options_of(setting)), inputs_of(question)
    sync = select(**inputs).toDict()
    assert selecting.select_acall(select, inputs).toDict() == sync
    assert selecting.select_batch(select, inputs).toDict() == sync
    outcome = by_the_rule(question, setting, {"judge": judge, "repairer": other, "deriver": other})
    assert (sync["answer"], sync["branch"]) == (outcome.decision.answer, outcome.decision.branch)


def stratum(outcome: Outcome, index: int) -> tuple[bool, bool]:
    """Whether a candidate is unsupported, and whether it comes behind consensus's; least comes first."""
    answer = outcome.trial.question.answers[index]
    votes = outcome.case.same(answer, answer)
    inapplicable = outcome.case.task == "retrieval" and votes and outcome.case.certified(answer) is None
    by_role = outcome.case.task == "retrieval" or outcome.roles != ()
    has_support = inapplicable or (votes and outcome.supports(answer) and by_role)
    return not has_support, not (has_support and votes and outcome.keeps(answer))


@pytest.mark.law("scores_never_cross_strata", "property")
@given(questions(), rule_settings, any_content, any_content, any_scores)
@example(QATAR, Settings(), verdict(1, 2), repair("capital"), [1.0, 0.0])
@example(QATAR, Settings(preference="stratum"), verdict(0, 2), {}, [None, -1e300])
@example(QATAR, Settings(), {}, {}, [float("nan"), float("inf")])
@example(QATAR, Settings(), {}, {}, [10**400, 1])
def test_the_scores_of_a_scorer_never_cross_strata(
    question: Question, setting: Settings, judge: dict[str, Any], other: dict[str, Any], scores: Any
) -> None:
    """Through the selector, whatever a scorer says, returns or raises. Nothing but the ranking inside strata moves."""
    options, inputs = options_of(setting), inputs_of(question)
    before = selector_of(judge, other, other, **options)(**inputs).toDict()
    after = selector_of(judge, other, other, scorers=Rewards(scores), **options)(**inputs).toDict()
    assert json.loads(json.dumps(after)) == after
    tables, ranking, plain = after.pop("scores"), after.pop("ranking"), before.pop("ranking")
    assert after == before
    assert len(tables) == len(question.answers)
    outcome = by_the_rule(question, setting, {"judge": judge, "repairer": other, "deriver": other})
    assert is_stratified(replace(outcome, decision=replace(outcome.decision, ranking=tuple(ranking))))
    strata = [stratum(outcome, index) for index in ranking]
    assert strata == sorted(strata) == [stratum(outcome, index) for index in plain]
    rewards = [tables[index]["reward"] for index in ranking]
    if any(reward is not None for reward in rewards):
        ranks = [(s, r is None, -(r or 0.0), index) for s, r, index in zip(strata, rewards, ranking, strict=True)]
        assert ranks == sorted(ranks)


@pytest.mark.law("no_optimizer_breaks_a_law", "property")
@settings(max_examples=20)
@given(questions("retrieval"), any_reply, any_reply)
def test_no_optimizer_breaks_a_law(question: Question, judge: str, other: str) -> None:
    """A compiled selector ships lawfully. Not that it is a better one."""
    with dspy.context(lm=saying(judge, other)):
        shipped_lawfully(teach().select(**inputs_of(question)), question, Settings(consult="always"))


@pytest.mark.law("no_lm_text_breaks_a_law", "property")
@given(trial=consultations())
def test_no_reply_that_could_be_read_breaks_a_law(trial: Trial) -> None:
    """Where replies are read, without DSPy: one reply in five is made of any JSON object."""
    require_laws(OF_A_DECISION, Subject(evidence_locked).settle(trial))
