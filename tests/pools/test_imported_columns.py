"""Columns come in from files of predictions, tables, logs and completions; a bad value is refused by its place."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import dspy
import pytest
from pydantic import BaseModel

from eldgr_dspy.formats.columns import Columns
from eldgr_dspy.formats.rows import CandidateRow
from eldgr_dspy.programs.pools.building import Recipe, build_pool
from eldgr_dspy.programs.pools.completions import pool_from_completions
from eldgr_dspy.programs.pools.csv_files import Columns as Named
from eldgr_dspy.programs.pools.csv_files import Field
from eldgr_dspy.programs.pools.entries import Sample
from eldgr_dspy.programs.pools.predictions import read_predictions
from tests.pools.layouts import QUESTION, choice, harness, log, only, refused, sample, table, write
from tests.refusing import refused as refused_argument

ONE: dict[str, Any] = {
    "confidence": 0.25,
    "logprobs": {"tokens": [-0.1, -2.5], "answer_tokens": 1},
    "scores": {"prm": [0.5, 0.75]},
    "tags": ["cot"],
}
OTHER: dict[str, Any] = {"confidence": 1, "logprobs": {"mean": -0.5}, "scores": {"prm": 1}, "tags": ["react", "small"]}


def columns_of(samples: Sequence[Sample]) -> list[Columns | None]:
    return [one.columns for one in samples]


def columns(values: dict[str, Any]) -> Columns:
    return Columns.model_validate(values)


def plain(path: Path, prediction: Any, **fields: Any) -> Path:
    return write(path, {"id": "q", "question": QUESTION, "prediction": prediction, **fields})


def test_a_row_states_the_columns_of_its_prediction(tmp_path: Path) -> None:
    (result,) = only(plain(tmp_path / "a.jsonl", "Ana", **ONE)).samples
    assert result == Sample("Ana", columns=columns(ONE))
    (without,) = only(plain(tmp_path / "b.jsonl", "Ana", confidence=None, scores=None)).samples
    assert without == Sample("Ana")


def test_a_row_with_several_predictions_has_a_list_for_each_column(tmp_path: Path) -> None:
    lists = {name: [ONE[name], None, OTHER[name]] for name in ONE}
    assert columns_of(only(plain(tmp_path / "a.jsonl", ["Ana", "Bo", None], **lists)).samples) == [
        columns(ONE),
        None,
        columns(OTHER),
    ]
    (alone,) = only(plain(tmp_path / "b.jsonl", ["Ana"], tags=[["cot"]])).samples
    assert alone.columns == columns({"tags": ["cot"]})


def test_an_object_states_its_own_columns(tmp_path: Path) -> None:
    objects = [{"text": "Ana", "answer": "Ana", **ONE}, "Bo", {"text": "Cy", **OTHER}]
    result = only(plain(tmp_path / "a.jsonl", objects)).samples
    assert result[0] == Sample("Ana", "Ana", final=True, columns=columns(ONE))
    assert columns_of(result) == [columns(ONE), None, columns(OTHER)]


@pytest.mark.parametrize(
    ("prediction", "fields", "message"),
    [
        ("Ana", {"confidence": 90}, "confidence must be a number from 0 to 1; got 90. Divide a percentage by 100, or"),
        (["Ana", "Bo"], {"confidence": [0.9, "high"]}, "confidence[1] must be a number from 0 to 1; got 'high'."),
        (["Ana", "B"], {"logprobs": [{"tokens": [-1, 1]}, None]}, "logprobs[0].tokens[1] must be a natural logarithm,"),
        (
            ["Ana", "Bo"],
            {"confidence": [0.9]},
            "confidence must be a list of 2, one for each prediction; got 1. Write null where it is unknown.",
        ),
        (["Ana", "Bo"], {"tags": ["cot", "react", "x"]}, "tags must be a list of 2, one for each prediction; got 3."),
        (["Ana", "Bo"], {"tags": ["cot", "react"]}, "tags[0] must be a list of texts that are not blank; got 'cot'."),
        ("Ana", {"scores": '{"prm": 1}'}, "scores must be an object; got '{\"prm\": 1}'."),
        ({"text": "Ana", "scores": 1}, {}, "prediction.scores must be an object; got 1. Name each score:"),
        (
            [{"text": "Ana", "confidence": 1}],
            {"tags": [["cot"]]},
            "prediction[0] must have its columns inside or outside of it; got both. Leave some out.",
        ),
    ],
)
def test_bad_columns_are_refused_by_place(
    tmp_path: Path, prediction: Any, fields: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "a.jsonl", {"id": "p", "prediction": "x"}, {"id": "q", "prediction": prediction, **fields})
    assert refused(lambda: list(read_predictions(path))).startswith(f"{path}, line 2: {message}")


@pytest.mark.parametrize("packed", [False, True], ids=["objects", "JSON as text"])
def test_parquet_has_objects_or_json_as_text(tmp_path: Path, *, packed: bool) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    plain_form = {**ONE, "prediction": "Ana"}
    several = {name: [ONE[name], ONE[name]] for name in ONE} | {"prediction": ["Ana", "Bo"]}
    inside = {"prediction": [{"text": "Ana", **ONE}]}
    for form in (plain_form, several, inside):
        dumped = _packed(form) if packed else form
        parquet.write_table(arrow.Table.from_pylist([{"id": "q", **dumped}]), tmp_path / "a.parquet")
        result = only(tmp_path / "a.parquet").samples
        assert columns_of(result) == [columns(ONE)] * len(result)


def _packed(value: Any, name: str = "") -> Any:
    if name in ("logprobs", "scores"):
        return [json.dumps(one) for one in value] if isinstance(value, list) else json.dumps(value)
    if isinstance(value, dict):
        return {key: _packed(inner, key) for key, inner in value.items()}
    return [_packed(inner) for inner in value] if isinstance(value, list) else value


def test_text_that_is_not_json_is_refused_in_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    for form, place in (
        ({"prediction": "Ana", "scores": "{"}, "scores"),
        ({"prediction": ["Ana", "Bo"], "scores": ["{}", "{"]}, "scores[1]"),
        ({"prediction": [{"text": "Ana", "scores": "{"}]}, "prediction[0].scores"),
    ):
        parquet.write_table(arrow.Table.from_pylist([{"id": "q", **form}]), path)
        assert refused(lambda: only(path)).startswith(f"{path}, row 1, {place}: not one JSON object (")


def test_a_pool_is_built_with_columns_in_every_order_and_format(tmp_path: Path) -> None:
    """They follow their candidates through a shuffle, and are the same in the pool as in the files."""
    first = plain(tmp_path / "a.jsonl", ["one", "two"], confidence=[0.1, 0.2], tags=[["cot"], None])
    second = plain(tmp_path / "b.jsonl", {"text": "three", **ONE, "confidence": 0.3})
    recipe = Recipe([first, second], "short", shuffle=3)
    pools = [build_pool(recipe, tmp_path / f"p{suffix}").pool for suffix in (".jsonl", ".jsonl.gz")]
    assert pools[0].sha256 == pools[1].sha256
    (row,) = pools[0].rows()
    stated = {one.text: one for one in row.candidates}
    assert {text: one.confidence for text, one in stated.items()} == {"one": 0.1, "two": 0.2, "three": 0.3}
    assert stated["one"].tags == ["cot"]
    assert stated["three"] == CandidateRow.model_validate(
        {"text": "three", "answer": "three", "source": "b", **ONE, "confidence": 0.3}
    )


def rows_of(path: Path, **names: Sequence[str]) -> tuple[Sample, ...]:
    (entry,) = read_predictions(path, columns=Named(cast("dict[Field, Sequence[str]]", names)))
    return entry.samples


def test_a_table_has_a_column_of_confidences_and_columns_of_tags_where_flags_name_them(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.csv",
        ("id", "prediction", "confidence", "prompt", "model"),
        ("1", "Nice", " .5 ", "cot", "small "),
        ("1", "Lyon", "", "", "large"),
        ("1", "", "1e-3", " ", ""),
    )
    assert columns_of(rows_of(path)) == [None] * 3
    assert columns_of(rows_of(path, confidence=["confidence"], tags=["prompt", "model"])) == [
        columns({"confidence": 0.5, "tags": ["cot", "small"]}),
        columns({"tags": ["large"]}),
        columns({"confidence": 0.001}),
    ]


def test_a_row_a_question_has_a_confidence_for_each_prediction(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("id", "a", "b", "sure a", "sure b"), ("1", "Nice", "Lyon", "0.9", ""))
    assert columns_of(rows_of(path, prediction=["a", "b"], confidence=["sure a", "sure b"])) == [
        columns({"confidence": 0.9}),
        None,
    ]
    assert refused(lambda: rows_of(path, prediction=["a", "b"], confidence=["sure a"])) == (
        f"{path}, row 1: confidence must have as many columns as prediction, 2; got 1. Name them all."
    )
    assert refused(lambda: rows_of(path, prediction=["a", "b"], tags=["sure a"])) == (
        f"{path}, row 1: tags need a row a sample; got 2 columns of predictions. Leave --column tags out."
    )


@pytest.mark.parametrize(
    ("cell", "text"), [("90%", "'90%'"), ("0,9", "'0,9'"), ("90", "90.0"), ("nan", "nan"), ("x", "'x'")]
)
def test_a_cell_that_is_not_a_probability_is_refused_by_its_row(tmp_path: Path, cell: str, text: str) -> None:
    path = table(tmp_path / "a.csv", ("id", "prediction", "p"), ("1", "Nice", "1"), ("1", "Lyon", cell))
    assert refused(lambda: rows_of(path, confidence=["p"])) == (
        f"{path}, row 3: confidence must be a number from 0 to 1; got {text}. Divide a percentage by 100, or leave it "
        "out."
    )


def inspected(path: Path, *logprobs: Any) -> Path:
    choices = [{**choice("ANSWER: Ana"), "logprobs": one} for one in logprobs]
    return log(path, sample(output={"model": "m", "choices": choices}))


def token(p: Any) -> dict[str, Any]:
    return {"token": "A", "logprob": p, "bytes": [65], "top_logprobs": [{"token": "A", "logprob": -9, "bytes": None}]}


def test_a_log_of_inspect_has_the_log_probabilities_of_its_choices(tmp_path: Path) -> None:
    path = inspected(tmp_path / "log.json", {"content": [token(-0.5), token(-9999.0)]}, None, {"content": []})
    assert columns_of(only(path).samples) == [columns({"logprobs": {"tokens": [-0.5, -9999.0]}}), None, None]


def test_scores_of_harnesses_are_not_read_since_they_were_made_with_the_target(tmp_path: Path) -> None:
    assert columns_of(only(log(tmp_path / "log.json", sample())).samples) == [None]
    row = harness(exact_match=1.0, scores={"exact_match": 1.0}, confidence=1.0)
    assert columns_of(only(write(tmp_path / "samples_x.jsonl", row)).samples) == [None]


def test_malformed_log_probabilities_are_refused_by_their_place(tmp_path: Path) -> None:
    path = inspected(tmp_path / "log.json", None, {"content": [token(-1), token(0.5)]})
    place = "output.choices[1].logprobs.content[1].logprob must be a natural logarithm, a number from"
    assert refused(lambda: only(path)).startswith(f"{path}, samples[0]: {place}")


ASKED = dspy.Example(question="Where?", gold=["Doha"]).with_inputs("question")


def completed(*candidates: dict[str, Any], **options: Any) -> list[CandidateRow]:
    prediction = dspy.Prediction.from_completions([{"answer": "Doha", **one} for one in candidates])
    (row,) = pool_from_completions([(ASKED, prediction)], "short", **options)
    return row.candidates


def candidate(**fields: Any) -> CandidateRow:
    return CandidateRow.model_validate({"text": "Doha", "answer": "Doha", **fields})


def test_completions_bring_columns_where_they_are_asked_for() -> None:
    given = [{name: values[name] for name in ONE} for values in (ONE, OTHER, dict.fromkeys(ONE))]
    assert completed(*given) == [candidate()] * 3
    assert completed(*given, columns=True) == [candidate(**ONE), candidate(**OTHER), candidate()]


def test_completions_bring_log_probabilities_as_dspy_returns_them() -> None:
    class Choice(BaseModel):
        content: list[dict[str, Any]]

    for returned in ({"content": [token(-0.5)]}, Choice(content=[token(-0.5)])):
        (result,) = completed({"logprobs": returned}, columns=True)
        assert result == candidate(logprobs={"tokens": [-0.5]})


def test_a_single_prediction_brings_its_columns() -> None:
    (row,) = pool_from_completions([(ASKED, dspy.Prediction(answer="Doha", **ONE))], "short", columns=True)
    assert row.candidates == [candidate(**ONE)]


def test_a_field_of_another_kind_is_refused_only_where_columns_are_asked_for() -> None:
    values: list[dict[str, Any]] = [{"confidence": 0.5}, {"confidence": "high"}]
    assert [one.confidence for one in completed(*values)] == [None, None]
    assert refused_argument(lambda: completed(*values, columns=True)) == (
        "question 1: candidates[1].confidence must be a number from 0 to 1; got 'high'. Divide a percentage by 100, or "
        "leave it out."
    )
