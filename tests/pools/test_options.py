"""The options of a question reach the pool in every format, from a file of questions and from a program."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.pools import open_pool, write_pool
from eldgr_dspy.programs.pools.building import Recipe, build_pool
from eldgr_dspy.programs.pools.completions import pool_from_completions
from eldgr_dspy.programs.run.collecting import Collection, collect
from eldgr_dspy.splitting import split_pool
from tests.pools.joined import predictions, questions, rows
from tests.pools.layouts import write

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
