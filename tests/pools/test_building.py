"""Files join question by question or are refused; what comes of it is a pool, the same whatever the files' order."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.programs.pools.building import BuildResult, Recipe, build_pool, shuffled_order
from eldgr_dspy.words import Task
from tests.case_tables import each_case
from tests.pools import layouts
from tests.pools.layouts import predictions, questions, refusal, rows, write, write_file
from tests.refusing import refuses


def build(folder: Path, *sources: Path, task: Task = "retrieval", **recipe: Any) -> BuildResult:
    return build_pool(Recipe(sources, task, **recipe), folder / "pool.jsonl")


def build_from(folder: Path, files: dict[str, Any], recipe: dict[str, Any]) -> BuildResult:
    paths = {name: write_file(folder / name, content) for name, content in files.items()}
    source = paths.pop(recipe.get("questions", ""), None)
    return build(folder, *paths.values(), **{**recipe, "questions": source})


@each_case("pools", "pools that are built", **layouts.WORDS)
def test_files_join_question_by_question(tmp_path: Path, files: Any, recipe: Any, expected: Any) -> None:
    outcome = build_from(tmp_path, files, recipe)
    pool, lists = rows(outcome), [row.candidates for row in rows(outcome)]
    result: dict[str, Any] = {name: getattr(outcome, name) for name in ("by", "left_out", "cut", "forms")}
    result |= {"missing": outcome.pool.missing, "lacking": [one.replace(f"{tmp_path}/", "") for one in outcome.lacking]}
    result |= {"ids": [row.id for row in pool], "questions": [row.question for row in pool]}
    result |= {"gold": [row.gold for row in pool], "options": [row.options for row in pool]}
    result |= {"evidence": [[[one.title, one.text] for one in row.evidence] for row in pool]}
    fields = {"texts": "text", "answers": "answer", "sources": "source"}
    result |= {name: [[getattr(one, field) for one in row] for row in lists] for name, field in fields.items()}
    assert {name: result[name] for name in expected} == expected


@each_case("pools", "pools that are not built", **layouts.WORDS)
def test_what_does_not_fit_is_refused(tmp_path: Path, files: Any, recipe: Any, sentence: str) -> None:  # hazard 4
    assert refusal(lambda: build_from(tmp_path, files, recipe)).replace(f"{tmp_path}/", "") == sentence
    assert not (tmp_path / "pool.jsonl").exists()


def test_what_is_written_is_a_pool_and_the_order_of_the_lines_changes_no_row(tmp_path: Path) -> None:
    source, questions_file = predictions(tmp_path / "a.jsonl"), questions(tmp_path / "q.jsonl")
    for name in ("pool.jsonl", "pool.jsonl.gz", "pool.parquet"):
        pool = open_pool(build_pool(Recipe([source], "retrieval", questions_file), tmp_path / name).pool.path)
        assert (pool.n, pool.task, pool.missing) == (4, "retrieval", 0)
        assert [row.gold for row in pool.rows()] == [[town] for town in layouts.TOWNS]
    first = build(tmp_path, source, questions=questions_file, shuffle=1)
    second = build(tmp_path, predictions(source, [2, 0, 3, 1]), questions=questions_file, shuffle=1)
    assert first.pool.sha256 == second.pool.sha256


def test_files_of_the_same_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "a.jsonl" for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        predictions(path)
    outcome = build(tmp_path, *paths)
    assert [candidate.source for candidate in rows(outcome)[0].candidates] == [path.as_posix() for path in paths]


def test_files_are_not_read_twice_and_not_overwritten(tmp_path: Path) -> None:
    first, questions_file = predictions(tmp_path / "a.jsonl"), questions(tmp_path / "q.jsonl")
    before = first.read_bytes()
    twice = "is given twice, so its candidates would vote twice; give it once"
    refuses(ArgumentError, twice, build, tmp_path, first, tmp_path / "." / "a.jsonl")
    recipe = Recipe([first], "retrieval", questions_file)
    for out in (first, questions_file):
        refuses(ArgumentError, "is one of the files to read; give the pool another name", build_pool, recipe, out)
    refuses(ArgumentError, "Give at least one file of predictions", build, tmp_path)
    assert first.read_bytes() == before


def test_a_pool_that_was_there_stays_where_the_files_do_not_fit(tmp_path: Path) -> None:  # hazard 89
    (tmp_path / "pool.jsonl").write_text("before")
    with pytest.raises(PoolError):
        build(tmp_path, predictions(tmp_path / "a.jsonl"), predictions(tmp_path / "b.jsonl", [1]))
    assert (tmp_path / "pool.jsonl").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "pool.jsonl"]


@given(st.integers(0, 50), st.integers(), st.text())
def test_an_order_has_every_position_once(n: int, seed: int, name: str) -> None:
    assert sorted(shuffled_order(n, seed, name)) == list(range(n))


def test_an_order_never_changes_every_one_is_as_likely_and_shuffling_keeps_the_candidates(tmp_path: Path) -> None:
    assert shuffled_order(6, seed=7, id="q1") == [2, 0, 1, 4, 3, 5]
    first = [shuffled_order(4, seed, "q")[0] for seed in range(4_000)]
    assert all(900 <= first.count(position) <= 1_100 for position in range(4))
    source = predictions(tmp_path / "a.jsonl", prediction=[f"sample {number}" for number in range(8)])
    plain, one, same, other = (layouts.texts_of(build(tmp_path, source, shuffle=seed).pool) for seed in (None, 1, 1, 2))
    assert one == same != other
    assert one != plain
    assert {name: sorted(result) for name, result in one.items()} == plain
    assert len({tuple(result) for result in one.values()}) > 1  # each question has an order of its own


def test_a_real_pool_taken_apart_is_put_together_again(pools_dir: Path, tmp_path: Path) -> None:
    pool = open_pool(pools_dir / "hotpotqa-reflexion12.jsonl.gz")
    before = list(pool.rows())
    draw, sources = random.Random(5), list[Path]()
    for index in range(12):
        parts = [(row.id, row.candidates[index]) for row in draw.sample(before, len(before))]
        records = [{"id": name, "prediction": {"text": one.text, "answer": one.answer}} for name, one in parts]
        sources.append(write(tmp_path / f"{index}.jsonl", *records))
    file = write(tmp_path / "q.jsonl", *(json.loads(row.model_dump_json(exclude={"candidates"})) for row in before))
    after = rows(build(tmp_path, *sources, questions=file))

    def content(row: Row) -> Any:
        return row.model_dump(exclude={"candidates", "meta"}), [(one.text, one.answer) for one in row.candidates]

    assert [content(row) for row in after] == [content(row) for row in before]
