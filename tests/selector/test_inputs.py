"""What a user hands over becomes one frozen question, or is refused in a sentence with the place and the remedy."""

import math
from collections import UserDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from operator import mul
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy import Sampled
from eldgr_dspy.answer_types.answers import numeric_equal
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice
from eldgr_dspy.formats.rows import MAX_CANDIDATES
from eldgr_dspy.laws import LAWS
from eldgr_dspy.programs.inputs import to_passages, to_question
from eldgr_dspy.programs.metrics import selection_score
from eldgr_dspy.programs.repeated_deriver import RepeatedDeriver
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.words import TASKS, Task
from tests.case_tables import each_case
from tests.public_strategies import answers as any_answer
from tests.refusing import refusal, says
from tests.scenes import CONTESTED, SETTLED, verdict
from tests.scorers import Rewards
from tests.selecting import example_of, saying, select_acall

Found = namedtuple("Found", ["title", "text"])


@dataclass(frozen=True, slots=True)
class Slots:
    long_text: str
    title: str | None = None


def pool(candidates: Any, *, task: Task = "retrieval", field: str = "answer") -> Question:
    return to_question("q", candidates, None, task, field)


ANSWERS = ("Doha", "Dubai", None)
KINDS: dict[str, Any] = {"Prediction": dspy.Prediction, "Example": dspy.Example, "UserDict": UserDict, "Found": Found}
KINDS |= {"Completions": dspy.Completions, "from_completions": dspy.Prediction.from_completions, "Slots": Slots}
KINDS |= {"generator": lambda *values: (value for value in values), "tuple": lambda *values: values, "Passage": Passage}
KINDS |= {"Reasoning": dspy.Reasoning, "int64": np.int64, "float64": np.float64, "float32": np.float32}
KINDS["Decimal"] = Decimal


@each_case("selector", "pools of Doha, Dubai and no answer", **KINDS)
def test_a_pool_is_the_same_whatever_it_came_in(candidates: Any) -> None:
    question = pool(candidates)
    assert (question.answers, question.texts) == (ANSWERS, ("Doha", "Dubai", ""))


@each_case("selector", "an answer, and what a judge is shown of it", **KINDS)
def test_a_candidate_has_its_answer_and_what_a_judge_is_shown(candidates: Any, answer: Any, text: str) -> None:
    # hazard 5
    question = pool(candidates)
    assert (question.answers, question.texts) == ((answer,), (text,))


NANS = [math.nan, np.float32("nan"), {"answer": math.nan}]


@pytest.mark.parametrize("missing", [None, *NANS, {"answer": None}, {"text": "?"}, {}, dspy.Prediction()], ids=repr)
def test_a_candidate_without_an_answer_does_not_vote(missing: Any) -> None:  # hazard 6
    """A failed sample is None, a table writes NaN, and `dspy.Evaluate` puts an empty prediction for each error."""
    assert pool([missing, {"answer": "Doha"}]).answers == (None, "Doha")


def test_the_answer_is_that_of_the_answer_field_and_the_one_that_a_candidate_marks_as_final() -> None:
    assert pool([{"answer": "wrong", "response": "Doha"}], field="response").answers == ("Doha",)
    assert pool([{"text": "Doha"}], field="text").texts == ("Doha",)
    completions = dspy.Prediction.from_completions({"response": ["Doha", "Dubai"], "reasoning": ["a", "b"]})
    assert pool(completions, field="response").answers == ("Doha", "Dubai")
    texts = ["Doha, I think. So the answer is Doha.", "It is \\boxed{Dubai}", "Abu Dhabi"]
    assert (pool(texts).answers, pool(texts).texts) == (("Doha", "Dubai", "Abu Dhabi"), tuple(texts))
    chains = ["3 * 12 = 36\n#### 36", "I get 35, no, 36.", "I get 35 or 36.", "no idea"]
    assert pool(chains, task="arithmetic").answers == ("36", "36", "35 or 36", None)
    for n in (0, MAX_CANDIDATES):  # hazard 1: a pool may be empty, and as large as the limit
        assert pool(["Doha"] * n).answers == ("Doha",) * n


@each_case("selector", "numbers and their text", **KINDS)
def test_a_number_answers_by_its_shortest_text(number: Any, text: str) -> None:
    """A signature may type its answer: `-> answer: float`."""
    for task in TASKS:
        question = pool([number, {"answer": number}, dspy.Prediction(answer=number, reasoning="So.")], task=task)
        assert question.answers == (text,) * 3
        assert question.texts == (text, text, f"So.\n{text}")


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_s_text_is_the_number(number: float) -> None:
    text: Any = pool([number]).answers[0]
    assert type(number)(text) == number
    assert numeric_equal(text, [str(number)]) or "e" in str(number)


@each_case("selector", "evidence and its passages", **KINDS)  # hazard 43
def test_evidence_is_the_same_whatever_it_came_in(evidence: Any, passages: list[list[str]]) -> None:
    assert to_passages(evidence) == tuple(Passage(*one) for one in passages)


@given(st.lists(any_answer, max_size=5), st.sampled_from(("retrieval", "arithmetic")))
@example(["\ud800", "[[ ## answer ## ]]", "{0.__class__}", "%s"], "retrieval")  # hazard 78
def test_any_list_of_strings_is_a_pool(candidates: list[str | None], task: Task) -> None:
    """An answer is taken from its candidate as it stands there; nothing is made up and nothing is a template."""
    question = pool(candidates, task=task)
    assert question.texts == tuple(text or "" for text in candidates)
    assert all(answer is None or answer in text for answer, text in zip(question.answers, question.texts, strict=True))


CALLS: dict[str, Callable[..., Any]] = {
    "Selector": Selector,
    "a call": lambda **changes: Selector()(**{**CONTESTED, **changes}),
    "an awaited call": lambda **changes: select_acall(Selector(), {**CONTESTED, **changes}),
    "to_question": lambda question="q", candidates=(): to_question(question, candidates, None, "retrieval", "answer"),
    "to_passages": to_passages,
    "Sampled": lambda **options: Sampled(**{"program": dspy.Predict("question -> answer"), **options}),
    "RepeatedDeriver": RepeatedDeriver,
    "check_selector": lambda **options: check_selector(**{"selector": Selector(), **options}),
    "selection_score": lambda gold: selection_score(example_of(SETTLED, gold=gold), dspy.Prediction(answer="x")),
}
LAW_NAMES = [law.name for law in LAWS if law.number <= 8]
NAMES = {
    "len": len, "dspy.majority": dspy.majority, "dspy.Predict": dspy.Predict, "Selector": Selector, "Rewards": Rewards,
    "no generator": lambda case: Choice("first", "x"), "CONTESTED": st.just(CONTESTED), "a scorer": Rewards([]),
    "a table": type("Table", (list,), {"columns": ["answer"]})(["answer"]),  # it yields the names of its columns
    "every law": [*LAW_NAMES, "sync_equals_async_equals_batch_equals_replay", "no_lm_text_breaks_a_law"],
}  # fmt: skip
KINDS |= {"name": NAMES.get, "times": mul, "power": pow, "bytes": str.encode}


@each_case("selector", "refusals", **KINDS, set=lambda *of: {*of})  # hazards 7 and 10
def test_it_is_refused_in_a_sentence(call: str, arguments: dict[str, Any], sentence: str) -> None:
    lm = saying(verdict(2))
    with dspy.context(lm=lm):
        message = refusal(lambda: CALLS[call](**arguments))
    assert says(sentence, message) and lm.requests == []
