"""The same bad pools through the command: a sentence on standard error, exit code 1, and nothing done."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.base.files import safe_name
from eldgr_dspy.programs.commands import main
from tests.case_tables import each_case
from tests.hazards.bad_pools import BAD_CONTENTS, BAD_POOLS, bad_file, record, write_lines

MODEL = ("--lm", "openai/none", "--api-base", "http://127.0.0.1:9/v1")
"""A model that answers nobody: a command that called it would stop with exit code 3."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder two floors below the test's own, so that `../..` stays inside it."""
    folder = tmp_path / "two" / "floors"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def files() -> dict[str, bytes | None]:
    """All that there is in and above the working folder, with its content."""
    root = Path.cwd().parent.parent
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))}


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says when it refuses, having done nothing."""
    before = files()
    code = main(["evaluate", *arguments])
    out, err = capsys.readouterr()
    assert (code, out, files()) == (1, "", before)
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err.removeprefix("Error: ").rstrip("\n")


@pytest.mark.parametrize("extra", [(), MODEL], ids=["heuristic", "model"])
@pytest.mark.parametrize(("records", "message"), BAD_POOLS)  # hazards 1, 4, 7, 10, 92
def test_a_bad_row_is_named_before_any_call(
    capsys: pytest.CaptureFixture[str], records: Any, message: str, extra: tuple[str, ...]
) -> None:
    """The bad row stands in the last pool."""
    write_lines(Path("good.jsonl"), [record(0)])
    write_lines(Path("bad.jsonl"), records)
    assert refusal(capsys, "good.jsonl", "bad.jsonl", *extra) == f"bad.jsonl{message}"


@pytest.mark.parametrize("name", BAD_CONTENTS)  # hazards 92, 94, 95, 96
def test_a_file_that_is_not_a_pool_is_named_before_any_call(capsys: pytest.CaptureFixture[str], name: str) -> None:
    bad_file(Path(), name)
    message = refusal(capsys, name, *MODEL)
    checks = (message.startswith(name), message.endswith("."), BAD_CONTENTS[name][1] in message)
    assert checks == (True, True, True), message


@each_case("hazards", "no files")
def test_what_is_not_a_file_is_refused_with_why(capsys: pytest.CaptureFixture[str], name: str, message: str) -> None:
    Path("broken.jsonl").symlink_to("nowhere")
    Path("circle.jsonl").symlink_to("circle.jsonl")
    Path("folder.jsonl").mkdir()
    assert refusal(capsys, name) == f"{name}: {message}"


def test_a_pool_that_may_not_be_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    write_lines(Path("p.jsonl"), [record(0)]).chmod(0)
    code = main(["evaluate", "p.jsonl"])
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    assert err == "Error: p.jsonl: Permission denied. Check its permissions and those of its folder.\n"
    assert not Path("runs").exists()


def test_a_run_that_is_there_is_not_touched_by_a_bad_pool(capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(Path("p.jsonl"), [record(0), record(1)])
    assert main(["evaluate", "p.jsonl", "--quiet"]) == 0
    write_lines(path, [record(0), record(0)])
    for extra in ((), ("--fresh",)):
        assert "make ids unique" in refusal(capsys, "p.jsonl", *extra)


def test_a_recording_that_cannot_be_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(Path("p.jsonl"), [record(0)])
    Path("replay.jsonl").write_text("{")
    assert refusal(capsys, "p.jsonl", "--replay", "replay.jsonl").startswith("replay.jsonl, line 1: not a JSON object")


def test_odd_pools_that_are_pools_are_decided(capsys: pytest.CaptureFixture[str]) -> None:
    # hazards 2, 3, 5, 6, 8, 9, 11
    pools: list[list[str | None]] = [
        ["Nice"], ["", None, " "], ["Nice", "Lyon", "Lyon", "Nice"], ["Nice", "Lyon", "Brest", "Tours"],
    ]  # fmt: skip
    pools += [["Nice"] * 5, [None, "Lyon"]]
    write_lines(
        Path("p.jsonl"), (record(n, candidates=[{"answer": one} for one in answers]) for n, answers in enumerate(pools))
    )
    assert main(["evaluate", "p.jsonl", "--json", "--rules", "majority"]) == 0
    assert json.loads(capsys.readouterr().out)["pools"]["p"]["n"] == 6
    lines = map(json.loads, Path("runs/p/decisions.jsonl").read_text(encoding="utf-8").split("\n")[:-1])
    results = [(line["answer"], line["tie"]) for line in lines]
    assert results == [("Nice", False), (None, False), ("Nice", True), ("Nice", True), ("Nice", False), ("Lyon", False)]


def test_the_directory_that_a_user_names_is_taken_as_it_is(here: Path) -> None:  # hazard 98
    write_lines(Path("p.jsonl"), [record(0)])
    assert main(["evaluate", "p.jsonl", "--quiet", "--out", "../../x"]) == 0
    assert (here.parent.parent / "x" / "summary.json").is_file()
    assert main(["evaluate", "p.jsonl", "--quiet", "--out", str(here / "absolute")]) == 0
    (here / "elsewhere").symlink_to("absolute")
    assert main(["evaluate", "p.jsonl", "--quiet", "--out", "elsewhere"]) == 0
    assert [path.name for path in here.iterdir() if path.name == "runs"] == []


@each_case("hazards", "hostile names")
def test_the_directory_of_a_hostile_name_is_a_plain_one_below_runs(  # hazard 98
    here: Path, capsys: pytest.CaptureFixture[str], pools: list[str], name: str
) -> None:
    for pool in pools:
        write_lines(Path(pool), [record(0)])
    assert main(["evaluate", *pools]) == 0, capsys.readouterr().err
    assert [path.name for path in (here / "runs").iterdir()] == [name] == [safe_name(name)]
    assert (here / "runs" / name / "report.html").is_file()
