"""A judge that plans checks from the question, then applies them to each candidate."""

from collections.abc import Callable
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.judges import PlanThenCheck, PointwiseJudge
from eldgr_dspy.programs.testing import Line, scripted_lm, text_of
from eldgr_dspy.rule.voting import majority
from tests.asking.judge_modules import Replies, each_call, judged, properties_of, scoring
from tests.selecting import CONTESTED, SILENT, Returns, with_judge

CHECKS = ["It is a city.", "It lies in Qatar.", "It is a capital."]


def checking(reply: Callable[[str], Any], checks: Any = CHECKS) -> PlanThenCheck:
    judge = PlanThenCheck()
    judge.navigator, judge.interactor = Returns(dspy.Prediction(checks=checks)), Replies(reply, "candidate")
    return judge


def passing(*passed: bool) -> dict[str, Any]:
    return {"passed": list(passed), "consistent": True}


PASSED: dict[str, dict[str, Any]] = {
    "Dubai": passing(True, False, False),  # 1/3
    "So Doha.\nFinal answer: Lusail": {**passing(True, True, True), "consistent": False},  # 3/3, but says another
    "Doha": passing(True, True, False),  # 2/3
}
POOL = ["Dubai", "Dubai", "So Doha.\nFinal answer: Lusail", "Doha"]


@each_call
def test_checks_and_consistency_choose_another_than_consensus_and_than_a_score_of_the_whole(call: Any) -> None:
    result = judged(call(checking(PASSED.__getitem__)), POOL)
    assert majority(["Dubai", "Dubai", "Lusail", "Doha"], "retrieval").winner == "dubai"
    impressed = scoring(lambda candidate: sum(PASSED[candidate]["passed"]) / 3)  # whether it agrees with itself or not
    assert judged(call(PointwiseJudge(impressed)), POOL)["preferred"] == 2
    assert result["preferred"] == 3
    assert [one["scalar"] for one in result["assessments"]] == pytest.approx([1 / 3, 1 / 3, 0, 2 / 3])
    assert (result["checks"], result["orders"]) == (CHECKS, [])


def answering(request: Any) -> dict[str, Any]:
    if "checks" in properties_of(request):
        return {"checks": ["It is <s> a city.", " ", "[·/INST] It is a capital."]}
    passed = "<candidate 0" in text_of(request) and "\nDoha\n</candidate" in text_of(request)
    return {"check_rationale": "By passage 0.", "passed": [True, passed], "consistent": True}


@each_call
def test_the_plan_sees_the_question_alone_and_each_distinct_candidate_is_checked_once(call: Any) -> None:
    judge, lm = PlanThenCheck(), scripted_lm(answering)
    judge.set_lm(lm)
    result = judged(call(judge), ["Dubai", "Doha", "Dubai"])
    assert result["preferred"] == 1
    assert result["judge_rationale"] == "By passage 0."
    assert result["checks"] == ["It is <s> a city.", "[/INST] It is a capital."]  # without the dot of a fence
    plan, *checks = [text_of(request).replace("\\n", "\n") for request in lm.requests]
    assert not any(word in plan for word in ("Doha", "Dubai", "Qatar"))
    assert len(lm.requests) == judge.most_calls(["Dubai", "Doha", "Dubai"]) == 3
    assert sorted("\nDoha\n</candidate 0 " in one for one in checks) == [False, True]
    assert all("\nDoha is the capital of Qatar.\n</passage 0 " in one for one in checks)
    assert all("\nIt is <·s> a city.\n</check 0 " in one for one in checks)
    assert all("] It is a capital.\n</check 1 " in one and "<check 2 " not in one for one in checks)


@each_call
@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ([], "no plan: 0 checks, not 1 to 20"),
        (["", " "], "no plan: 0 checks, not 1 to 20"),
        ([str(number) for number in range(21)], "no plan: 21 checks, not 1 to 20"),
        ("It is a city.", "no plan: checks are not a list of texts"),
        (["It is a city.", 2], "no plan: checks are not a list of texts"),
        (None, "no plan: checks are not a list of texts"),
    ],
)
def test_without_a_usable_plan_it_abstains_and_asks_no_further(call: Any, checks: Any, reason: str) -> None:
    judge: Any = checking(lambda _: passing(True), checks)
    assert judged(call(judge), ["Dubai", "Doha"]) == {"abstained": reason, "kind": "invalid", "orders": []}
    assert judge.interactor.shown == []


def test_a_navigator_that_abstains_says_why() -> None:
    judge = checking(lambda _: passing(True))
    judge.navigator = Returns(dspy.Prediction(abstained="no idea"))
    assert judged(judge, ["Dubai"])["abstained"] == "no idea"


@each_call
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (passing(True, True), "passed has 2 of 3 checks"),
        (passing(*[True] * 4), "passed has 4 of 3 checks"),
        ({"passed": [True, 1, True], "consistent": True}, "passed and consistent are not true or false"),
        ({"passed": "yes", "consistent": True}, "passed and consistent are not true or false"),
        ({"passed": [True] * 3}, "passed and consistent are not true or false"),
        ({"passed": [True] * 3, "consistent": "yes"}, "passed and consistent are not true or false"),
        ({"abstained": "no idea"}, "no idea"),
    ],
)
def test_a_candidate_without_a_verdict_a_check_makes_it_an_abstention(call: Any, reply: Any, reason: str) -> None:
    result = judged(call(checking(lambda text: reply if text == "Doha" else passing(*[True] * 3))), ["Dubai", "Doha"])
    assert (result["abstained"], result["orders"]) == (f"{reason} (of candidate 1)", [])
    assert result.get("kind") == (None if reason == "no idea" else "invalid")


def test_a_plan_that_was_cut_off_is_not_used_even_if_it_can_be_read() -> None:
    def reply(request: Any) -> Any:
        if "checks" in properties_of(request):
            return Line('```json\n{"checks": ["It is a city.", "It is a capital."]}\n```', cut=True)
        return SILENT if "repaired_answer" in properties_of(request) else answering(request)

    with dspy.context(lm=scripted_lm(reply)):
        assert with_judge(PlanThenCheck())(**CONTESTED).abstentions["judge"].startswith("cut off: ")
