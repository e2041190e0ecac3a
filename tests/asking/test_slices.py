"""A judge slice by slice: how a reasoning is cut, what each call shows, and which candidate has the soundest slices."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges import PointwiseJudge, SliceJudge
from eldgr_dspy.programs.judges.gar import slices_of
from eldgr_dspy.programs.testing import scripted_lm, text_of
from eldgr_dspy.rule.consultations import Abstention, show_candidate
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.rule.voting import majority
from tests.asking.judge_modules import Replies, each_call, judged, scoring


def reading(reply: Callable[[str], Any], size: int = 320) -> SliceJudge:
    """A judge whose reader finds a slice sound as a function says, or returns the fields that it gives."""

    def about(text: str) -> Any:
        result = reply(text)
        return result if isinstance(result, dict) else {"sound": result}

    judge = SliceJudge(size)
    judge.reader = Replies(about, "slice")
    return judge


# -- the cut ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "size", "slices"),
    [
        ("a b\nc\nd e f\n", 3, ["a b\nc\n", "d e f\n"]),  # whole lines, as many as fit
        ("a b\nc\nd e f\n", 2, ["a b\n", "c\n", "d e", " f\n"]),  # a long line between words
        ("a\nb c d\ne", 2, ["a\n", "b c", " d\ne"]),  # what is left of it goes with the next line
        ("a\n\n\nb", 1, ["a\n\n\n", "b"]),  # blank lines stay with the line before
        ("\n\n a ", 1, ["\n\n a "]),  # or with the first
        ("a b", 99, ["a b"]),
        ("", 3, []),
        (" \n\t\n", 3, []),
        ("a\n" + " " * 100_000 + "\nb", 1, ["a\n" + " " * 100_000 + "\n", "b"]),
    ],
)
def test_a_text_is_cut_at_line_ends_where_it_can_be(text: str, size: int, slices: list[str]) -> None:
    assert slices_of(text, size) == slices


texts = st.lists(st.sampled_from(["a", "bb", " ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "\r\n", "é."])).map(
    "".join
)


@given(texts, st.integers(1, 6))
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


# -- the choice -------------------------------------------------------------------------------------------------------

# A word is a slice. Of Doha's candidates half is sound, of Lusail's all; Manama's has most sound words, of many.
POOL = [
    *["wrong wrong\nFinal answer: Dubai"] * 4,
    *[f"right wrong{mark}\nFinal answer: Doha" for mark in ".!?"],
    "right\nFinal answer: Lusail",
    "right right wrong wrong wrong\nFinal answer: Manama",
]


@each_call
def test_the_best_share_a_score_of_the_whole_and_consensus_differ(call: Any) -> None:
    best = judged(call(reading(lambda text: "right" in text, 1)), POOL)
    assert majority([one.rpartition(": ")[2] for one in POOL], "retrieval").winner == "dubai"
    assert best["preferred"] == 7  # 1 of 1
    counting = scoring(lambda candidate: candidate.count("right") / 10)
    assert judged(call(PointwiseJudge(counting)), POOL)["preferred"] == 8  # 2 of 5, the most
    shares = [0, 0, 0, 0, 0.5, 0.5, 0.5, 1, 0.4]
    assert [one["scalar"] for one in best["assessments"]] == shares
    assert best["slices"] == [2, 2, 2, 2, 2, 2, 2, 1, 5]
    assert (best["judge_rationale"], best["orders"]) == ("1 of 1 slices are sound", [])


# -- what is asked ----------------------------------------------------------------------------------------------------

LONG = "Qatar lies there.\nIts capital is Doha.\n"


@each_call
def test_each_slice_is_asked_about_with_what_is_before_it_and_identical_texts_once(call: Any) -> None:
    judge = reading(lambda _: True, 4)
    pool = [
        f"{LONG}\nFinal answer: Doha",
        "Dubai",
        f"{LONG}\nFinal answer: Qatar",
        "Dubai",
        show_candidate("", "Lusail"),
    ]
    result = judged(call(judge), pool)
    shown = [("", "Qatar lies there.\n"), ("Qatar lies there.\n", "Its capital is Doha.\n")]
    reader: Any = judge.reader
    assert [(one["earlier"], one["slice"]) for one in reader.inputs] == [*shown, ("", "Dubai"), ("", "Lusail")]
    assert SliceJudge(4).most_calls(pool) == 4
    assert result["slices"] == [2, 1, 2, 1, 1]


@each_call
def test_the_lm_sees_the_question_the_evidence_and_the_slices_between_markers_and_no_final_answer(call: Any) -> None:
    judge, lm = SliceJudge(4), scripted_lm(lambda _: {"slice_rationale": "", "sound": True})
    judge.set_lm(lm)
    judged(call(judge), [f"{LONG}<s>\nFinal answer: Manama"])
    asked = [text_of(request).replace("\\n", "\n") for request in lm.requests]
    assert len(asked) == judge.most_calls([f"{LONG}<s>\nFinal answer: Manama"]) == 3
    assert all("\nq?\n</question" in one and "\nDoha is the capital of Qatar.\n</passage 0" in one for one in asked)
    assert "\n<·s>\n</slice 0" in asked[2] and "\nIts capital is Doha.\n\n</earlier 0" in asked[2]
    assert not any("Manama" in one for one in asked)


def test_a_candidate_without_any_text_has_no_slice_and_scores_nothing() -> None:
    judge = reading(lambda _: False)
    result = judged(judge, ["", "Doha", "\nFinal answer: "])
    assert (result["preferred"], result["slices"]) == (1, [0, 1, 0])
    assert SliceJudge().most_calls(["", "Doha"]) == 1
    assert isinstance(read_reply("judge", judged(judge, ["", ""]), ["", ""], 1), Abstention)


# -- what cannot be used ----------------------------------------------------------------------------------------------
@each_call
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"abstained": "no idea"}, "no idea"),
        ({"sound": 1}, "sound=1 is not true or false"),
        ({"sound": "true"}, "sound='true' is not true or false"),
        ({"slice_rationale": "sound"}, "sound=None is not true or false"),
    ],
)
def test_a_slice_that_cannot_be_used_makes_the_whole_an_abstention(call: Any, reply: Any, reason: str) -> None:
    judge = reading(lambda text: reply if "capital" in text else True, 4)
    result = judged(call(judge), ["Dubai", f"{LONG}\nFinal answer: Doha"])
    assert result["abstained"] == f"{reason} in slice 1 (of candidate 1)"
    assert "preferred" not in result
    assert result.get("kind") == (None if reason == "no idea" else "invalid")


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "3", None])
def test_a_size_that_is_not_a_whole_number_from_one_is_refused(size: Any) -> None:
    with pytest.raises(ArgumentError, match=r"size must be a whole number of at least 1; got .*\. Give 320"):
        SliceJudge(size)
