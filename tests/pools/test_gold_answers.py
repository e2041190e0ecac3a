"""Gold answers as datasets, harnesses and tables write them are read, or refused with what was found; none is lost."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import PoolError
from eldgr_dspy.programs.pools.building import Recipe, build_pool
from eldgr_dspy.programs.pools.csv_files import Columns
from eldgr_dspy.programs.pools.devsets import read_devset
from eldgr_dspy.programs.pools.gold_answers import final_answers, gold_at
from eldgr_dspy.programs.pools.predictions import read_predictions
from eldgr_dspy.programs.pools.question_files import read_questions
from tests.case_tables import each_case, tables_of
from tests.pools.layouts import QUESTION, only, refusal, rows, table, write

PARIS = ("Paris", "City of Paris")
CELLS = [text for _, text, answers in tables_of("pools")["printed lists"]["cases"] if answers == [*PARIS]][:12]


@each_case("pools", "printed lists")
def test_a_printed_list_is_its_answers_and_any_other_text_is_one(fields: str, text: str, answers: list[str]) -> None:
    assert {final_answers(text, field, "f") for field in fields.split()} == {tuple(answers)}


@each_case("pools", "printed lists that cannot be read")
def test_a_printed_list_that_cannot_be_read_is_refused(text: str) -> None:
    assert refusal(lambda: final_answers(text, "target", "f, line 3")) == (
        f"f, line 3: target looks like a printed list, but cannot be read as one: {text!r:.80}. Write a list of texts."
    )


_TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), min_size=1, max_size=5)


@given(_TEXTS, st.sampled_from([" ", "\n ", ", "]))
@example(["Paris", "City of Paris"], "\n ")
@example(["it's", '"', "\\", "a' 'b"], " ")
def test_whatever_numpy_or_python_prints_is_read_as_it_was(texts: Sequence[str], gap: str) -> None:
    results = tuple(answer for text in texts if (answer := text.rpartition("####")[2].strip()))
    assert final_answers(f"[{gap.join(map(repr, texts))}]", "target", "f") == results


@given(st.text("['\"](){},.: \n\\ab1-", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(PoolError):
        assert all(isinstance(answer, str) for answer in final_answers(f"[{text}]", "target", "f"))


@pytest.mark.parametrize("unit", ["'", "\\'", '"\\', "' ", "['", "a ", "- ", "\"'", "{'text':"])
def test_a_long_text_of_open_quotes_is_read_once(unit: str) -> None:
    """Looking for the end of each quote anew would take hours."""
    with suppress(PoolError):
        final_answers(f"['{unit * (400_000 // len(unit))}]", "target", "f")


@each_case("pools", "gold answers that cannot be told")
def test_what_cannot_be_told_is_refused_with_what_was_found(row: dict[str, Any], message: str) -> None:
    assert refusal(lambda: gold_at(row, "f, line 1")).startswith(f"f, line 1: {message}")


def test_brackets_and_lists_without_end_are_one_answer_or_refused() -> None:
    text = "[" * 3000 + "]" * 3000
    deep: Any = "a"
    for _ in range(5_000):
        deep = [deep]
    assert final_answers(text, "target", "f") == (text,)
    assert refusal(lambda: gold_at({"answer": deep}, "f, line 1")) == (
        "f, line 1: answer is nested too deeply; write the accepted answers as a list."
    )


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", ["gold", "answers", "ideal", "Possible Answers"])
def test_the_list_in_a_cell_is_its_answers(tmp_path: Path, name: str, cell: str) -> None:
    path = table(tmp_path / "a.csv", ("id", "question", "prediction", name), ("1", QUESTION, "x", cell))
    (question,), (entry,) = read_questions(path), read_predictions(path, columns=Columns({"gold": [name]}))
    assert only(path).gold == question.gold == entry.gold == PARIS


CUT = "It takes 3 and then 12 and"
MARKED_TEXT = "The answer is 12. Let me check: 3 and"


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length", {"reason": "length"}])
@pytest.mark.parametrize("name", ["finish_reason", "stop_reason", "done_reason"])
def test_a_sample_that_stopped_at_its_limit_has_its_marked_answer_alone(tmp_path: Path, name: str, reason: Any) -> None:
    texts = [CUT, MARKED_TEXT]
    layouts: list[dict[str, Any]] = [
        {"prediction": texts, name: [reason] * 2},
        {"prediction": [{"text": text, name: reason} for text in texts]},
        {"prediction": [{"text": CUT, name: reason}, {"text": CUT, "answer": "12", name: reason}]},
    ]
    for row in layouts:
        path = write(tmp_path / "a.jsonl", {"question": QUESTION, **row})
        outcome = build_pool(Recipe([path], "arithmetic"), tmp_path / "pool.jsonl")
        (result,) = rows(outcome)
        assert ([one.answer for one in result.candidates], outcome.cut) == ([None, "12"], 1)


def test_what_a_program_is_told_is_not_gold(tmp_path: Path) -> None:
    class Program(dspy.Module):
        def forward(self, question: str, reference: str) -> dspy.Prediction:
            return dspy.Prediction(answer=reference)

    path = write(tmp_path / "dev.jsonl", {"question": QUESTION, "reference": "a page", "answer": "Doha"})
    (item,) = read_devset(str(path), Program(), "short", "answer")
    assert (item.entry.gold, item.inputs["reference"]) == (("Doha",), "a page")
