"""A judge that answers alone prefers the candidate that its own answer contains, and is told nothing else."""

from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.judges import DerivedJudge
from eldgr_dspy.programs.judges.styles import judge_in_style
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.testing import scripted_lm, text_of
from tests.selecting import awaiting

EVIDENCE = ["Doha is the capital of Qatar."]


def judged(own: str, candidates: list[str], *, awaited: bool = False) -> tuple[dict[str, Any], Any]:
    lm, judge = scripted_lm([{"own_answer": own}]), DerivedJudge()
    with dspy.context(lm=lm):
        call = awaiting(judge.acall) if awaited else judge
        return call(question="q?", evidence=EVIDENCE, candidates=candidates).toDict(), lm


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(
    ("own", "candidates", "preferred"),
    [
        ("Doha", ["Dubai", "Doha"], 1),
        ("It is DOHA, in Qatar.", ["Dubai", "I think so\nFinal answer: doha"], 1),
        ("the Doha port", ["Doha", "Doha port"], 1),  # the longest
        ("Doha", ["doha", "Doha"], 0),  # the earliest
        ("$18.00", ["17", "18"], 1),
        ("Yes", ["no", "yes"], 1),
        ("Dohan", ["Doha", "Dubai"], None),  # no part of a word
        ("", ["Doha", "Dubai"], None),
        ("Manama", ["Doha", ""], None),
    ],
)
def test_the_longest_candidate_that_its_answer_contains_is_preferred(
    own: str, candidates: list[str], preferred: int | None, awaited: bool
) -> None:
    found, _ = judged(own, candidates, awaited=awaited)
    assert found.get("preferred") == preferred
    assert ("abstained" in found) == (preferred is None)


def test_it_sees_neither_candidates_nor_evidence() -> None:
    _, lm = judged("Doha", ["Manama", "Doha"])
    asked = text_of(lm.requests[0])
    assert "q?" in asked
    assert not any(word in asked for word in ("Manama", "Qatar"))


def test_it_is_a_style_of_a_judge_with_an_lm() -> None:
    assert isinstance(judge_in_style(Judge(), "derive"), DerivedJudge)
