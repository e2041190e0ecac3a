"""Shards that are run one by one and merged are one run: the same figures, byte for byte, whatever the shards."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.answer_types import load_type
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.redecisions import decide_again
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.running import run_shard
from eldgr_dspy.programs.shards.sharding import shard_pools
from tests.capitals import Flaky, obliging, recording, row, selector_with, write_pool
from tests.finished_runs import numbered
from tests.refusing import refused
from tests.shards.sharded import results, run_all, sharded

ANSWERS = st.lists(st.sampled_from(["Nice", "Paris", "Lyon"]), min_size=1, max_size=4)
ROWS = st.lists(st.tuples(st.integers(0, 4), ANSWERS, st.booleans()), min_size=1, max_size=9)


def judged() -> Selector:
    return selector_with(obliging)[0]


@settings(max_examples=5, deadline=None)
@given(ROWS, st.integers(1, 5), st.integers(0, 4), st.booleans())
@example([(0, ["Nice"], True), (1, ["Paris"], True), (0, ["Lyon"], False)], 1, 1, False)
def test_the_merged_run_is_the_plain_one(
    drawn: list[tuple[int, list[str], bool]], size: int, others: int, asks: bool
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            row(n, question=f"What is capital number {text}?", answers=answers, gold=["Paris"] * scored)
            for n, (text, answers, scored) in enumerate(drawn)
        ]
        pools = [write_pool(folder / "capitals.jsonl", rows)]
        pools += [write_pool(folder / "more.jsonl", map(row, range(others)))] * bool(others)
        made = scripted if asks else heuristic_selector
        evaluate(made(), Plan(pools, folder / "plain"))
        shard_pools(pools, folder / "shards", size)
        run_all(folder / "shards", made)
        merge(folder / "shards", folder / "merged")
        assert results(folder / "merged") == results(folder / "plain")


def scripted() -> Selector:
    """A judge that prefers the first candidate, even where another has more votes."""
    return selector_with(
        lambda request: {**said, "preferred": 0} if "preferred" in (said := obliging(request)) else said
    )[0]


def plain_and_merged(
    folder: Path, made: Callable[[], Selector], n: int = 7, **plan: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The results of a plain run, and of a merged one."""
    pool = write_pool(folder / "capitals.jsonl", numbered(n))
    evaluate(made(), Plan([pool], folder / "plain", **plan))
    shard_pools([pool], folder / "shards", 3)
    run_all(folder / "shards", made, **plan)
    merge(folder / "shards", folder / "merged")
    return results(folder / "plain"), results(folder / "merged")


def test_a_question_whose_call_failed_is_decided_without_it_once_more(tmp_path: Path) -> None:
    plain, merged = plain_and_merged(
        tmp_path, lambda: selector_with(Flaky(lambda number: number == 4))[0], max_failures=1
    )
    assert merged == plain
    assert merged["summary.json"]["pools"]["capitals"]["n_failed"] == 1
    failed = [line for line in map(json.loads, merged["decisions"].splitlines()) if line["abstentions"]]
    assert {line["id"] for line in failed} == {"q4"}


def test_what_a_recording_lacks_withholds_a_rule_in_the_merged_run_too(tmp_path: Path) -> None:
    replay = recording(tmp_path / "recorded.jsonl", [f"q{n}" for n in range(4)], pool="capitals")
    plain, merged = plain_and_merged(tmp_path, heuristic_selector, replay=replay)
    assert merged == plain
    assert merged["summary.json"]["pools"]["capitals"]["withheld"]["judge"] == {"judge": 3}


def test_named_judges_have_their_figures_in_the_merged_run_too(tmp_path: Path) -> None:
    plain, merged = plain_and_merged(tmp_path, judged, judges={"a": scripted().judge, "b": heuristic_selector().judge})
    assert merged == plain
    assert [*merged["summary.json"]["pools"]["capitals"]["judges"]] == ["a", "b"]


def test_an_answer_type_of_one_s_own_is_found_by_its_name(tmp_path: Path) -> None:
    kind = load_type("tests.dates:YEARS")
    rows = [row(n, task=kind.name, answers=("1976", "in 1976", "1984"), gold=["1976"]) for n in range(4)]
    pool = write_pool(tmp_path / "capitals.jsonl", rows)
    evaluate(heuristic_selector(answer=kind), Plan([pool], tmp_path / "plain"))
    shard_pools([pool], tmp_path / "shards", 3, kind)
    run_all(tmp_path / "shards", lambda: heuristic_selector(answer=kind))
    merge(tmp_path / "shards", tmp_path / "merged", answer=kind)
    assert results(tmp_path / "merged") == results(tmp_path / "plain")
    assert "must have answers of the type 'choice'" in refused(
        lambda: shard_pools([pool], tmp_path / "other", kind=load_type("choice"))
    )


def test_a_journal_that_was_begun_under_another_name_is_refused(tmp_path: Path) -> None:
    directory = sharded(tmp_path)
    evaluate(heuristic_selector(), Plan([directory / "shards" / "00001.jsonl"], directory / "runs" / "00001"))
    run_all(directory)
    assert "must have consultations on 'capitals' alone; got some on '00001'" in refused(
        lambda: merge(directory, tmp_path / "run"), RunChangedError
    )


def test_the_merged_run_can_be_read_decided_again_and_merged_again(tmp_path: Path) -> None:
    directory = sharded(tmp_path)
    run_all(directory, judged)
    first = merge(directory, tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.finished() and run.summary() == first
    assert decide_again(run, ["eldgr"]).figures["capitals"]["rules"] == first["pools"]["capitals"]["rules"]
    assert decide_again(read_run(directory / "runs" / "00001"), ["eldgr"]).figures["capitals"]["n"] == 3
    assert merge(directory, tmp_path / "run") == first


def test_nothing_is_written_over_another_run(tmp_path: Path) -> None:
    directory = sharded(tmp_path)
    run_all(directory)
    evaluate(judged(), Plan([tmp_path / "capitals.jsonl"], tmp_path / "run"))
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    assert "holds another run. Give another --out." in refused(lambda: merge(directory, tmp_path / "run"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_shards_that_are_not_done_are_named(tmp_path: Path) -> None:
    directory = sharded(tmp_path)
    assert "no shard was run" in refused(lambda: merge(directory, tmp_path / "run"))
    run_shard(directory, 1, heuristic_selector(), Plan([directory]))
    assert "2 of 3 shards are not done (00000, 00002)" in refused(lambda: merge(directory, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def edited(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def _copied(directory: Path) -> None:
    shutil.copy(directory / "done" / "00000.json", directory / "done" / "00001.json")


def _of_another_pool(directory: Path) -> None:
    pool = write_pool(directory.parent / "other" / "capitals.jsonl", numbered(9))
    other = shard_pools([pool], directory.parent / "other" / "shards", 3)
    shutil.copy(other.file(other.shard(2)), directory / "shards" / "00002.jsonl")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "edited shard": (
        lambda directory: edited(directory / "shards" / "00001.jsonl", "Paris", "Milan"),
        "00001.jsonl: must have the sha256",
    ),
    "shard of another pool": (_of_another_pool, "00002.jsonl: must have the sha256"),
    "missing shard": (lambda directory: (directory / "shards" / "00001.jsonl").unlink(), "00001.jsonl: no such file"),
    "one shard too many": (
        lambda directory: shutil.copy(directory / "shards" / "00001.jsonl", directory / "shards" / "00003.jsonl"),
        "00003.jsonl: not a shard that manifest.json names",
    ),
    "shard done twice": (
        lambda directory: shutil.copy(directory / "done" / "00001.json", directory / "done" / "00001 (2).json"),
        r"00001 \(2\).json: not a shard that manifest.json names",
    ),
    "marker of another shard": (_copied, "00001.json: must commit shard 00001"),
    "torn marker": (
        lambda directory: (directory / "done" / "00001.json").write_text("{"),
        "00001.json: not what eldgr evaluate writes",
    ),
    "edited journal": (
        lambda directory: edited(directory / "runs" / "00001" / "journal.jsonl", '"ok"', '"no"'),
        "journal.jsonl: changed since its shard was committed",
    ),
    "missing journal": (
        lambda directory: shutil.rmtree(directory / "runs" / "00001"),
        "journal.jsonl: no such file, and its shard is committed",
    ),
    "other order": (lambda directory: edited(directory / "order.jsonl", "3", "2"), "order.jsonl: not the one"),
    "other manifest": (
        lambda directory: edited(directory / "manifest.json", "capitals.jsonl", "moved.jsonl"),
        "manifest.json is not the one whose shards were run",
    ),
    "other rules": (
        lambda directory: edited(directory / "run.json", '"majority",', ""),
        "00000.json: decided with something else than run.json states",
    ),
    "other version": (
        lambda directory: edited(directory / "done" / "00002.json", '"version": "0', '"version": "9'),
        "00002.json: must be decided by eldgr_dspy 0.*; got 9",
    ),
    "other version here": (
        lambda directory: edited(directory / "run.json", '"version": "0', '"version": "9'),
        "its shards are decided by eldgr_dspy 9.*; got eldgr_dspy 0",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_shards_that_were_changed_or_decided_otherwise_are_refused_by_name(tmp_path: Path, name: str) -> None:
    directory = sharded(tmp_path)
    (tmp_path / "other").mkdir()
    run_all(directory)
    change, said = CHANGES[name]
    change(directory)
    with pytest.raises((RunChangedError, ArgumentError), match=said):
        merge(directory, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_decisions_are_merged_into_a_table_and_a_page_is_written_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("eldgr_dspy.programs.run.pages.MOST_QUESTIONS", 7)
    directory = sharded(tmp_path)
    run_all(directory)
    ways: dict[str, dict[str, Any]] = {"short": {}, "full": {"decisions": "parquet", "pages": True}}
    for name, options in ways.items():
        merge(directory, tmp_path / name, **options)
        plan = Plan([tmp_path / "capitals.jsonl"], tmp_path / f"{name}-plain", **options)
        evaluate(heuristic_selector(), plan)
        held = {path.name for path in (tmp_path / name).iterdir() if not path.name.startswith(".")}
        assert held == {path.name for path in (tmp_path / f"{name}-plain").iterdir() if not path.name.startswith(".")}
    tables = [tmp_path / name / "decisions.parquet" for name in ("full", "full-plain")]
    assert tables[0].read_bytes() == tables[1].read_bytes()
    assert (tmp_path / "full" / "questions.html").exists() and not (tmp_path / "short" / "questions.html").exists()
    said = refused(lambda: merge(directory, tmp_path / "csv", decisions=cast("Any", "csv")))
    assert said == "decisions must be 'jsonl' or 'parquet'; got 'csv'. Give one of them."
