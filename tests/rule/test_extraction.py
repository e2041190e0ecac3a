"""The last explicit answer is taken; a fallback is named; what is returned always stands in the text."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.extraction import Extraction, extract_answer
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.text.numbers import parse_number
from eldgr_dspy.words import TASKS, Form, Task
from tests.dates import LISTED
from tests.rule.keys import cases

pieces = st.sampled_from(
    (
        *(
            "####", "A:", "Answer:", "\nA: ", "\\boxed{", "the answer is", "Final answer:", "Finish[",
            "**Final Answer**", "<answer>", "</answer>",
        ),
        *(
            "{", "}", "]", "\\", "\\text{", "$", "=", "(", ")", "\n", " ", "*", ".", "not", "minus", "Paris", "18",
            "1,5",
        ),
        *("-5", "- 5", "\N{MINUS SIGN}5", "3/4", "2 1/2", "½", "5%", "1e3", "10:30", "٤٢", "\ud800", "7th", "+", "^2"),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "answer", "form"),
    [
        *cases("stated numbers"),
        ("1" * 5_000 + " 7 " + "1" * 5_000, "7", "last_number"),
    ],  # hazards 12, 16, 20, 21, 24 and 25
)
def test_arithmetic_takes_the_number_that_is_stated_last(text: str, answer: str, form: Form) -> None:
    assert extract_answer(text, "arithmetic") == Extraction(answer, form)


# hazards 12 and 16
@pytest.mark.parametrize("payload", [*cases("bound numbers"), "1" * 5_000])
@pytest.mark.parametrize("mark", ["A: ", "#### ", "the answer is ", "final answer: "])
def test_a_number_is_not_cut_out_of_what_it_is_bound_to(mark: str, payload: str) -> None:
    reading = extract_answer(f"1 + 1 = 2\n{mark}{payload}", "arithmetic")
    assert reading is not None and reading.answer == payload and reading.form != "last_number"


@pytest.mark.parametrize("payload", ["\\frac{1}{2}", "3x+5", "(1, 2)", "x", "1{,}000"])
def test_a_box_with_more_than_one_number_or_none_stays_whole(payload: str) -> None:
    assert extract_answer(f"\\boxed{{{payload}}}", "arithmetic") == Extraction(payload, "boxed")


@pytest.mark.parametrize(("text", "answer", "form"), cases("stated answers"))
def test_retrieval_takes_what_is_stated_last_or_the_whole(text: str, answer: str, form: Form) -> None:
    assert extract_answer(text, "retrieval") == Extraction(answer, form)


@pytest.mark.parametrize(("text", "answer"), cases("last marks"))
def test_the_last_mark_that_states_something_wins(text: str, answer: str) -> None:
    reading = extract_answer(text, "arithmetic")
    assert reading is not None and reading.answer == answer and reading.form != "last_number"


@pytest.mark.parametrize("text", cases("looks like a mark"))
def test_what_only_looks_like_a_mark_is_not_one(text: str) -> None:
    assert extract_answer(text, "arithmetic") == Extraction("7", "last_number")


@pytest.mark.parametrize("text", ["", " \n\t"])
@pytest.mark.parametrize("task", TASKS)
def test_a_blank_text_has_no_answer(text: str, task: Task) -> None:
    assert extract_answer(text, task) is None


def test_arithmetic_without_a_number_has_no_answer() -> None:
    assert extract_answer("I do not know.", "arithmetic") is None


def test_an_unknown_task_is_named() -> None:
    task: Any = "maths"
    with pytest.raises(ArgumentError, match=rf"^answer must be one of {LISTED}; got 'maths'\.$"):
        extract_answer("18", task)


@given(st.lists(pieces, max_size=12).map("".join) | st.text(st.characters()), st.sampled_from(TASKS))
@example("\\boxed{\\text{}}", "retrieval")
@example("A: = - 5", "arithmetic")
@example("Finish[]", "retrieval")
@example("\\boxed{", "arithmetic")
def test_the_answer_stands_in_the_text_and_is_not_blank(text: str, task: Task) -> None:
    reading = extract_answer(text, task)
    if reading is not None:
        assert reading.answer in text and reading.answer.strip()


@given(
    st.integers(-(10**9), 10**9), st.sampled_from(("#### {}", "A: {}", "\\boxed{{{}}}", "The answer is {}.", "x is {}"))
)
def test_an_integer_comes_back_as_it_was_written(number: int, frame: str) -> None:
    reading = extract_answer(f"3 + 4 = 7\n{frame.format(f'{number:,}')}\n", "arithmetic")
    assert reading is not None and reading.answer == f"{number:,}"


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "1", "1,111", "1 ", "1.2.3 ", "-", "- ", "\\boxed{", "\\boxed{}", "{", "}", "\\", "A:\n", "A: x\n", "#",
            "#### ",
        ),
        *(
            "the answer is ", "the ", "the  ", "final answer\n", "Finish[", " ", "\n", "$", "abcd.", "1=", "½", "٣",
            "*", "5 % ",
        ),
    ],
)  # fmt: skip
def test_a_hundred_kilobytes_of_anything_are_read(piece: str, task: Task) -> None:
    """A search that went back over what it has read would take longer here than any test may."""
    text = piece * (100_000 // len(piece))
    reading = extract_answer(text, task)
    assert reading is None or reading.answer in text


def test_a_string_of_json_that_never_ends_is_looked_at_once() -> None:
    assert extract_answer('"answer": "' + '\\"' * 50_000 + "\\", "short") is not None


def test_boxes_a_hundred_thousand_deep_are_closed_from_within() -> None:
    text = "\\boxed{" * 100_000 + "5" + "}" * 100_000
    assert extract_answer(text, "arithmetic") == Extraction("5", "boxed")


@pytest.mark.parametrize("text", cases("tagged answers"))
def test_what_grpo_recipes_ask_for_is_read(text: str) -> None:
    for task in TASKS:
        reading = extract_answer(text, task)
        assert reading is not None and (reading.answer, reading.form in ("tagged", "boxed")) == ("18", True)


def test_the_recorded_answers_of_the_real_pools_are_found_again(pools_dir: Path) -> None:
    """All but one: whoever recorded the answers took 1.8 billion for 1.8."""
    others: list[tuple[str, str | None]] = []
    for name, tolerance in (("gsm8k-openai4", 1e-6), ("hotpotqa-reflexion12", 0.0)):
        with gzip.open(pools_dir / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
            rows = [json.loads(line) for line in lines]
        for row in rows:
            for candidate in row["candidates"]:
                reading = extract_answer(candidate["text"], row["task"])
                if candidate["answer"] is None:
                    assert reading is None or reading.form in ("last_number", "whole")
                elif reading is None or not _same(reading.answer, candidate["answer"], tolerance):
                    others.append((candidate["answer"], reading.answer if reading else None))
    assert others == [("-1.8", "-1.8 billion")]


def _same(answer: str, recorded: str, tolerance: float) -> bool:
    """Whether two answers agree; the pool of arithmetic was recorded with six decimals."""
    one, other = parse_number(answer), parse_number(recorded)
    if not tolerance or one is None or other is None:
        return answer == recorded
    return math.isclose(one.value, other.value, rel_tol=tolerance, abs_tol=tolerance)
