"""The completions of a DSPy program become the candidates of a pool, and the options of a question reach it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from pydantic import BaseModel

from eldgr_dspy import errors
from eldgr_dspy.formats.rows import CandidateRow
from eldgr_dspy.pools import Row, open_pool, write_pool
from eldgr_dspy.programs.pools.building import Recipe, build_pool
from eldgr_dspy.programs.pools.completions import pool_from_completions
from eldgr_dspy.programs.run.collecting import Collection, collect
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.splitting import split_pool
from tests.case_tables import each_case
from tests.pools.layouts import predictions, write
from tests.refusing import refusal, says


def completions(*answers: str | None) -> dspy.Prediction:
    return dspy.Prediction.from_completions([{"reasoning": "I think.", "answer": answer} for answer in answers])


def asking(**fields: Any) -> dspy.Example:
    return dspy.Example(**{"question": "Where?", **fields}).with_inputs("question")


def only(example: dspy.Example, prediction: Any, **settings: Any) -> Row:
    (row,) = pool_from_completions([(example, prediction)], "retrieval", **settings)
    return row


PAIRS: dict[str, Callable[..., Any]] = {"example": asking, "bare": dspy.Example, "prediction": dspy.Prediction}
PAIRS["sampled"] = completions


def test_each_completion_is_a_candidate_in_its_order_and_what_a_program_samples_is_a_pool(tmp_path: Path) -> None:
    row = only(asking(id="q1"), completions("Doha", "Dubai", None))
    expected = [("I think.\nDoha", "Doha"), ("I think.\nDubai", "Dubai"), ("I think.", None)]
    assert [(one.text, one.answer) for one in row.candidates] == expected
    assert (row.id, row.question, row.gold, row.evidence) == ("q1", "Where?", [], [])
    lm = scripted_lm(lambda request: {"reasoning": "I think.", "answer": "Doha"})
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        pred = dspy.ChainOfThought("question -> answer")(question="Where?", config={"n": 3, "temperature": 1.0})
    pool = write_pool(tmp_path / "pool.jsonl", pool_from_completions([(asking(), pred)], "retrieval"))
    (row,) = open_pool(pool.path).rows()
    assert {candidate.answer for candidate in row.candidates} == {"Doha"}


@each_case("pools", "gold answers of examples")
def test_gold_answers_are_those_of_the_example(fields: dict[str, Any], gold: list[str]) -> None:
    assert only(asking(**fields), completions("Doha")).gold == gold


def test_ids_evidence_and_the_field_that_answers_are_those_of_the_example() -> None:
    row = only(asking(evidence=["Doha is the capital.", {"title": "Dubai", "text": "Dubai is not."}]), completions("x"))
    assert [(one.title, one.text) for one in row.evidence] == [("", "Doha is the capital."), ("Dubai", "Dubai is not.")]
    assert only(asking(), completions("x")).id == only(asking(question=" WHERE?"), completions("y")).id
    assert [only(asking(id=name), completions("x")).id for name in (7, 0)] == ["7", "0"]
    prediction = dspy.Prediction.from_completions([{"total": "5"}, {"total": "6"}])
    assert [one.answer for one in only(asking(), prediction, answer_field="total").candidates] == ["5", "6"]


@each_case("pools", "pairs that are refused", **PAIRS)
def test_what_is_not_a_pair_of_example_and_prediction_is_refused(kind: str, pair: Any, sentence: str) -> None:
    # hazard 92
    pairs: list[Any] = [tuple(pair) if isinstance(pair, list) else pair]
    assert says(sentence, refusal(lambda: [*pool_from_completions(pairs, "retrieval")], getattr(errors, kind)))


TOWNS = ["Doha", "Dubai", "Oslo"]
DEMO = Path(__file__).parents[2] / "artifacts" / "demo-choice.jsonl"


class Letter(dspy.Module):  # answers by the letter of the first option
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


@pytest.mark.parametrize("as_list", [True, False], ids=["a list of examples", "a file"])
def test_a_pool_is_collected_with_options(tmp_path: Path, as_list: bool) -> None:
    record = {"question": "Which?", "options": TOWNS, "gold": ["A"]}
    devset = f"{__name__}:DEVSET" if as_list else str(write(tmp_path / "dev.jsonl", record))
    out = tmp_path / "pool.jsonl"
    collect(Collection(f"{__name__}:Letter", devset, out, n=2, answer="choice"))
    [row] = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert (row["options"], row["gold"], [one["answer"] for one in row["candidates"]]) == (TOWNS, ["A"], ["A", "A"])


def test_completions_make_rows_with_options() -> None:
    example = dspy.Example(question="Which?", options=TOWNS, gold="A")
    prediction = dspy.Prediction.from_completions([{"answer": "A"}, {"answer": "Dubai"}])
    [row], [other] = (pool_from_completions([(example, prediction)], task) for task in ("choice", "retrieval"))
    assert (row.options, [one.answer for one in row.candidates]) == (TOWNS, ["A", "Dubai"]) and other.options == []


ONE: dict[str, Any] = {"confidence": 0.25, "logprobs": {"tokens": [-0.1, -2.5], "answer_tokens": 1}}
ONE |= {"scores": {"prm": [0.5, 0.75]}, "tags": ["cot"]}
OTHER = {"confidence": 1, "logprobs": {"mean": -0.5}, "scores": {"prm": 1}, "tags": ["react", "small"]}


def test_a_pool_is_built_with_columns_in_every_order_and_format(tmp_path: Path) -> None:
    """They follow their candidates through a shuffle, and are the same in the pool as in the files."""
    several = {"prediction": ["one", "two"], "confidence": [0.1, 0.2], "tags": [["cot"], None]}
    first = predictions(tmp_path / "a.jsonl", [0], **several)
    second = predictions(tmp_path / "b.jsonl", [0], prediction={"text": "three", **ONE, "confidence": 0.3})
    recipe = Recipe([first, second], "short", shuffle=3)
    pools = [build_pool(recipe, tmp_path / f"p{suffix}").pool for suffix in (".jsonl", ".jsonl.gz")]
    assert pools[0].sha256 == pools[1].sha256
    (row,) = pools[0].rows()
    by_text = {one.text: one for one in row.candidates}
    assert {text: one.confidence for text, one in by_text.items()} == {"one": 0.1, "two": 0.2, "three": 0.3}
    assert by_text["one"].tags == ["cot"]
    third = {"text": "three", "answer": "three", "source": "b", **ONE, "confidence": 0.3}
    assert by_text["three"] == CandidateRow.model_validate(third)


def complete(*candidates: Any, **options: Any) -> list[CandidateRow]:
    prediction = dspy.Prediction.from_completions([{"answer": "Doha", **one} for one in candidates])
    return only(asking(gold=["Doha"]), prediction, **options).candidates


def candidate(**fields: Any) -> CandidateRow:
    return CandidateRow.model_validate({"text": "Doha", "answer": "Doha", **fields})


class Choice(BaseModel):
    content: list[dict[str, Any]]


def test_completions_bring_columns_where_they_are_asked_for() -> None:
    values = [{name: of[name] for name in ONE} for of in (ONE, OTHER, dict.fromkeys(ONE))]
    assert complete(*values) == [candidate()] * 3
    assert complete(*values, columns=True) == [candidate(**ONE), candidate(**OTHER), candidate()]
    single = only(asking(gold=["Doha"]), dspy.Prediction(answer="Doha", **ONE), columns=True)
    assert single.candidates == [candidate(**ONE)]
    top = [{"token": "A", "logprob": -9, "bytes": None}]
    content = [{"token": "A", "logprob": -0.5, "bytes": [65], "top_logprobs": top}]
    for value in ({"content": content}, Choice(content=content)):  # as DSPy returns them
        assert complete({"logprobs": value}, columns=True) == [candidate(logprobs={"tokens": [-0.5]})]
    wrong: list[dict[str, Any]] = [{"confidence": 0.5}, {"confidence": "high"}]
    assert [one.confidence for one in complete(*wrong)] == [None, None]
    assert refusal(lambda: complete(*wrong, columns=True)) == (
        "question 1: candidates[1].confidence must be a number from 0 to 1; got 'high'. Divide a percentage by 100, or "
        "leave it out."
    )
