"""Judges that ask several times: what survives the order, who wins a knockout, and which score is the highest."""

import math
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.programs.judges import PairwiseJudge, Panel, PointwiseJudge, SliceJudge, SwapConsistent
from eldgr_dspy.programs.judges.frames import answers_of, classes_of
from eldgr_dspy.programs.judges.repeated_judges import orders_of
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.testing import scripted_lm, text_of
from eldgr_dspy.rule.consultations import Abstention, Verdict
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.rule.voting import majority
from eldgr_dspy.words import TASKS
from tests.asking.judge_modules import EVIDENCE, Replies, assess, each_call, scoring
from tests.case_tables import each_case
from tests.selecting import verdict

POOL = ["Dubai", "Manama", "Doha"]
BEATS = {("Doha", "Dubai"), ("Dubai", "Manama"), ("Manama", "Doha")}  # no answer is the best of all
FINAL_LINES = ("Doha", "I say Doha.\nFinal answer: Doha", "Final answer: Doha", "x\nFinal answer: Doha\n")
FORMS = ["18", "18.0", "18.00", "20", "20"]


def preferring(*texts: str) -> Replies:
    """A judge to whom the first of these texts that it is shown is the best, wherever it stands."""
    return Replies(lambda pool: {"preferred": min(range(len(pool)), key=lambda at: texts.index(pool[at]))})


def prefer_first(**fields: Any) -> Replies:
    return Replies(lambda pool: {"preferred": 0, **fields})


@each_call
def test_a_preference_is_passed_on_by_pool_index_only_if_it_survives_the_order(call: Any) -> None:  # hazard 65
    inner = preferring("Doha", "Dubai", "Manama")
    result = assess(call(SwapConsistent(inner)), POOL)
    assert (inner.values, result["preferred"]) == ([POOL, POOL[::-1]], 2)
    assert [(one["order"], one["preferred"]) for one in result["orders"]] == [([0, 1, 2], 2), ([2, 1, 0], 2)]
    result = assess(call(SwapConsistent(prefer_first())), POOL)
    assert result["abstained"] == "inconsistent: the orders prefer candidates 0, 2" and "preferred" not in result
    assert [one["preferred"] for one in result["orders"]] == [0, 2]
    assert isinstance(read_reply("judge", result, POOL, 1), Abstention)


@each_case("asking", "preferences by answer")
def test_preferences_are_compared_by_answer(candidates: list[str], consistent: bool | None) -> None:  # hazard 12
    result = assess(SwapConsistent(prefer_first()), candidates)
    if consistent is None:
        assert result["abstained"].startswith("preferred=0 is a candidate without an answer")
    else:
        assert (result.get("preferred"), "abstained" in result) == ((0, False) if consistent else (None, True))


def test_scores_are_means_over_the_orders() -> None:
    scores = [{"scalar": 0.2, "fact": 1.0}, {"scalar": 0.4, "fact": 0.0}]
    back = [{"scalar": 0.0, "fact": 0.5}, {"scalar": 0.6, "fact": None}]
    replies = iter([{"preferred": 0, "assessments": scores}, {"preferred": 1, "assessments": back}])
    result = assess(SwapConsistent(Replies(lambda _: next(replies))), ["Doha", "Dubai"])
    assert result["assessments"] == [{"scalar": pytest.approx(0.4)}, {"scalar": pytest.approx(0.2)}]
    assert isinstance(read_reply("judge", result, ["Doha", "Dubai"], 1), Verdict)


@pytest.mark.parametrize("preferred", [-1, 3, 1.0, True, None, "0", math.nan])  # hazard 59
def test_an_order_without_a_verdict_makes_the_whole_an_abstention(preferred: Any) -> None:
    inner = Replies(lambda pool: {"preferred": 0 if pool[0] == "Dubai" else preferred})
    result = assess(SwapConsistent(inner), POOL)
    assert result["abstained"].startswith(("preferred=", "unreadable: preferred holds the number nan"))
    assert result["abstained"].endswith("(in order 2 of 2)")
    assert [one["preferred"] for one in result["orders"]] == [0, None]


@given(st.lists(st.sampled_from("abcd"), max_size=6), st.integers(2, 14))
def test_no_two_orders_show_the_same(candidates: list[str], most: int) -> None:
    orders = orders_of(candidates, most)
    assert all(sorted(order) == list(range(len(candidates))) for order in orders)
    assert len({tuple(candidates[index] for index in order) for order in orders}) == len(orders) <= most
    assert orders[:1] == [tuple(range(len(candidates)))] * bool(candidates)
    if len(set(candidates)) > 1:  # a pool that reads the same from behind is turned instead
        assert len(orders) >= 2


def test_six_orders_of_three_are_all_and_each_candidate_stands_in_each_place_equally_often() -> None:
    orders = orders_of(POOL, 9)
    assert orders[:2] == [(0, 1, 2), (2, 1, 0)]
    assert len(set(orders)) == len(orders) == 6
    for n in (3, 5, 8):
        lists = orders_of([*map(str, range(n))], 2 * n)
        assert [sorted(order[place] for order in lists) for place in range(n)] == [sorted([*range(n)] * 2)] * n


@pytest.mark.parametrize("judge", [SwapConsistent, PairwiseJudge, PointwiseJudge, lambda one: Panel([one])])
def test_an_empty_pool_is_an_abstention_and_nobody_is_asked(judge: Any) -> None:  # hazard 1
    inner = prefer_first()
    result = assess(judge(inner), [])
    assert (result["abstained"], result["orders"], inner.values) == ("there is no candidate to judge", [], [])
    assert judge(inner).most_calls([]) == 0


@each_call
@given(order=st.permutations(["a1", "b2", "c3", "d4", "e5"]))
def test_the_best_wins_the_knockout_in_any_order_of_the_pool(call: Any, order: list[str]) -> None:
    inner = preferring("c3", "a1", "e5", "d4", "b2")
    result = assess(call(PairwiseJudge(inner)), order)
    assert order[result["preferred"]] == "c3"
    assert len(result["orders"]) == 4 and [*map(len, inner.values)] == [2] * 4  # one less than there are answers
    # Even a judge that goes by place alone is not swayed by the pool's order.
    winners = {pool[assess(call(PairwiseJudge(prefer_first())), pool)["preferred"]] for pool in (sorted(order), order)}
    assert len(winners) == 1


def in_a_circle() -> Replies:
    return Replies(lambda pool: {"preferred": 0 if tuple(pool) in BEATS else 1})


@each_call
@given(order=st.permutations(POOL), number=st.integers(0, 20))
def test_in_a_circle_who_enters_last_wins_by_the_texts_alone(call: Any, order: list[str], number: int) -> None:
    inputs = {"question": f"{number}?", "evidence": EVIDENCE}
    inner = in_a_circle()
    result = call(PairwiseJudge(inner))(candidates=order, **inputs).toDict()
    (first, second), final = inner.values[0], inner.values[1]
    through, beaten = (first, second) if (first, second) in BEATS else (second, first)
    winner = order[result["preferred"]]
    assert len(inner.values) == len(result["orders"]) == 2  # one less than there are answers
    assert {winner, through} == set(final) and (winner, through) in BEATS and (through, beaten) in BEATS
    assert order[::-1][PairwiseJudge(in_a_circle())(candidates=order[::-1], **inputs).toDict()["preferred"]] == winner


def test_in_a_circle_of_preferences_each_answer_wins_for_some_question() -> None:
    inputs = [{"question": f"{number}?", "evidence": EVIDENCE, "candidates": POOL} for number in range(21)]
    assert {PairwiseJudge(in_a_circle())(**one).preferred for one in inputs} == {0, 1, 2}


@pytest.mark.parametrize("text", FINAL_LINES)
def test_a_candidate_without_an_answer_stands_for_none_whatever_its_text_says(text: str) -> None:
    """What is asked is what the question's inputs show: no comparison with it, no agreement with another."""
    question = Question("Q", "retrieval", (None, "Dubai", "Lusail"), (text, "Dubai", "Lusail"))
    pool: Any = question.role_inputs("judge")["candidates"]
    assert answers_of(pool) == ["", "Dubai", "Lusail"]
    pairwise = PairwiseJudge()
    pairwise.set_lm(lm := scripted_lm(lambda _: {"comparison_rationale": "", "better": 0}))
    assert pairwise(question="Q", evidence=[], candidates=pool).preferred in (1, 2)
    assert len(lm.requests) == 1
    swap = SwapConsistent(Judge())
    swap.set_lm(scripted_lm([verdict(0, 3), verdict(2, 3)]))  # the reverse: both prefer it
    reply = swap(question="Q", evidence=[], candidates=pool)
    assert reply.abstained == "preferred=0 is a candidate without an answer (in order 1 of 2)"


def test_of_one_answer_there_is_nothing_to_ask_and_an_undecided_final_is_an_abstention() -> None:
    result = assess(PairwiseJudge(inner := prefer_first()), ["Doha", "doha"])
    assert (result["preferred"] in (0, 1), result["orders"], inner.values) == (True, [], [])
    result = assess(PairwiseJudge(SwapConsistent(prefer_first())), ["Dubai", "Doha"])
    assert result["abstained"].startswith("the final is undecided: inconsistent")
    assert sorted(tuple(one["order"]) for one in result["orders"]) == [(0, 1), (1, 0)]
    assert all(one["preferred"] == one["order"][0] for one in result["orders"])


@each_call
def test_after_an_undecided_comparison_the_answer_with_more_votes_advances(call: Any) -> None:
    """Four answers, two rounds: only comparisons with the answer of three votes are undecided in the first."""
    candidates = ["popular", "popular", "popular", "b2", "c3", "d4"]
    final = [False]

    def reply(pool: list[str]) -> dict[str, Any]:
        if "popular" in pool and not final[0]:
            final[0] = True
            return {"abstained": "no idea"}
        return {"preferred": pool.index("popular") if "popular" in pool else 0}

    result = assess(call(PairwiseJudge(Replies(reply))), candidates)
    assert candidates[result["preferred"]] == "popular"
    assert [one["abstained"] for one in result["orders"] if one["preferred"] is None] == ["no idea"]


@each_call
def test_the_highest_score_is_preferred_and_identical_texts_are_asked_once(call: Any) -> None:  # hazard 11
    inner = scoring({"Dubai": 0.3, "Doha": 0.8}.__getitem__)
    result = assess(call(PointwiseJudge(inner)), ["Dubai", "Doha", "Dubai", "Doha"])
    assert (sorted(inner.values), result["preferred"], result["orders"]) == (["Doha", "Dubai"], 1, [])
    assert [one["scalar"] for one in result["assessments"]] == [0.3, 0.8, 0.3, 0.8]


@each_case("asking", "equal scores")
def test_of_equal_scores_the_answer_with_more_votes_is_preferred_then_the_earliest(  # hazard 68
    candidates: list[str], scores: tuple[float, ...], preferred: int
) -> None:
    inner = scoring(dict(zip(candidates, scores, strict=True)).__getitem__)
    assert assess(PointwiseJudge(inner), candidates)["preferred"] == preferred


@pytest.mark.parametrize("answers", [FORMS, ["Doha", "doha.", "20"], ["5%", "5 %", "5"], ["The 18", "18.0", "18", "9"]])
def test_a_knockout_compares_no_answers_that_vote_together_in_either_task(answers: list[str]) -> None:
    result = assess(PairwiseJudge(inner := preferring(*answers)), answers)
    assert len(result["orders"]) == len(inner.values) == PairwiseJudge().most_calls(answers) == 1


def test_a_knockout_counts_each_comparison_as_the_longest_there_could_be() -> None:
    pool = ["Doha", "one two three\nFinal answer: Dubai", "one two\nFinal answer: Manama", "one two\nFinal answer: "]
    judge = PairwiseJudge(SliceJudge(1))
    assert judge.most_calls(pool) == 2 * (3 + 2)  # who has no answer is not compared
    assert judge.most_calls(["Doha", "doha"]) == judge.most_calls([]) == 0
    assert PairwiseJudge(prefer_first()).most_calls(pool) is None


@given(st.lists(st.sampled_from(["18", "18.0", "The 18", "$18", "20", "20%", "20 %", "Doha", "doha.", "", "-"])))
def test_classes_join_exactly_what_votes_together_in_a_task_or_by_way_of_others(answers: list[str]) -> None:
    classes = classes_of(answers)
    votes = [majority(answers, task).classes for task in TASKS]
    places = range(len(answers))
    beside = [
        {other for other in places if other == at or any(of[at] is not None and of[at] == of[other] for of in votes)}
        for at in places
    ]
    groups = [{at} for at in places]
    for _ in answers:  # as long as any step could add one
        groups = [set().union(*(beside[at] for at in one)) for one in groups]
    assert classes == [None if votes[0][index] is None else min(one) for index, one in enumerate(groups)]


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 150, "90%", None, True, {"abstained": "no idea"}])  # hazard 66
def test_a_candidate_without_a_score_makes_the_whole_an_abstention(wrong: Any) -> None:
    result = assess(PointwiseJudge(scoring({"Dubai": 0.3, "Manama": wrong, "Doha": 0.8}.__getitem__)), POOL)
    assert result["abstained"].endswith("(of candidate 1)") and "preferred" not in result


def test_an_assessment_goes_to_the_lm_alone_and_fenced() -> None:
    replies = [{"candidate_rationale": text, "assessment": [*[5] * 7, scalar]} for text, scalar in (("a", 1), ("b", 7))]
    with dspy.context(lm=(lm := scripted_lm(replies))):
        result = assess(PointwiseJudge(), ["Dubai", "Doha"])
    assert (result["preferred"], result["judge_rationale"]) == (1, "b")
    assert "Doha" in text_of(lm.requests[1]) and "Dubai" not in text_of(lm.requests[1])
