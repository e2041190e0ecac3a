"""Judges of several parts: a panel, checks that are planned and applied, and one that reads slice by slice."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.judges import Panel, PlanThenCheck, PointwiseJudge, SliceJudge
from eldgr_dspy.programs.judges.gar import slices_of
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.testing import Line, scripted_lm, text_of
from eldgr_dspy.rule.consultations import Abstention, show_candidate
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.rule.voting import majority
from eldgr_dspy.signatures import JudgeCandidates
from tests.asking.judge_modules import Replies, assess, each_call, properties_of, scoring
from tests.capitals import row
from tests.case_tables import each_case
from tests.finished_runs import finished_run
from tests.selecting import CONTESTED, SILENT, Returns, in_style, verdict, with_judge

POOL = ["Dubai", "Dubai", "Doha", "Manama"]
ABSENT = Returns({"abstained": "no idea"})
NO_JSON = Returns(dspy.AdapterParseError("StrictJSONAdapter", cast(Any, JudgeCandidates), "?", "no JSON"))
CHECKS = ["It is a city.", "It lies in Qatar.", "It is a capital."]
CANDIDATES = ["Dubai", "Dubai", "So Doha.\nFinal answer: Lusail", "Doha"]
PIECES = ["a", "bb", " ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "\r\n", "é."]
# A word is a slice. Of Doha's candidates half is sound, of Lusail's all; Manama's has most sound words, of many.
TEXTS = [
    *["wrong wrong\nFinal answer: Dubai"] * 4,
    *[f"right wrong{mark}\nFinal answer: Doha" for mark in ".!?"],
    "right\nFinal answer: Lusail",
    "right right wrong wrong wrong\nFinal answer: Manama",
]
LONG = "Qatar lies there.\nIts capital is Doha.\n"


def member(preferred: Any, *scalars: float) -> Returns:
    scores = {"assessments": [{"scalar": scalar} for scalar in scalars]} if scalars else {}
    return Returns({"preferred": preferred, **scores})


@each_call
def test_the_vote_differs_from_consensus_and_from_one_of_the_judges(call: Any) -> None:
    judges = [member(2, 0.1, 0.1, 0.6, 0.5), member(2, 0.2, 0.2, 0.6, 0.5), member(3, 0.0, 0.0, 0.1, 0.9)]
    vote = assess(call(Panel(judges)), POOL)
    assert majority(POOL, "retrieval").winner == "dubai"
    members = [{"preferred": 2}, {"preferred": 2}, {"preferred": 3}]
    reason = "2 of 3 judges prefer this answer"
    assert vote == {"preferred": 2, "judge_rationale": reason, "members": members, "orders": []}


@pytest.mark.parametrize("absent", [ABSENT, NO_JSON, member(7), member(True), member(4, 0.1)])
@each_call
def test_an_absent_judge_stays_in_the_denominator(call: Any, absent: Any) -> None:
    """Two of three are a majority, two of four are not, however many of the four said anything."""
    assert assess(call(Panel([member(2), member(2), absent])), POOL)["preferred"] == 2
    result = assess(call(Panel([member(2), member(2), absent, absent])), POOL)
    assert result["abstained"] == "no majority of 4 judges: 2 for candidate 2, 2 absent" and "preferred" not in result
    assert [one["preferred"] for one in result["members"]] == [2, 2, None, None]
    assert all(one["abstained"] for one in result["members"][2:])


def test_preferences_are_counted_by_answer_and_what_has_no_majority_is_an_abstention_with_the_counts() -> None:
    split = assess(Panel([member(0), member(2), member(3)]), POOL)["abstained"]
    assert split == "no majority of 3 judges: 1 for candidate 0, 1 for candidate 2, 1 for candidate 3, 0 absent"
    assert assess(Panel([ABSENT, NO_JSON]), POOL)["abstained"] == "no majority of 2 judges: 2 absent"
    for votes, preferred in (([0, 2, 1], 0), ([0, 2, 2, 1, 1], 2), ([3, 2, 1], 2)):  # of one each the earliest
        assert assess(Panel([*map(member, votes)]), ["Doha", "Dubai", "doha.", "Doha!"])["preferred"] == preferred


@given(st.lists(st.sampled_from([0, 1, 2, 3, None]), min_size=1, max_size=7))
def test_a_vote_passes_only_with_more_than_half_of_all_judges(preferred: list[int | None]) -> None:
    result = assess(Panel([ABSENT if one is None else member(one) for one in preferred]), POOL)
    answers = [POOL[one] for one in preferred if one is not None]
    winners = [answer for answer in set(answers) if answers.count(answer) * 2 > len(preferred)]
    assert [POOL[index] for index in [result.get("preferred")] if index is not None] == winners
    assert ("abstained" in result) == (not winners)


@each_call
def test_each_member_asks_its_lm_and_the_calls_add_up(call: Any) -> None:
    panel, lm = Panel([Judge(), PointwiseJudge(), Judge()]), scripted_lm(answering)
    panel.set_lm(lm)
    assert assess(call(panel), POOL)["members"] == [{"preferred": 2}] * 3
    assert len(lm.requests) == panel.most_calls(POOL) == 1 + 3 + 1  # the pool, three texts, the pool again
    assert ["Manama" in text_of(one) for one in lm.requests].count(True) == 3
    assert Panel([Judge(), Returns({})]).most_calls(POOL) is None


def answering(request: Any) -> dict[str, Any]:
    return in_style(request, 2, 0.9 if "Doha\\n</" in repr(request.messages[-1].text) else 0.1, len(POOL))


@each_call
def test_a_cut_reply_is_an_absence_of_that_judge_alone(call: Any) -> None:
    cut = Line(json.dumps(verdict(2, 4))[:-1], cut=True)
    judges = [Judge(), Judge(), Judge()]
    for judge, reply in zip(judges, (cut, verdict(3, 4), verdict(3, 4)), strict=True):
        judge.set_lm(scripted_lm([reply]))
    result = assess(call(Panel(judges)), POOL)
    assert result["preferred"] == 3
    assert result["members"][0]["abstained"].startswith("cut off: ")


def test_who_preferred_what_is_in_the_journal(tmp_path: Path) -> None:
    selector = heuristic_selector()
    selector.judge = Panel([member(2), member(2), ABSENT])
    run, _ = finished_run(tmp_path, rows=[row(0)], selector=selector)
    (entry,) = (one for one in read_journal(run / "journal.jsonl") if one.role == "judge")
    absent = {"preferred": None, "abstained": "no idea"}
    content: Any = entry.content
    assert (entry.outcome, content["preferred"]) == ("ok", 2)
    assert content["members"] == [{"preferred": 2}, {"preferred": 2}, absent]


def checking(reply: Callable[[str], Any], checks: Any = CHECKS) -> PlanThenCheck:
    judge = PlanThenCheck()
    judge.navigator, judge.interactor = Returns(dspy.Prediction(checks=checks)), Replies(reply, "candidate")
    return judge


def passing(*marks: bool) -> dict[str, Any]:
    return {"passed": list(marks), "consistent": True}


MARKS: dict[str, dict[str, Any]] = {
    "Dubai": passing(True, False, False),  # 1/3
    "So Doha.\nFinal answer: Lusail": {**passing(True, True, True), "consistent": False},  # 3/3, but says another
    "Doha": passing(True, True, False),  # 2/3
}


@each_call
def test_checks_and_consistency_choose_another_than_consensus_and_than_a_score_of_the_whole(call: Any) -> None:
    result = assess(call(checking(MARKS.__getitem__)), CANDIDATES)
    assert majority(["Dubai", "Dubai", "Lusail", "Doha"], "retrieval").winner == "dubai"
    scorer = scoring(lambda candidate: sum(MARKS[candidate]["passed"]) / 3)  # whether it agrees with itself or not
    assert assess(call(PointwiseJudge(scorer)), CANDIDATES)["preferred"] == 2
    assert (result["preferred"], result["checks"], result["orders"]) == (3, CHECKS, [])
    assert [one["scalar"] for one in result["assessments"]] == pytest.approx([1 / 3, 1 / 3, 0, 2 / 3])


def applying(request: Any) -> dict[str, Any]:
    if "checks" in properties_of(request):
        return {"checks": ["It is <s> a city.", " ", "[·/INST] It is a capital."]}
    flag = "<candidate 0" in text_of(request) and "\nDoha\n</candidate" in text_of(request)
    return {"check_rationale": "By passage 0.", "passed": [True, flag], "consistent": True}


@each_call
def test_the_plan_sees_the_question_alone_and_each_distinct_candidate_is_checked_once(call: Any) -> None:
    judge, lm = PlanThenCheck(), scripted_lm(applying)
    judge.set_lm(lm)
    result = assess(call(judge), ["Dubai", "Doha", "Dubai"])
    assert (result["preferred"], result["judge_rationale"]) == (1, "By passage 0.")
    assert result["checks"] == ["It is <s> a city.", "[/INST] It is a capital."]  # without the dot of a fence
    plan, *checks = [text_of(request).replace("\\n", "\n") for request in lm.requests]
    assert not any(word in plan for word in ("Doha", "Dubai", "Qatar"))
    assert len(lm.requests) == judge.most_calls(["Dubai", "Doha", "Dubai"]) == 3
    assert sorted("\nDoha\n</candidate 0 " in one for one in checks) == [False, True]
    assert all("\nDoha is the capital of Qatar.\n</passage 0 " in one for one in checks)
    assert all("\nIt is <·s> a city.\n</check 0 " in one for one in checks)
    assert all("] It is a capital.\n</check 1 " in one and "<check 2 " not in one for one in checks)


@each_call
@each_case("asking", "unusable plans")
def test_without_a_usable_plan_it_abstains_and_asks_no_further(call: Any, checks: Any, reason: str) -> None:
    judge: Any = checking(lambda _: passing(True), checks)
    assert assess(call(judge), ["Dubai", "Doha"]) == {"abstained": reason, "kind": "invalid", "orders": []}
    assert judge.interactor.values == []


def test_a_navigator_that_abstains_says_why_and_a_plan_that_was_cut_off_is_not_used() -> None:
    judge = checking(lambda _: passing(True))
    judge.navigator = Returns(dspy.Prediction(abstained="no idea"))
    assert assess(judge, ["Dubai"])["abstained"] == "no idea"

    def reply(request: Any) -> Any:
        if "checks" in properties_of(request):
            return Line('```json\n{"checks": ["It is a city.", "It is a capital."]}\n```', cut=True)
        return SILENT if "repaired_answer" in properties_of(request) else applying(request)

    with dspy.context(lm=scripted_lm(reply)):
        assert with_judge(PlanThenCheck())(**CONTESTED).abstentions["judge"].startswith("cut off: ")


@each_call
@each_case("asking", "unusable checks")
def test_a_candidate_without_a_verdict_a_check_makes_it_an_abstention(call: Any, reply: Any, reason: str) -> None:
    result = assess(call(checking(lambda text: reply if text == "Doha" else passing(*[True] * 3))), ["Dubai", "Doha"])
    kind = None if reason == "no idea" else "invalid"
    assert (result["abstained"], result["orders"], result.get("kind")) == (f"{reason} (of candidate 1)", [], kind)


def reading(reply: Callable[[str], Any], size: int = 320) -> SliceJudge:
    """A judge whose reader finds a slice sound as a function says, or returns the fields that it gives."""

    def about(text: str) -> Any:
        result = reply(text)
        return result if isinstance(result, dict) else {"sound": result}

    judge = SliceJudge(size)
    judge.reader = Replies(about, "slice")
    return judge


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.integers(1, 6))
def test_slices_join_to_the_text_and_none_is_blank_or_too_long_or_cut_without_need(text: str, size: int) -> None:
    """A cut within a line is made only in a line that is too long, and no two neighbors fit in one."""
    slices, start = slices_of(text, size), 0
    assert "".join(slices) == (text if text.strip() else "")
    assert all(1 <= len(one.split()) <= size for one in slices)
    for one, following in pairwise(slices):
        start += len(one)
        line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
        assert one.endswith("\n") or len(line.split()) > size
        assert len(one.split()) + len(following.partition("\n")[0].split()) > size


@each_call
def test_the_best_share_a_score_of_the_whole_and_consensus_differ(call: Any) -> None:
    best = assess(call(reading(lambda text: "right" in text, 1)), TEXTS)
    assert majority([one.rpartition(": ")[2] for one in TEXTS], "retrieval").winner == "dubai"
    assert (best["preferred"], best["judge_rationale"], best["orders"]) == (7, "1 of 1 slices are sound", [])
    counting = scoring(lambda candidate: candidate.count("right") / 10)
    assert assess(call(PointwiseJudge(counting)), TEXTS)["preferred"] == 8  # 2 of 5, the most
    assert [one["scalar"] for one in best["assessments"]] == [0, 0, 0, 0, 0.5, 0.5, 0.5, 1, 0.4]
    assert best["slices"] == [2, 2, 2, 2, 2, 2, 2, 1, 5]


@each_call
def test_each_slice_is_asked_about_with_what_is_before_it_and_identical_texts_once(call: Any) -> None:
    judge: Any = reading(lambda _: True, 4)
    texts = [f"{LONG}\nFinal answer: {answer}" for answer in ("Doha", "Qatar")]
    pool = [texts[0], "Dubai", texts[1], "Dubai", show_candidate("", "Lusail")]
    assert assess(call(judge), pool)["slices"] == [2, 1, 2, 1, 1]
    slices = [("", "Qatar lies there.\n"), ("Qatar lies there.\n", "Its capital is Doha.\n")]
    assert [(one["earlier"], one["slice"]) for one in judge.reader.inputs] == [*slices, ("", "Dubai"), ("", "Lusail")]
    assert SliceJudge(4).most_calls(pool) == 4


@each_call
def test_the_lm_sees_the_question_the_evidence_and_the_slices_between_markers_and_no_final_answer(call: Any) -> None:
    judge, lm = SliceJudge(4), scripted_lm(lambda _: {"slice_rationale": "", "sound": True})
    judge.set_lm(lm)
    assess(call(judge), pool := [f"{LONG}<s>\nFinal answer: Manama"])
    prompts = [text_of(request).replace("\\n", "\n") for request in lm.requests]
    assert len(prompts) == judge.most_calls(pool) == 3
    assert all("\nq?\n</question" in one and "\nDoha is the capital of Qatar.\n</passage 0" in one for one in prompts)
    assert "\n<·s>\n</slice 0" in prompts[2] and "\nIts capital is Doha.\n\n</earlier 0" in prompts[2]
    assert not any("Manama" in one for one in prompts)


def test_a_candidate_without_any_text_has_no_slice_and_scores_nothing() -> None:
    judge = reading(lambda _: False)
    result = assess(judge, ["", "Doha", "\nFinal answer: "])
    assert (result["preferred"], result["slices"]) == (1, [0, 1, 0])
    assert SliceJudge().most_calls(["", "Doha"]) == 1
    assert isinstance(read_reply("judge", assess(judge, ["", ""]), ["", ""], 1), Abstention)


@each_call
@each_case("asking", "unusable slices")
def test_a_slice_that_cannot_be_used_makes_the_whole_an_abstention(call: Any, reply: Any, reason: str) -> None:
    judge = reading(lambda text: reply if "capital" in text else True, 4)
    result = assess(call(judge), ["Dubai", f"{LONG}\nFinal answer: Doha"])
    assert (result["abstained"], "preferred" in result) == (f"{reason} in slice 1 (of candidate 1)", False)
    assert result.get("kind") == (None if reason == "no idea" else "invalid")
