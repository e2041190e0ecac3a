"""A judge that plans checks from the question, then applies them to each candidate."""

from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ReplyError
from eldgr_dspy.programs.judges import PlanThenCheck, PointwiseJudge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import Line, check_selector, scripted_lm, text_of
from eldgr_dspy.rule.voting import majority
from tests.selecting import CONTESTED, SCORES, SILENT, Returns, awaiting

each_call = pytest.mark.parametrize(
    "call", [lambda judge: judge, lambda judge: awaiting(judge.acall)], ids=["sync", "async"]
)
EVIDENCE = ["Doha is the capital of Qatar."]
CHECKS = ["It is a city.", "It lies in Qatar.", "It is a capital."]


def properties_of(request: Any) -> dict[str, Any]:
    properties: dict[str, Any] = request.config.response_format["schema"]["properties"]
    return properties


class Checking(dspy.Module):
    """Replies by a function of the candidate, and keeps what it was shown."""

    def __init__(self, reply: Callable[[str], Any]) -> None:
        super().__init__()
        self.reply, self.shown = reply, list[tuple[list[str], str]]()

    def forward(self, *, question: str, evidence: Sequence[str], checks: Sequence[str], candidate: str) -> Any:
        self.shown.append((list(checks), candidate))
        found = self.reply(candidate)
        return dspy.Prediction(**(found if isinstance(found, dict) else {"passed": found, "consistent": True}))

    async def aforward(self, **inputs: Any) -> Any:
        return self.forward(**inputs)


def checking(reply: Callable[[str], Any], checks: Any = CHECKS) -> PlanThenCheck:
    judge = PlanThenCheck()
    judge.navigator, judge.interactor = Returns(dspy.Prediction(checks=checks)), Checking(reply)
    return judge


def judged(judge: Any, candidates: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = judge(question="q?", evidence=EVIDENCE, candidates=candidates).toDict()
    return found


# -- the choice -------------------------------------------------------------------------------------------------------

PASSED: dict[str, dict[str, Any]] = {
    "Dubai": {"passed": [True, False, False], "consistent": True},  # 1/3
    "So Doha.\nFinal answer: Lusail": {"passed": [True, True, True], "consistent": False},  # 3/3, but says another
    "Doha": {"passed": [True, True, False], "consistent": True},  # 2/3
}
POOL = ["Dubai", "Dubai", "So Doha.\nFinal answer: Lusail", "Doha"]


class Impressed(dspy.Module):
    """Scores a candidate as a whole by the checks that it passes, whether it agrees with itself or not."""

    def forward(self, candidate: str, **_: Any) -> dspy.Prediction:
        return dspy.Prediction(assessment={**SCORES, "scalar": sum(PASSED[candidate]["passed"]) / 3})

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        return self.forward(**inputs)


@each_call
def test_checks_and_consistency_choose_another_than_consensus_and_than_a_score_of_the_whole(call: Any) -> None:
    found = judged(call(checking(PASSED.__getitem__)), POOL)
    assert majority(["Dubai", "Dubai", "Lusail", "Doha"], "retrieval").winner == "dubai"
    assert judged(call(PointwiseJudge(Impressed())), POOL)["preferred"] == 2
    assert found["preferred"] == 3
    assert [one["scalar"] for one in found["assessments"]] == pytest.approx([1 / 3, 1 / 3, 0, 2 / 3])
    assert (found["checks"], found["orders"]) == (CHECKS, [])


def test_equal_scores_go_to_the_answer_with_more_votes_then_to_the_earliest() -> None:
    judge = checking(lambda _: [True, True, False])
    assert judged(judge, ["Lusail", "Doha", "doha"])["preferred"] == 1
    assert judged(judge, ["Lusail", "Doha"])["preferred"] == 0


# -- what is asked ----------------------------------------------------------------------------------------------------


def answering(request: Any) -> dict[str, Any]:
    if "checks" in properties_of(request):
        return {"checks": ["It is <s> a city.", " ", "[·/INST] It is a capital."]}
    passed = "<candidate 0" in text_of(request) and "\nDoha\n</candidate" in text_of(request)
    return {"check_rationale": "By passage 0.", "passed": [True, passed], "consistent": True}


@each_call
def test_the_plan_sees_the_question_alone_and_each_distinct_candidate_is_checked_once(call: Any) -> None:
    judge, lm = PlanThenCheck(), scripted_lm(answering)
    judge.set_lm(lm)
    found = judged(call(judge), ["Dubai", "Doha", "Dubai"])
    assert found["preferred"] == 1
    assert found["judge_rationale"] == "By passage 0."
    assert found["checks"] == ["It is <s> a city.", "[/INST] It is a capital."]  # without the dot of a fence
    plan, *checks = [text_of(request).replace("\\n", "\n") for request in lm.requests]
    assert not any(word in plan for word in ("Doha", "Dubai", "Qatar"))
    assert len(lm.requests) == judge.most_calls(["Dubai", "Doha", "Dubai"]) == 3
    assert sorted("\nDoha\n</candidate 0 " in one for one in checks) == [False, True]
    assert all("\nDoha is the capital of Qatar.\n</passage 0 " in one for one in checks)
    assert all("\nIt is <·s> a city.\n</check 0 " in one for one in checks)
    assert all("] It is a capital.\n</check 1 " in one and "<check 2 " not in one for one in checks)


@each_call
def test_blank_checks_are_dropped_and_an_empty_pool_asks_nobody(call: Any) -> None:
    judge = checking(lambda _: [True], ["", "It is a city.", "\n"])
    judged(call(judge), ["Doha"])
    interactor: Any = judge.interactor
    assert interactor.shown == [(["It is a city."], "Doha")]
    unplanned = PlanThenCheck()
    assert judged(call(unplanned), []) == {"abstained": "there is no candidate to judge", "orders": []}
    assert unplanned.most_calls([]) == 0


# -- what cannot be used ----------------------------------------------------------------------------------------------


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
    judge = checking(lambda _: [True], checks)
    assert judged(call(judge), ["Dubai", "Doha"]) == {"abstained": reason, "kind": "invalid", "orders": []}
    interactor: Any = judge.interactor
    assert interactor.shown == []


def test_a_navigator_that_abstains_says_why() -> None:
    judge = checking(lambda _: [True])
    judge.navigator = Returns(dspy.Prediction(abstained="no idea"))
    assert judged(judge, ["Dubai"])["abstained"] == "no idea"


@each_call
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([True, True], "passed has 2 of 3 checks"),
        ([True] * 4, "passed has 4 of 3 checks"),
        ([True, 1, True], "passed and consistent are not true or false"),
        ("yes", "passed and consistent are not true or false"),
        ({"passed": [True] * 3}, "passed and consistent are not true or false"),
        ({"passed": [True] * 3, "consistent": "yes"}, "passed and consistent are not true or false"),
        ({"abstained": "no idea"}, "no idea"),
    ],
)
def test_a_candidate_without_one_verdict_a_check_makes_the_whole_an_abstention(
    call: Any, said: Any, reason: str
) -> None:
    found = judged(call(checking(lambda text: said if text == "Doha" else [True] * 3)), ["Dubai", "Doha"])
    assert (found["abstained"], found["orders"]) == (f"{reason} (of candidate 1)", [])
    assert found.get("kind") == (None if reason == "no idea" else "invalid")


@each_call
@pytest.mark.parametrize("which", ["checks", "passed"])
@pytest.mark.parametrize("said", ["Certainly.", {"checks": "one"}, Line("{", cut=True)])
def test_a_reply_that_cannot_be_read_is_treated_like_a_plain_judge_s(call: Any, which: str, said: Any) -> None:
    def reply(request: Any) -> Any:
        properties = properties_of(request)
        return said if which in properties else SILENT if "repaired_answer" in properties else answering(request)

    select = Selector()
    select.judge = PlanThenCheck()
    with dspy.context(lm=scripted_lm(reply)):
        pred = call(select)(**CONTESTED)
        with pytest.raises((dspy.AdapterParseError, ReplyError)):
            judged(PlanThenCheck(), ["Dubai", "Doha"])
    assert (pred.answer, pred.preference) == ("Dubai", None)
    assert pred.abstentions["judge"].startswith(("unparsable: ", "cut off: "))


def test_a_plan_that_was_cut_off_is_not_used_even_if_it_can_be_read() -> None:
    def reply(request: Any) -> Any:
        if "checks" in properties_of(request):
            return Line('```json\n{"checks": ["It is a city.", "It is a capital."]}\n```', cut=True)
        return SILENT if "repaired_answer" in properties_of(request) else answering(request)

    select = Selector()
    select.judge = PlanThenCheck()
    with dspy.context(lm=scripted_lm(reply)):
        assert select(**CONTESTED).abstentions["judge"].startswith("cut off: ")


@each_call
def test_a_failed_call_is_raised(call: Any) -> None:
    for name in ("navigator", "interactor"):
        judge = checking(lambda _: [True] * 3)
        setattr(judge, name, Returns(dspy.LMServerError("down")))
        with pytest.raises(dspy.LMError):
            judged(call(judge), ["Dubai", "Doha"])


def test_within_the_lock_it_keeps_the_laws() -> None:
    select = Selector()
    select.judge = checking(lambda text: [True, "o" in text, "i" in text])
    assert check_selector(select, max_examples=1)["override_needs_a_certificate"] > 0
