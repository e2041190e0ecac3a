"""Why a role gives no answer has a kind that a journal states, and so have the orders in which it saw candidates."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import describe_failure
from eldgr_dspy.programs import judges
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.judges import Comparer, OwnSelector, PairwiseJudge, SwapConsistent
from eldgr_dspy.programs.lms import consulting
from eldgr_dspy.programs.lms.consulting import RoleOutput, ask
from eldgr_dspy.programs.run.role_calls import _reply
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Consultation, Heard
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.signatures import JudgeCandidates
from eldgr_dspy.testing import lm_contents
from eldgr_dspy.words import ABSTENTION_KINDS, ROLES, Consulted
from tests.capitals import row
from tests.case_tables import each_case, each_example
from tests.finished_runs import finished_run
from tests.judges.balloting import ballot
from tests.public_strategies import json_values
from tests.selecting import Returns

JUDGE: Any = JudgeCandidates
CASE = Case(Question("Which?", "retrieval", ("Oslo", "Rome", None)))
REASONS = st.sampled_from([*ABSTENTION_KINDS, "unparsable", "no idea", "failed"]).map("{}: x".format) | json_values
KINDS: Any = {"kind": st.sampled_from(ABSTENTION_KINDS) | json_values}
silences = st.fixed_dictionaries({"abstained": REASONS}, optional=KINDS)


def write_line(role: Consulted, content: Mapping[str, Any]) -> tuple[Heard, Consultation]:
    """A reply as rules see it, and its consultation as a run journals it."""
    fields, reply = _reply(role, RoleOutput(content), CASE)
    return reply, Consultation("p", "q", role, **fields)


@given(
    st.sampled_from([*ROLES, "certificate"]),
    lm_contents | st.dictionaries(st.text(max_size=9), json_values, max_size=3) | silences,
    silences | st.just({}),
)
@each_example("results", "abstentions", inf=lambda: math.inf)
def test_an_abstention_keeps_its_kind(role: Consulted, content: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    reply, line = write_line(role, ask(Returns({**content, **extra}), {}).content)
    if isinstance(reply, Abstention):
        why = line.abstention
        assert why is not None and (why, why.kind) == (Abstention(reply.reason or "no reason given"), reply.kind)
        assert reply.kind in ABSTENTION_KINDS
    else:
        assert line.abstention is None


@each_case("results", "kinds by the reason")
def test_a_line_without_a_kind_has_the_one_its_reason_begins_with(reason: str | None, content: Any, kind: str) -> None:
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


PARSE_ERROR = dspy.AdapterParseError("JSON", JUDGE, "?", "no JSON")


def with_part(judge: Any, part: str, reply: Any) -> Any:
    setattr(judge, part, Returns(reply))
    return judge


def own(*why: Any) -> dspy.Module:
    return OwnSelector(lambda votes: Abstention(*why))


NAMES = "SwapConsistent PairwiseJudge PointwiseJudge SliceJudge PlanThenCheck WeightedVote DimensionalSelector Panel"
WORDS: dict[str, Any] = {name: getattr(judges, name) for name in NAMES.split()}
WORDS |= {"Returns": Returns, "with part": with_part, "own": own, "unread": lambda: Returns(PARSE_ERROR)}
WORDS |= {"nan": lambda: math.nan, "too long": lambda: Returns(dspy.ContextWindowExceededError(message="too long"))}


@each_case("results", "judges that abstain", **WORDS)
def test_each_judge_says_of_which_kind_its_abstention_is(judge: dspy.Module, kind: str) -> None:
    inputs = {"ballot": ballot("ab")} if getattr(judge, "takes_ballot", False) else {}
    response = ask(judge, {"question": "Which?", "evidence": [], "candidates": ["Oslo", "Rome"], **inputs}, "judge")
    reply, line = write_line("judge", response.content)
    assert isinstance(reply, Abstention) and line.abstention is not None
    assert reply.kind == line.abstention.kind == kind


@pytest.mark.parametrize("error", [dspy.LMTimeoutError("late: by a minute"), ConnectionError(), TimeoutError("x: y")])
def test_a_failed_call_is_of_the_kind_of_its_error_and_every_end_of_a_reply_of_its_own(error: Exception) -> None:
    assert {why.kind for why in consulting._ENDS.values()} == {"cut off", "withheld"}
    failure, reason = Abstention.failure(error), describe_failure(error)
    assert (failure.kind, failure.failed, failure.unusable) == (type(error).__name__, True, False)
    assert (failure.text, failure.reason) == (reason, f"failed: {reason}")
    line = Consultation("p", "q", "judge", "failed", reason).abstention
    assert line is not None and (line, line.kind, line.failed) == (failure, failure.kind, True)


@given(st.lists(st.dictionaries(st.sampled_from(("order", "preferred", "rationale")), json_values)) | json_values)
@example([{"order": [0, 1], "preferred": True}])
@example([{"order": [0, 2], "preferred": 0}])
@example([{"order": "01", "preferred": None}])
@example([{"order": [1, 0], "preferred": 1, "rationale": 7}])
def test_whatever_orders_a_judge_of_pairs_states_the_pool_is_what_is_journaled(orders: Any) -> None:
    judge = PairwiseJudge(Returns({"preferred": 1, "orders": orders}))
    result = judge(question="Q?", candidates=["Dubai", "Doha"], evidence=[])
    for one in result.orders:
        assert {*one["order"]} <= {0, 1} and one["preferred"] in (*one["order"], None)


def entries(folder: Path, judge: dspy.Module) -> list[dict[str, Any]]:
    """The consultations of a judge that the journal of its run holds."""
    rows = [row(k, answers=("Dubai", "Doha"), evidence=[], gold=[]) for k in range(2)]
    selector = heuristic_selector()
    selector.judge = judge
    run, _ = finished_run(folder, rows=rows, selector=selector)
    lines = map(json.loads, (run / "journal.jsonl").read_text("utf-8").splitlines())
    return [line for line in lines if line.get("role") == "judge"]


def test_the_orders_of_one_question_are_one_consultation_in_which_a_judge_that_goes_by_place_is_seen(
    tmp_path: Path,
) -> None:
    by_place, judge = tmp_path / "by place", PairwiseJudge(SwapConsistent(Comparer()))
    by_place.mkdir()
    result = entries(by_place, SwapConsistent(Returns({"preferred": 0, "judge_rationale": "candidate 1 is right"})))
    assert {one["reason"] for one in result} == {"inconsistent: the orders prefer candidates 0, 1"}
    fields = {"scores": None, "rationale": "candidate 1 is right"}
    expected = [{"order": [0, 1], "preferred": 0, **fields}, {"order": [1, 0], "preferred": 1, **fields}]
    assert result[0]["content"]["orders"] == expected
    judge.set_lm(scripted_lm(lambda _: {"comparison_rationale": "", "better": 1}))
    result = entries(tmp_path, judge)
    assert [one["calls"] for one in result] == [2] * 2
    assert {one["asked"] for one in result} == {"scripted/lm"}
    assert sorted(one["order"] for one in result[0]["content"]["orders"]) == [[0, 1], [1, 0]]
