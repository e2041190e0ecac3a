"""Why a role gives no answer has a kind, set where the abstention is made, and a journal states that kind."""

from collections.abc import Callable, Mapping
from typing import Any

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import describe_failure
from eldgr_dspy.programs.judges import (
    DimensionalSelector,
    OwnSelector,
    PairwiseJudge,
    Panel,
    PlanThenCheck,
    PointwiseJudge,
    SliceJudge,
    SwapConsistent,
    WeightedVote,
)
from eldgr_dspy.programs.lms import consulting
from eldgr_dspy.programs.lms.consulting import RoleOutput, ask
from eldgr_dspy.programs.run.role_queries import _reply
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Consultation, Heard
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.signatures import JudgeCandidates
from eldgr_dspy.testing import lm_contents
from eldgr_dspy.words import ABSTENTION_KINDS, ROLES, Consulted
from tests.judges.balloting import ballot
from tests.public_strategies import json_values

JUDGE: Any = JudgeCandidates
CASE = Case(Question("Which?", "retrieval", ("Oslo", "Rome", None)))
STATED = st.sampled_from([*ABSTENTION_KINDS, "unparsable", "no idea", "failed"]).map("{}: x".format) | json_values
KINDS: Any = {"kind": st.sampled_from(ABSTENTION_KINDS) | json_values}
silences = st.fixed_dictionaries({"abstained": STATED}, optional=KINDS)


class Returns(dspy.Module):
    """A module that returns the same whatever it is asked, or raises it."""

    def __init__(self, reply: Any) -> None:
        super().__init__()
        self.said = reply

    def forward(self, **_: Any) -> dspy.Prediction:
        if isinstance(self.said, Exception):
            raise self.said
        return dspy.Prediction(**self.said)


def journaled(role: Consulted, content: Mapping[str, Any]) -> tuple[Heard, Consultation]:
    """A reply as rules see it, and its consultation as a run journals it."""
    fields, reply = _reply(role, RoleOutput(content), CASE)
    return reply, Consultation("p", "q", role, **fields)


@given(
    st.sampled_from([*ROLES, "certificate"]),
    lm_contents | st.dictionaries(st.text(max_size=9), json_values, max_size=3) | silences,
    silences | st.just({}),
)
@example("judge", {"preferred": 9}, {})
@example("judge", {"preferred": None}, {"abstained": "I pass"})
@example("judge", {"preferred": 9, "kind": "inconsistent"}, {})
@example(
    "judge", {}, {"abstained": "preferred=1 is a candidate without an answer (in order 1 of 2)", "kind": "invalid"}
)
@example("judge", {}, {"abstained": "inconsistent: x", "kind": "nothing to say"})
@example("deriver", {"derivation_steps": [1], "derived_answer": "1", "consistency_check": 2}, {})
@example("certificate", {"answers": ["Oslo"], "certified": []}, {})
@example("repairer", {}, {})
def test_the_kind_of_an_abstention_is_read_back_from_its_line(
    role: Consulted, content: Mapping[str, Any], stated: Mapping[str, Any]
) -> None:
    reply, line = journaled(role, {**content, **stated})
    if isinstance(reply, Abstention):
        why = line.abstention
        assert why is not None and (why, why.kind) == (Abstention(reply.reason or "no reason given"), reply.kind)
        assert reply.kind in ABSTENTION_KINDS
    else:
        assert line.abstention is None


@pytest.mark.parametrize(
    ("reason", "content", "kind"),
    [
        ("unparsable: The reply is not JSON.", None, "unreadable"),
        ("cut off: the LM reached its limit", {"preferred": 1}, "cut off"),
        ("inconsistent: the orders prefer candidates 3, 0", {"orders": []}, "inconsistent"),
        ("preferred=7 is not a whole number from 0 to 3", {"preferred": 7}, "invalid"),
        ("its own answer contains none", {"orders": [], "kind": "a kind of fish"}, "nothing to say"),
        (None, None, "nothing to say"),
    ],
)
def test_a_line_that_states_no_kind_has_that_at_the_beginning_of_its_reason(
    reason: str | None, content: Any, kind: str
) -> None:
    why = Consultation("p", "q", "judge", "abstained", reason, content).abstention
    assert why is not None and why.kind == kind
    assert why.unusable == (kind not in ("inconsistent", "nothing to say"))


@given(lm_contents | st.dictionaries(st.text(max_size=9), json_values, max_size=3), st.sampled_from(ROLES))
@example({"preferred": 0, "assessments": [1]}, "judge")
@example({"derivation_steps": [], "derived_answer": " "}, "deriver")
def test_whatever_the_gate_of_replies_refuses_is_invalid(content: Mapping[str, Any], role: Any) -> None:
    reply = read_reply(role, content, ("Oslo", None), 1)
    if isinstance(reply, Abstention) and "abstained" not in content and reply.reason != "no span":
        assert reply.kind == "invalid"


UNREAD = dspy.AdapterParseError("JSON", JUDGE, "?", "no JSON")


@pytest.mark.parametrize(
    ("judge", "kind"),
    [
        (lambda: Returns(UNREAD), "unreadable"),
        (lambda: Returns({"preferred": float("nan")}), "unreadable"),
        (lambda: Returns(dspy.ContextWindowExceededError(message="too long")), "prompt too long"),
        (lambda: SwapConsistent(Returns(UNREAD)), "unreadable"),
        (lambda: SwapConsistent(Returns({"preferred": 7})), "invalid"),
        (lambda: SwapConsistent(Returns({"preferred": 0})), "inconsistent"),
        (lambda: PairwiseJudge(Returns(UNREAD)), "unreadable"),
        (lambda: PairwiseJudge(Returns({"preferred": 7})), "invalid"),
        (lambda: PairwiseJudge(SwapConsistent(Returns({"preferred": 0}))), "inconsistent"),
        (lambda: pointwise({"assessment": {"scalar": 2}}), "invalid"),
        (lambda: pointwise({"abstained": "cut off: x"}), "cut off"),
        (lambda: slices({"sound": "yes"}), "invalid"),
        (lambda: slices({"abstained": "withheld: x"}), "withheld"),
        (lambda: checks({"checks": []}), "invalid"),
        (lambda: checks({"abstained": "no idea"}), "nothing to say"),
        (lambda: WeightedVote("cisc"), "not applicable"),
        (DimensionalSelector, "not applicable"),
        (lambda: Panel([WeightedVote("cisc")]), "not applicable"),
        (lambda: Panel([Returns(UNREAD)]), "nothing to say"),
        (lambda: OwnSelector(lambda counted: Abstention("an odd pool", "not applicable")), "not applicable"),
        (lambda: OwnSelector(lambda counted: Abstention("too few votes")), "nothing to say"),
    ],
)
def test_each_judge_says_of_which_kind_its_abstention_is(judge: Callable[[], dspy.Module], kind: str) -> None:
    module = judge()
    counted = {"ballot": ballot("ab")} if getattr(module, "takes_ballot", False) else {}
    response = ask(module, {"question": "Which?", "evidence": [], "candidates": ["Oslo", "Rome"], **counted}, "judge")
    reply, line = journaled("judge", response.content)
    assert isinstance(reply, Abstention) and line.abstention is not None
    assert reply.kind == line.abstention.kind == kind


def pointwise(reply: Any) -> dspy.Module:
    judge: Any = PointwiseJudge()
    judge.assessor = Returns(reply)
    return judge


def slices(reply: Any) -> dspy.Module:
    judge: Any = SliceJudge()
    judge.reader = Returns(reply)
    return judge


def checks(reply: Any) -> dspy.Module:
    judge: Any = PlanThenCheck()
    judge.navigator = Returns(reply)
    return judge


def test_every_end_of_a_reply_that_the_calls_know_is_of_its_own_kind() -> None:
    assert {why.kind for why in consulting._ENDS.values()} == {"cut off", "withheld"}


@pytest.mark.parametrize("error", [dspy.LMTimeoutError("late: by a minute"), ConnectionError(), TimeoutError("x: y")])
def test_a_failed_call_is_of_the_kind_of_its_error(error: Exception) -> None:
    failure, reason = Abstention.failure(error), describe_failure(error)
    assert (failure.kind, failure.failed, failure.unusable) == (type(error).__name__, True, False)
    assert (failure.text, failure.reason) == (reason, f"failed: {reason}")
    line = Consultation("p", "q", "judge", "failed", reason).abstention
    assert line is not None and (line, line.kind, line.failed) == (failure, failure.kind, True)
