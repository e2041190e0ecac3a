"""The completions of a DSPy program become the candidates of a pool, and the options of a question reach it."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.pools import Row, open_pool, write_pool
from eldgr_dspy.programs.pools.building import Recipe, build_pool
from eldgr_dspy.programs.pools.completions import pool_from_completions
from eldgr_dspy.programs.run.collecting import Collection, collect
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.splitting import split_pool
from tests.pools.layouts import predictions, questions, rows, write


def completions(*answers: str | None) -> dspy.Prediction:
    return dspy.Prediction.from_completions([{"reasoning": "I think.", "answer": answer} for answer in answers])


def asked(**fields: Any) -> dspy.Example:
    return dspy.Example(**{"question": "Where?", **fields}).with_inputs("question")


def only(example: dspy.Example, prediction: Any, **settings: Any) -> Row:
    (row,) = pool_from_completions([(example, prediction)], "retrieval", **settings)
    return row


def test_each_completion_is_a_candidate_in_its_order() -> None:
    row = only(asked(id="q1"), completions("Doha", "Dubai", None))
    expected = [("I think.\nDoha", "Doha"), ("I think.\nDubai", "Dubai"), ("I think.", None)]
    assert [(one.text, one.answer) for one in row.candidates] == expected
    assert (row.id, row.question, row.gold, row.evidence) == ("q1", "Where?", [], [])


def test_what_a_program_samples_is_a_pool(tmp_path: Path) -> None:
    lm = scripted_lm(lambda request: {"reasoning": "I think.", "answer": "Doha"})
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        predicted = dspy.ChainOfThought("question -> answer")(question="Where?", config={"n": 3, "temperature": 1.0})
    pool = write_pool(tmp_path / "pool.jsonl", pool_from_completions([(asked(), predicted)], "retrieval"))
    (row,) = open_pool(pool.path).rows()
    assert {candidate.answer for candidate in row.candidates} == {"Doha"}


@pytest.mark.parametrize(
    ("fields", "gold"),
    [
        ({}, []), ({"answer": "Doha"}, ["Doha"]), ({"gold": ["Doha", "Ad Dawhah"]}, ["Doha", "Ad Dawhah"]),
        ({"gold": "Doha", "answer": "Dubai"}, ["Doha"]), ({"gold": []}, []), ({"answer": "2 + 3 = 5\n#### 5"}, ["5"]),
        ({"gold": [" ", "Doha"]}, ["Doha"]), ({"answer": ""}, []),
    ],
)  # fmt: skip
def test_gold_answers_are_those_of_the_example(fields: dict[str, Any], gold: list[str]) -> None:
    assert only(asked(**fields), completions("Doha")).gold == gold


def test_evidence_is_of_any_kind_that_a_selector_takes() -> None:
    row = only(asked(evidence=["Doha is the capital.", {"title": "Dubai", "text": "Dubai is not."}]), completions("x"))
    assert [(one.title, one.text) for one in row.evidence] == [("", "Doha is the capital."), ("Dubai", "Dubai is not.")]


def test_an_example_without_an_id_gets_one_from_its_question() -> None:
    assert only(asked(), completions("x")).id == only(asked(question=" WHERE?"), completions("y")).id
    assert only(asked(id=7), completions("x")).id == "7"
    assert only(asked(id=0), completions("x")).id == "0"


def test_the_field_that_answers_can_be_named() -> None:
    prediction = dspy.Prediction.from_completions([{"total": "5"}, {"total": "6"}])
    assert [one.answer for one in only(asked(), prediction, answer_field="total").candidates] == ["5", "6"]


@pytest.mark.parametrize(
    ("example", "prediction", "message"),
    [
        (asked(), ["Doha"], r"question 1: the pair must end with a prediction; got \['Doha'\]\."),
        (dspy.Example(query="Where?"), completions("x"), "question 1: question must be text; got None"),
        (asked(), dspy.Prediction(total="5"), "question 1: The candidates have no field 'answer'"),
        (asked(evidence=5), completions("x"), "question 1: evidence must be a list of strings or passages; got 5"),
    ],
    ids=["no prediction", "no question", "no answer", "no evidence"],
)
def test_what_is_not_a_pair_is_refused_by_its_number(example: dspy.Example, prediction: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        only(example, prediction)


@pytest.mark.parametrize("pair", [asked(), ("Where?", completions("x")), (asked(), completions("x"), "more")])
def test_what_is_not_a_pair_of_example_and_prediction_is_said(pair: Any) -> None:
    with pytest.raises(ArgumentError, match=r"question 1: must be a pair of an example and a prediction; got .*\."):
        list(pool_from_completions([pair], "retrieval"))


@pytest.mark.parametrize(("gold", "got"), [(True, r"True \(bool\)"), ({"a": 1}, r"\{'a': 1\} \(dict\)"), (1.5, "1.5 ")])
def test_gold_answers_that_are_no_text_are_refused_by_the_id(gold: Any, got: str) -> None:
    with pytest.raises(PoolError, match=rf"question 1, id 'q-.*': gold must be text, or a list of texts; got {got}"):
        only(asked(answer=gold), completions("x"))


def test_what_is_not_a_row_is_refused_by_its_number() -> None:
    with pytest.raises(PoolError, match=r"question 1, id 'q-.*': question is .* half of a surrogate pair"):  # hazard 92
        only(asked(question="\ud800"), completions("x"))
    with pytest.raises(PoolError, match=r"question 1, id '.*': gold\[0\] must be text, or a list of texts; got 5\.5"):
        only(asked(gold=[5.5]), completions("x"))


TOWNS = ["Doha", "Dubai", "Oslo"]
DEMO = Path(__file__).parents[2] / "artifacts" / "demo-choice.jsonl"


class Letter(dspy.Module):
    """Answers by the letter of the first option."""

    def forward(self, question: str, options: Any) -> dspy.Prediction:
        return dspy.Prediction(answer="A", passages=[f"It is {options[0]}."])


DEVSET = [dspy.Example(question="Which?", options=TOWNS, answer="A").with_inputs("question", "options")]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_every_format_keeps_options(tmp_path: Path, suffix: str) -> None:
    pool = open_pool(DEMO)
    copy = write_pool(tmp_path / f"copy{suffix}", pool.rows())
    assert copy.sha256 == open_pool(copy.path).sha256 == pool.sha256
    dev, confirm = split_pool(pool, tmp_path / f"dev{suffix}", tmp_path / f"confirm{suffix}", share=0.5, seed=1)
    assert [open_pool(half.path) for half in (dev, confirm)] == [dev, confirm]
    assert all(row.options for half in (dev, confirm) for row in half.rows())


@pytest.mark.parametrize("apart", [True, False], ids=["in a file of questions", "in the predictions"])
def test_a_pool_is_built_with_options(tmp_path: Path, apart: bool) -> None:
    options: dict[str, Any] = {"options": TOWNS}
    source = predictions(tmp_path / "a.jsonl", **({} if apart else options))
    questions_file = questions(tmp_path / "questions.jsonl", **options) if apart else None
    built = build_pool(Recipe([source], "choice", questions_file), tmp_path / "pool.jsonl")
    assert [row.options for row in rows(built)] == [TOWNS] * 4


@pytest.mark.parametrize("value", [TOWNS, {"label": ["A"]}, "a or b", 3, [1, 2]])
def test_a_type_without_options_leaves_a_field_of_that_name_unread(tmp_path: Path, value: Any) -> None:
    source = predictions(tmp_path / "a.jsonl", options=value)
    built = build_pool(Recipe([source], "retrieval"), tmp_path / "pool.jsonl")
    assert [row.options for row in rows(built)] == [[]] * 4


@pytest.mark.parametrize("listed", [True, False], ids=["a list of examples", "a file"])
def test_a_pool_is_collected_with_options(tmp_path: Path, listed: bool) -> None:
    record = {"question": "Which?", "options": TOWNS, "gold": ["A"]}
    devset = f"{__name__}:DEVSET" if listed else str(write(tmp_path / "dev.jsonl", record))
    out = tmp_path / "pool.jsonl"
    collect(Collection(f"{__name__}:Letter", devset, out, n=2, answer="choice"))
    [row] = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert (row["options"], row["gold"], [one["answer"] for one in row["candidates"]]) == (TOWNS, ["A"], ["A", "A"])


def test_completions_make_rows_with_options() -> None:
    example = dspy.Example(question="Which?", options=TOWNS, gold="A")
    prediction = dspy.Prediction.from_completions([{"answer": "A"}, {"answer": "Dubai"}])
    [row] = pool_from_completions([(example, prediction)], "choice")
    assert (row.options, [one.answer for one in row.candidates]) == (TOWNS, ["A", "Dubai"])
    [row] = pool_from_completions([(example, prediction)], "retrieval")
    assert row.options == []
