"""Why a role said nothing has a kind, whoever says so: the gate of replies, the calls, the judges that ask others."""

from collections.abc import Mapping
from typing import Any

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.abstention_kinds import FAILED, KINDS, kind_of
from eldgr_dspy.consultations import Abstention
from eldgr_dspy.errors import describe_failure
from eldgr_dspy.programs import consulting
from eldgr_dspy.replies import read_reply
from eldgr_dspy.signatures import JudgeCandidates
from eldgr_dspy.strategies import lm_contents
from eldgr_dspy.words import ROLES, Role
from tests.strategies import json_values

JUDGE: Any = JudgeCandidates


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("unparsable: The reply is not JSON.", "unreadable"),
        ("unparsable: x (in order 2 of 2)", "unreadable"),
        ("unreadable: 'value' holds a set", "unreadable"),
        ("the final is undecided: unparsable: x", "unreadable"),
        ("preferred=7 is not a whole number from 0 to 3", "invalid"),
        ("preferred=1 is a candidate without an answer (in order 1 of 2)", "invalid"),
        ("assessments[0] is not an object (of candidate 3)", "invalid"),
        ("cut off: the LM reached its limit of output tokens; give it a larger max_tokens", "cut off"),
        ("withheld: the server's content filter ended the reply", "withheld"),
        ("several answers: 3 where 1 was asked for", "several answers"),
        ("prompt too long: 9,000 tokens", "prompt too long"),
        ("inconsistent: the orders prefer candidates 3, 0", "inconsistent"),
        ("the final is undecided: inconsistent: the orders prefer candidates 1, 0", "inconsistent"),
        ("no span", "nothing to say"),
        ("there is no candidate to judge", "nothing to say"),
        ("no reason given", "nothing to say"),
        ("preferred nobody", "nothing to say"),
        ("", "nothing to say"),
    ],
)
def test_each_reason_has_its_kind(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind
    assert kind in KINDS
    assert Abstention(reason).unusable == (kind not in ("inconsistent", "nothing to say"))


@given(lm_contents | st.dictionaries(st.text(max_size=9), json_values, max_size=3), st.sampled_from(ROLES))
@example({"preferred": 3.0}, "judge")
@example({"preferred": 0, "assessments": [1]}, "judge")
@example({"preferred": 0, "assessments": [{"fact": 2}]}, "judge")
@example({"repaired_answer": "x", "repair_passage": True}, "repairer")
@example({"derivation_steps": [], "derived_answer": " "}, "deriver")
@example({"derivation_steps": [{"expression": 1}], "derived_answer": "1"}, "deriver")
@example({"derivation_steps": [1], "derived_answer": "1", "consistency_check": 2}, "deriver")
def test_whatever_the_gate_of_replies_refuses_is_invalid(content: Mapping[str, Any], role: Role) -> None:
    reply = read_reply(role, content, ("Oslo", None), 1)
    if isinstance(reply, Abstention) and "abstained" not in content and reply.reason != "no span":
        assert reply.kind == kind_of(reply.reason) == "invalid"


def test_every_end_of_a_reply_that_the_calls_know_is_of_its_own_kind() -> None:
    assert {kind_of(reason) for reason in consulting._ENDS.values()} == {"cut off", "withheld"}
    errors = [
        (dspy.ContextWindowExceededError(message="too long"), "prompt too long"),
        (dspy.AdapterParseError("JSON", JUDGE, "?", "no JSON"), "unreadable"),
    ]
    for error, kind in errors:
        assert kind_of(consulting._abstention(error).content["abstained"]) == kind


def test_a_failed_call_is_of_the_kind_of_its_error() -> None:
    reason = describe_failure(dspy.LMTimeoutError("late: by a minute"))
    failure = Abstention.failure(reason)
    assert (failure.kind, failure.failed, failure.unusable, failure.text) == ("LMTimeoutError", True, False, reason)
    assert failure == Abstention(FAILED + reason)
