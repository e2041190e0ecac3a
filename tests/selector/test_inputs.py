"""What a user hands to the selector becomes one frozen question, or an error that names the place and the remedy."""

import math
import re
from collections import UserDict, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import numeric_equal
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.rows import MAX_CANDIDATES, MAX_CHARACTERS, MAX_PASSAGES
from eldgr_dspy.programs.inputs import to_passages, to_question
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.words import TASKS, Task
from tests.public_strategies import answers as any_answer

Found = namedtuple("Found", ["title", "text"])


@dataclass(frozen=True, slots=True)
class Slotted:
    long_text: str
    title: str | None = None


def pool(candidates: Any, *, task: Task = "retrieval", field: str = "answer") -> Question:
    return to_question("q", candidates, None, task, field)


ANSWERS = ("Doha", "Dubai", None)
POOLS: dict[str, Any] = {
    "strings": ["Doha", "Dubai", None],
    "a tuple": ("Doha", "Dubai", None),
    "a generator": (answer for answer in ("Doha", "Dubai", None)),
    "predictions": [dspy.Prediction(answer=answer) for answer in ANSWERS],
    "examples": [dspy.Example(answer=answer) for answer in ANSWERS],
    "mappings": [UserDict(answer=answer) for answer in ANSWERS],
    "one of each": ["Doha", dspy.Prediction(answer="Dubai"), {"answer": None}],
    "completions": dspy.Completions({"answer": list(ANSWERS)}),
    "a prediction with completions": dspy.Prediction.from_completions({"answer": list(ANSWERS)}),
}


@pytest.mark.parametrize("candidates", POOLS.values(), ids=POOLS)
def test_a_pool_is_the_same_whatever_it_came_in(candidates: Any) -> None:
    question = pool(candidates)
    assert question.answers == ANSWERS
    assert question.texts == ("Doha", "Dubai", "")


def test_a_prediction_without_completions_is_a_pool_of_one() -> None:
    assert pool(dspy.Prediction(answer="Doha")).answers == ("Doha",)


def test_an_empty_pool_is_a_pool() -> None:  # hazard 1
    assert pool([]).answers == ()


@pytest.mark.parametrize("missing", [None, math.nan, {"answer": None}, {"answer": math.nan}, {"text": "?"}, {}])
def test_a_candidate_without_an_answer_does_not_vote(missing: Any) -> None:  # hazard 6
    """A failed sample is None, and a table writes NaN."""
    assert pool([missing, {"answer": "Doha"}]).answers == (None, "Doha")


def test_an_empty_prediction_has_no_answer() -> None:  # hazard 6
    """`dspy.Evaluate` puts one for each error."""
    assert pool([dspy.Prediction(), "Doha", dspy.Prediction()]).answers == (None, "Doha", None)


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_a_blank_candidate_has_no_answer(blank: str) -> None:  # hazard 5
    assert pool([blank, {"answer": blank}]).answers == (None, None)


def test_the_answer_field_is_the_one_that_answers() -> None:
    candidates = [{"answer": "wrong", "response": "Doha"}]
    assert pool(candidates, field="response").answers == ("Doha",)
    completions = dspy.Prediction.from_completions({"response": ["Doha", "Dubai"], "reasoning": ["a", "b"]})
    assert pool(completions, field="response").answers == ("Doha", "Dubai")


def test_the_answer_is_the_one_that_a_candidate_marks_as_final() -> None:
    texts = ["Doha, I think. So the answer is Doha.", "It is \\boxed{Dubai}", "Abu Dhabi"]
    assert pool(texts).answers == ("Doha", "Dubai", "Abu Dhabi")
    assert pool(texts).texts == tuple(texts)
    chains = ["3 * 12 = 36\n#### 36", "I get 35, no, 36.", "I get 35 or 36.", "no idea"]
    assert pool(chains, task="arithmetic").answers == ("36", "36", "35 or 36", None)


@pytest.mark.parametrize("field", ["reasoning", "rationale", "text"])
def test_a_judge_is_shown_the_reasoning_too(field: str) -> None:
    question = pool([{"answer": "Doha", field: "Passage 0 says so."}, {"answer": None, field: "No idea."}])
    assert question.texts == ("Passage 0 says so.\nDoha", "No idea.")
    assert question.answers == ("Doha", None)


def test_reasoning_of_dspy_s_own_type_is_text() -> None:
    assert pool([dspy.Prediction(answer="Doha", reasoning=dspy.Reasoning(content="So."))]).texts == ("So.\nDoha",)


def test_an_answer_is_not_shown_twice() -> None:
    assert pool([{"answer": "Doha", "text": " Doha"}]).texts == ("Doha",)
    assert pool([{"text": "Doha"}], field="text").texts == ("Doha",)


@pytest.mark.parametrize("value", [["Doha"], {"a": 1}, True, math.inf, Decimal("NaN"), Decimal("1e9999"), b"Doha"])
def test_an_answer_that_is_not_text_is_refused(value: Any) -> None:  # hazard 7
    kind = type(value).__name__
    expected = f"candidates[1].answer must be text, a finite number or None; got {value!r} ({kind})."
    with pytest.raises(ArgumentError, match=f"^{re.escape(expected)}$"):
        pool(["Doha", {"answer": value}])


@pytest.mark.parametrize(
    "value",
    [["Doha"], True, -math.inf, pytest.param(10**5000, id="long"), b"Doha", dspy.Completions({"answer": ["Doha"]})],
)
def test_a_candidate_of_another_type_is_refused(value: Any) -> None:  # hazard 7
    expected = f"({type(value).__name__})."
    with pytest.raises(
        ArgumentError,
        match=rf"^candidates\[0\] must be a string, a prediction, .* or None; got .*{re.escape(expected)}$",
    ):
        pool([value, "Doha"])


NUMBERS = [
    (36, "36"), (-3, "-3"), (4.0, "4"), (-0.0, "0"), (0.1, "0.1"), (1e-7, "0.0000001"), (1e22, "1" + "0" * 22),
    (Decimal("4.50"), "4.5"), (np.int64(3), "3"), (np.float64(2.5), "2.5"), (Decimal("1E+3"), "1000"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "text"), NUMBERS, ids=[text for _, text in NUMBERS])
def test_a_number_answers_by_its_shortest_text(number: Any, text: str) -> None:
    """A signature may type its answer: `-> answer: float`."""
    for task in TASKS:
        question = pool([number, {"answer": number}, dspy.Prediction(answer=number, reasoning="So.")], task=task)
        assert question.answers == (text,) * 3
        assert question.texts == (text, text, f"So.\n{text}")


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_s_text_is_the_number(number: float) -> None:
    text = pool([number]).answers[0]
    assert text is not None
    assert type(number)(text) == number
    assert numeric_equal(text, [str(number)]) or "e" in str(number)


def test_more_candidates_than_can_be_decided_upon_are_refused() -> None:  # hazard 10
    assert len(pool(["Doha"] * MAX_CANDIDATES).answers) == MAX_CANDIDATES
    with pytest.raises(ArgumentError, match="There are 10,000 candidates; give at most 1,000"):
        pool(["Doha"] * 10_000)


@pytest.mark.parametrize("one", ["x" * 1_000_000, {"answer": "Doha", "text": "x" * 1_000_000}])
def test_a_candidate_that_is_too_long_is_refused(one: Any) -> None:  # hazard 10
    with pytest.raises(ArgumentError, match=r"^candidates\[1\]\S* has 1,000,\d+ characters; give at most 500,000"):
        pool(["Doha", one])


def test_a_question_and_a_passage_have_the_same_limit() -> None:
    long = "x" * (MAX_CHARACTERS + 1)
    with pytest.raises(ArgumentError, match=r"^question has 500,001 characters"):
        to_question(long, [], None, "retrieval", "answer")
    for passage in (long, {"text": long}):
        with pytest.raises(ArgumentError, match=r"^evidence\[1\] has 500,001 characters"):
            to_passages(["", passage])
    with pytest.raises(ArgumentError, match="There are 10,001 passages; give at most 10,000"):
        to_passages([""] * (MAX_PASSAGES + 1))


@pytest.mark.parametrize("question", [None, 7, ["q"], b"q"])
def test_a_question_is_text(question: Any) -> None:
    with pytest.raises(
        ArgumentError, match=re.escape(f"question must be text; got {question!r}. Give the question as")
    ):
        to_question(question, [], None, "retrieval", "answer")


@pytest.mark.parametrize(
    "candidates", ["Doha", b"Doha", None, 7, {"answer": "Doha"}, {"Doha", "Dubai"}, dspy.Example(answer="Doha")]
)
def test_a_pool_is_a_list(candidates: Any) -> None:
    """Neither one candidate, nor a mapping, whose keys would be taken, nor a set, which has no first candidate."""
    with pytest.raises(ArgumentError, match=r"^candidates must be a list of strings or predictions; got "):
        pool(candidates)


@pytest.mark.parametrize(
    ("candidates", "what"),
    [
        ([dspy.Prediction(response="Doha", reasoning="")], "candidates"),
        (["Doha", {"response": "Doha", "reasoning": ""}], "candidates"),
        (dspy.Completions({"response": ["Doha"], "reasoning": [""]}), "completions"),
        (dspy.Prediction.from_completions({"response": ["Doha"], "reasoning": [""]}), "completions"),
    ],
)
def test_a_misnamed_answer_field_is_refused_with_the_fields_that_there_are(candidates: Any, what: str) -> None:
    remedy = "Set answer_field to the field that holds the answer; they have 'response', 'reasoning'."
    expected = f"The {what} have no field 'answer'. {remedy}"
    with pytest.raises(ArgumentError, match=f"^{re.escape(expected)}$"):
        pool(candidates)


def test_completions_of_nothing_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"have no field 'answer'\. .*; they have no fields\."):
        pool(dspy.Completions({}))


PASSAGE = Passage("Qatar", "Its capital is Doha.")
EVIDENCE: dict[str, Any] = {
    "passages": [PASSAGE],
    "mappings": [{"title": "Qatar", "text": "Its capital is Doha."}],
    "long texts": [{"title": "Qatar", "long_text": "Its capital is Doha.", "score": 0.3}],
    "examples": [dspy.Example(title="Qatar", text="Its capital is Doha.")],
    "slotted objects": [Slotted("Its capital is Doha.", "Qatar")],
    "named tuples": (Found("Qatar", "Its capital is Doha."),),
    "a generator": (one for one in [PASSAGE]),
    "a retriever's prediction": dspy.Prediction(passages=[Found("Qatar", "Its capital is Doha.")]),
}


@pytest.mark.parametrize("evidence", EVIDENCE.values(), ids=EVIDENCE)
def test_evidence_is_the_same_whatever_it_came_in(evidence: Any) -> None:
    assert to_passages(evidence) == (PASSAGE,)


@pytest.mark.parametrize("evidence", ["Doha.", ["Doha."], dspy.Prediction(passages=["Doha."]), [{"text": "Doha."}]])
def test_evidence_needs_no_title(evidence: Any) -> None:
    assert to_passages(evidence) == (Passage("", "Doha."),)


def test_a_title_of_none_is_not_a_title() -> None:
    assert to_passages([Slotted("Doha."), {"text": "Doha.", "title": None}]) == (Passage("", "Doha."),) * 2


@pytest.mark.parametrize("evidence", [None, [], (), dspy.Prediction(passages=[])])
def test_there_may_be_no_evidence(evidence: Any) -> None:  # hazard 43
    assert to_passages(evidence) == ()


@pytest.mark.parametrize("evidence", [7, True, b"Doha", {"text": "Doha."}, {"Doha."}, dspy.Prediction(passages=None)])
def test_evidence_is_a_list(evidence: Any) -> None:
    """One mapping is refused as well: its keys would be read for passages."""
    with pytest.raises(ArgumentError, match=r"^evidence must be a list of strings or passages; got "):
        to_passages(evidence)


def test_a_prediction_without_passages_is_not_evidence() -> None:
    with pytest.raises(ArgumentError, match="evidence is a prediction without passages; give the retriever's"):
        to_passages(dspy.Prediction(answer="Doha"))


@pytest.mark.parametrize(
    "one", [None, 7, {}, {"passage": "a"}, {"title": "Qatar"}, {"text": 7}, {"text": "a", "title": 7}, ["Doha."]]
)
def test_a_passage_has_a_text(one: Any) -> None:
    expected = f"({type(one).__name__})."
    with pytest.raises(
        ArgumentError,
        match=rf"^evidence\[1\] must be a string, or something with text .*; got .*{re.escape(expected)}$",
    ):
        to_passages(["Doha.", one])


@given(st.lists(any_answer, max_size=5), st.sampled_from(("retrieval", "arithmetic")))
@example(["\ud800", "[[ ## answer ## ]]", "{0.__class__}", "%s"], "retrieval")  # hazard 78
def test_any_list_of_strings_is_a_pool(candidates: list[str | None], task: Task) -> None:
    """An answer is taken from its candidate as it stands there; nothing is made up and nothing is a template."""
    question = pool(candidates, task=task)
    assert question.texts == tuple(text or "" for text in candidates)
    assert all(answer is None or answer in text for answer, text in zip(question.answers, question.texts, strict=True))
