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
from tests.refusing import refused

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


MISSING: tuple[Any, ...] = (
    None,
    math.nan,
    {"answer": None},
    {"answer": math.nan},
    {"text": "?"},
    {},
    dspy.Prediction(),
)
SO = dspy.Reasoning(content="So.")
ONE: dict[str, tuple[Any, Any, Any]] = {
    "a prediction without completions": (dspy.Prediction(answer="Doha"), "Doha", "Doha"),
    "reasoning": ([{"answer": "Doha", "reasoning": "It says so."}], "Doha", "It says so.\nDoha"),
    "a rationale": ([{"answer": "Doha", "rationale": "It says so."}], "Doha", "It says so.\nDoha"),
    "a text": ([{"answer": "Doha", "text": "It says so."}], "Doha", "It says so.\nDoha"),
    "a text without an answer": ([{"answer": None, "text": "No idea."}], None, "No idea."),
    "reasoning of DSPy's own type": ([dspy.Prediction(answer="Doha", reasoning=SO)], "Doha", "So.\nDoha"),
    "the answer as text": ([{"answer": "Doha", "text": " Doha"}], "Doha", "Doha"),
    "nothing": ([""], None, ""),  # hazard 5
    "blank": ([{"answer": " \n"}], None, " \n"),  # hazard 5
}


@pytest.mark.parametrize(("candidates", "answer", "text"), ONE.values(), ids=ONE)
def test_a_candidate_has_its_answer_and_what_a_judge_is_shown(candidates: Any, answer: Any, text: str) -> None:
    question = pool(candidates)
    assert (question.answers, question.texts) == ((answer,), (text,))


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_candidate_without_an_answer_does_not_vote(missing: Any) -> None:  # hazard 6
    """A failed sample is None, a table writes NaN, and `dspy.Evaluate` puts an empty prediction for each error."""
    assert pool([missing, {"answer": "Doha"}]).answers == (None, "Doha")


def test_the_answer_field_is_the_one_that_answers() -> None:
    assert pool([{"answer": "wrong", "response": "Doha"}], field="response").answers == ("Doha",)
    assert pool([{"text": "Doha"}], field="text").texts == ("Doha",)
    completions = dspy.Prediction.from_completions({"response": ["Doha", "Dubai"], "reasoning": ["a", "b"]})
    assert pool(completions, field="response").answers == ("Doha", "Dubai")


def test_the_answer_is_the_one_that_a_candidate_marks_as_final() -> None:
    texts = ["Doha, I think. So the answer is Doha.", "It is \\boxed{Dubai}", "Abu Dhabi"]
    assert pool(texts).answers == ("Doha", "Dubai", "Abu Dhabi")
    assert pool(texts).texts == tuple(texts)
    chains = ["3 * 12 = 36\n#### 36", "I get 35, no, 36.", "I get 35 or 36.", "no idea"]
    assert pool(chains, task="arithmetic").answers == ("36", "36", "35 or 36", None)


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


@pytest.mark.parametrize("n", [0, MAX_CANDIDATES])
def test_a_pool_may_be_empty_and_as_large_as_the_limit(n: int) -> None:  # hazard 1
    assert pool(["Doha"] * n).answers == ("Doha",) * n


LISTED = "candidates must be a list of strings or predictions; got "
ODD_FIELDS = "Set answer_field to the field that holds the answer; they have 'response', 'reasoning'."
RESPONSE = {"response": ["Doha"], "reasoning": [""]}
LONG = "x" * 1_000_000
NO_ANSWERS = [["Doha"], {"a": 1}, True, math.inf, Decimal("NaN"), Decimal("1e9999"), b"Doha"]
NO_CANDIDATES = [["Doha"], True, -math.inf, 10**5000, b"Doha", dspy.Completions({"answer": ["Doha"]})]
NO_POOLS = ["Doha", b"Doha", None, 7, {"answer": "Doha"}, {"Doha", "Dubai"}, dspy.Example(answer="Doha")]
REFUSED: list[tuple[Any, str]] = [
    # hazard 7
    *(
        (
            ["Doha", {"answer": value}],
            f"candidates[1].answer must be text, a finite number or None; got {value!r} ({kind}).",
        )
        for value in NO_ANSWERS
        for kind in [type(value).__name__]
    ),
    *(
        ([value, "Doha"], "candidates[0] must be a string, a prediction, a finite number or None; got ")
        for value in NO_CANDIDATES
    ),
    # hazard 10
    (["Doha"] * 10_000, "There are 10,000 candidates; give at most 1,000"),
    (["Doha", LONG], "candidates[1] has 1,000,000 characters; give at most 500,000"),
    (["Doha", {"answer": "Doha", "text": LONG}], "candidates[1].answer has 1,000,005 characters; give at most 500,000"),
    # Neither one candidate, nor a mapping, whose keys would be taken, nor a set, which has no first candidate.
    *((value, LISTED) for value in NO_POOLS),
    *(
        (candidates, f"The {what} have no field 'answer'. {ODD_FIELDS}")
        for candidates, what in (
            ([dspy.Prediction(response="Doha", reasoning="")], "candidates"),
            (["Doha", {"response": "Doha", "reasoning": ""}], "candidates"),
            (dspy.Completions(RESPONSE), "completions"),
            (dspy.Prediction.from_completions(RESPONSE), "completions"),
        )
    ),
    (
        dspy.Completions({}),
        "The completions have no field 'answer'. Set answer_field to the field that holds the answer; "
        "they have no fields.",
    ),
]


@pytest.mark.parametrize(("candidates", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_a_pool_that_cannot_be_used_is_refused_in_a_sentence(candidates: Any, sentence: str) -> None:
    message = refused(lambda: pool(candidates))
    assert message.startswith(sentence)
    if "[0] must be" in sentence:
        assert message.endswith(f"({type(candidates[0]).__name__}).")


@pytest.mark.parametrize("question", [None, 7, ["q"], b"q", "x" * (MAX_CHARACTERS + 1)], ids=lambda one: repr(one)[:9])
def test_a_question_is_text_of_a_limited_length(question: Any) -> None:
    expected = f"question must be text; got {question!r}. Give the question as"
    if isinstance(question, str):
        expected = "question has 500,001 characters"
    with pytest.raises(ArgumentError, match=f"^{re.escape(expected)}"):
        to_question(question, [], None, "retrieval", "answer")


# -- evidence ---------------------------------------------------------------------------------------------------------

PASSAGE, BARE = Passage("Qatar", "Its capital is Doha."), Passage("", "Doha.")
EVIDENCE: dict[str, tuple[Any, tuple[Passage, ...]]] = {
    "passages": ([PASSAGE], (PASSAGE,)),
    "mappings": ([{"title": "Qatar", "text": "Its capital is Doha."}], (PASSAGE,)),
    "long texts": ([{"title": "Qatar", "long_text": "Its capital is Doha.", "score": 0.3}], (PASSAGE,)),
    "examples": ([dspy.Example(title="Qatar", text="Its capital is Doha.")], (PASSAGE,)),
    "slotted objects": ([Slotted("Its capital is Doha.", "Qatar")], (PASSAGE,)),
    "named tuples": ((Found("Qatar", "Its capital is Doha."),), (PASSAGE,)),
    "a generator": ((one for one in [PASSAGE]), (PASSAGE,)),
    "a retriever's prediction": (dspy.Prediction(passages=[Found("Qatar", "Its capital is Doha.")]), (PASSAGE,)),
    "a text": ("Doha.", (BARE,)),
    "texts": (["Doha."], (BARE,)),
    "a prediction of texts": (dspy.Prediction(passages=["Doha."]), (BARE,)),
    "no title": ([Slotted("Doha."), {"text": "Doha.", "title": None}, {"text": "Doha."}], (BARE,) * 3),
    "none": (None, ()),  # hazard 43
    "an empty list": ([], ()),
    "an empty tuple": ((), ()),
    "no passages": (dspy.Prediction(passages=[]), ()),
}


@pytest.mark.parametrize(("evidence", "passages"), EVIDENCE.values(), ids=EVIDENCE)
def test_evidence_is_the_same_whatever_it_came_in(evidence: Any, passages: tuple[Passage, ...]) -> None:
    assert to_passages(evidence) == passages


LISTS = "evidence must be a list of strings or passages; got "
TEXTS = "evidence[1] must be a string, or something with text or long_text, and perhaps title; got "
NO_TEXTS = [None, 7, {}, {"passage": "a"}, {"title": "Qatar"}, {"text": 7}, {"text": "a", "title": 7}, ["Doha."]]
REFUSED_EVIDENCE: list[tuple[Any, str]] = [
    # One mapping too: its keys would be read for passages.
    *((one, LISTS) for one in (7, True, b"Doha", {"text": "Doha."}, {"Doha."}, dspy.Prediction(passages=None))),
    *((["Doha.", one], TEXTS) for one in NO_TEXTS),
    (dspy.Prediction(answer="Doha"), "evidence is a prediction without passages; give the retriever's"),
    (["", LONG], "evidence[1] has 1,000,000 characters"),
    (["", {"text": "x" * (MAX_CHARACTERS + 1)}], "evidence[1] has 500,001 characters"),
    ([""] * (MAX_PASSAGES + 1), "There are 10,001 passages; give at most 10,000"),
]


@pytest.mark.parametrize(("evidence", "sentence"), REFUSED_EVIDENCE, ids=range(len(REFUSED_EVIDENCE)))
def test_evidence_that_cannot_be_used_is_refused_in_a_sentence(evidence: Any, sentence: str) -> None:
    message = refused(lambda: to_passages(evidence))
    assert message.startswith(sentence)
    if sentence == TEXTS:
        assert message.endswith(f"({type(evidence[1]).__name__}).")


@given(st.lists(any_answer, max_size=5), st.sampled_from(("retrieval", "arithmetic")))
@example(["\ud800", "[[ ## answer ## ]]", "{0.__class__}", "%s"], "retrieval")  # hazard 78
def test_any_list_of_strings_is_a_pool(candidates: list[str | None], task: Task) -> None:
    """An answer is taken from its candidate as it stands there; nothing is made up and nothing is a template."""
    question = pool(candidates, task=task)
    assert question.texts == tuple(text or "" for text in candidates)
    assert all(answer is None or answer in text for answer, text in zip(question.answers, question.texts, strict=True))
