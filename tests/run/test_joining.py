"""Runs on parts of a pool are joined into one run, which asks nobody and writes what a run in one piece writes."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy import errors
from eldgr_dspy.formats.journal_lines import seal
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.judges.repeated_judges import SwapConsistent
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.joining import join
from eldgr_dspy.programs.testing import scripted_lm
from tests.capitals import NO_SPAN, VERDICT, drop_times, obliging, row, selector_with, write_pool
from tests.case_tables import each_case
from tests.refusing import refuses
from tests.run.journals import json_lines, json_of

ROWS = [row(number, answers=("Nice", "Paris", "Lyon")[: 2 + number % 2]) for number in range(12)]


def run(pool: Path, out: Path, says: Any = obliging, **settings: Any) -> Any:
    """Run a pool with two judges by name, one of which asks in two orders."""
    selector, lm = selector_with(says, **settings)
    judges: dict[str, Any] = {"a": Judge(), "b": SwapConsistent(Judge())}
    for judge in judges.values():
        judge.set_lm(scripted_lm(lambda _: VERDICT if says is obliging else says(_)))
    evaluate(selector, Plan([pool], out, judges=judges, workers=3, max_calls=1_000))
    return lm


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """Two parts of the pool, each of which has been run into `runs/NAME`."""
    write_pool(tmp_path / "whole.jsonl", ROWS)
    files = [write_pool(tmp_path / f"part-{n}.jsonl", ROWS[n::2]) for n in (0, 1)]
    for part, out in zip(files, runs_of(files), strict=True):
        run(part, out)
    return files


def runs_of(parts: Sequence[Path]) -> list[Path]:
    return [part.parent / "runs" / part.stem for part in parts]


def test_a_joined_run_asks_nobody_and_writes_the_same(parts: list[Path], tmp_path: Path) -> None:
    """Parts that overlap are joined whatever their calls took, and what no part has asked is asked."""
    pool, target, whole = tmp_path / "whole.jsonl", tmp_path / "joined", tmp_path / "one"
    run(pool, whole)
    assert join(pool, [*runs_of(parts), runs_of(parts)[0]], target).n == len(ROWS)  # a run may be named twice
    run(pool, target, lambda _: pytest.fail("a role was asked"))
    assert (target / "decisions.jsonl").read_bytes() == (whole / "decisions.jsonl").read_bytes()
    for name in ("summary.json", "record.json"):
        assert drop_times(json_of(target / name)) == drop_times(json_of(whole / name))
    again, (journal, *_) = tmp_path / "runs" / "again", [out / "journal.jsonl" for out in runs_of(parts)]
    shutil.copytree(journal.parent, again)
    slower = [line | {"seconds": 1.5} if line["kind"] == "consultation" else line for line in json_lines(journal)]
    seals = [seal({name: value for name, value in line.items() if name != "crc32"}) for line in slower]
    (again / "journal.jsonl").write_bytes(b"".join(seals))
    assert join(pool, [*runs_of(parts), again], tmp_path / "overlapping").n == len(ROWS)
    join(pool, runs_of(parts)[:1], tmp_path / "half")
    assert len(run(pool, tmp_path / "half").requests) == len(ROWS) // 2  # the repairer of the other part


def test_a_part_that_was_killed_within_a_line_is_joined_and_the_rest_asked(parts: list[Path], tmp_path: Path) -> None:
    pool, target, whole = tmp_path / "whole.jsonl", tmp_path / "joined", tmp_path / "one"
    run(pool, whole)
    journal = runs_of(parts)[1] / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    first, rest = lines[:-3], lines[-3:]
    journal.write_bytes(b"".join(first) + rest[0][:100])
    join(pool, runs_of(parts), target)
    assert len(run(pool, target).requests) == sum(b'"role": "repairer"' in line for line in rest)
    assert (target / "decisions.jsonl").read_bytes() == (whole / "decisions.jsonl").read_bytes()


def run_again(part: Path, says: Any = obliging, **settings: Any) -> None:
    """Put another run of a part in place of the one that there is."""
    (out,) = runs_of([part])
    out.rename(out.with_name("old"))
    run(part, out, says, **settings)


OTHER = {**VERDICT, **NO_SPAN, "preferred": 0}
CHANGES: dict[str, Callable[[Path, Path, Path], object]] = {  # of the first part, the second, and the whole pool
    "other_settings": lambda one, two, whole: run_again(two, certificate="token"),
    "other_replies": lambda one, two, whole: run_again(write_pool(two, ROWS), lambda _: OTHER),
    "other_questions": lambda one, two, whole: write_pool(whole, ROWS[:11]),
    "other_contents": lambda one, two, whole: write_pool(whole, [*ROWS[:11], row(11, answers=("Oslo", "Bonn"))]),
    "no_part": lambda one, two, whole: two.unlink(),
    "another_run": lambda one, two, whole: run(one, whole.with_name("joined")),
}


@each_case("run", "runs that are not parts")
def test_runs_that_are_not_parts_of_one_run_are_refused(
    name: str, kind: str, message: str, parts: list[Path], tmp_path: Path
) -> None:
    CHANGES[name](parts[0], parts[1], tmp_path / "whole.jsonl")
    before = (tmp_path / "joined").exists()
    refuses(getattr(errors, kind), message, join, tmp_path / "whole.jsonl", runs_of(parts), tmp_path / "joined")
    assert (tmp_path / "joined" / "journal.jsonl").exists() == before


def test_the_command_joins_runs_and_says_how_to_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rows in (("whole", ROWS), ("part-0", ROWS[::2]), ("part-1", ROWS[1::2])):
        write_pool(tmp_path / f"{name}.jsonl", rows)
        assert main(["evaluate", f"{name}.jsonl", "--quiet"]) == 0
    assert main(["pool", "join", "whole.jsonl", "runs/part-0", "runs/part-1", "--out", "joined"]) == 0
    assert "eldgr evaluate whole.jsonl --out joined" in capsys.readouterr().err
    assert main(["evaluate", "whole.jsonl", "--out", "joined", "--quiet"]) == 0
    assert Path("joined/decisions.jsonl").read_bytes() == Path("runs/whole/decisions.jsonl").read_bytes()
