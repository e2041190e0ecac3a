"""The commands about shards do in a shell what the pages say, and refuse what shards cannot have."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from tests.capitals import write_pool
from tests.commands.installed import COMMAND
from tests.finished_runs import numbered
from tests.house.doc_blocks import ROOT, blocks
from tests.shards.object_store import new_bucket, serving
from tests.shards.sharded import results


@pytest.fixture
def _store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For the block that needs it, an object store with the bucket that it names."""
    if "s3://" not in request.node.name:
        yield
        return
    with serving() as (_, address):
        new_bucket(address, monkeypatch, "my-bucket")
        yield


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_pool(tmp_path / "capitals.jsonl", numbered(7))


def said(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert main([*arguments]) == code
    return capsys.readouterr().err


def test_a_pool_is_cut_run_and_merged_by_three_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 shards of capitals written to s." in said(
        capsys, 0, "pool", "shard", "capitals.jsonl", "--rows", "3", "--out", "s"
    )
    assert said(capsys, 1, "merge", "s") == "Error: s: no shard was run. Run eldgr evaluate s first.\n"
    assert said(capsys, 0, "evaluate", "s", "--shard", "2").startswith("Shard 2 is done.")
    assert "2 of 3 shards are not done (00000, 00001)" in said(capsys, 1, "merge", "s")
    assert said(capsys, 0, "evaluate", "s") == "All shards are done. Make one run of them: eldgr merge s\n"
    assert said(capsys, 0, "evaluate", "s", "--shard", "1", "--quiet") == ""
    assert "Written to runs/capitals." in said(capsys, 0, "merge", "s")
    evaluate(heuristic_selector(), Plan([Path("capitals.jsonl")], Path("plain")))
    assert results(Path("runs/capitals")) == results(Path("plain"))


def test_a_shard_of_another_process_is_left_to_it_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, 0, "pool", "shard", "capitals.jsonl", "--rows", "3", "--out", "s")
    Path("s/runs").mkdir()
    with locked(Path("s/runs/.00000.lock"), "busy"):
        assert "another process is running shard 00000" in said(capsys, 1, "evaluate", "s")
    assert sorted(path.name for path in Path("s/done").iterdir()) == ["00001.json", "00002.json"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["s", "capitals.jsonl"], 2, "s is a directory of shards. Give it alone."),
        (["capitals.jsonl", "--shard", "0"], 2, "--shard needs a directory of eldgr pool shard; got capitals.jsonl."),
        (["s", "--dry-run"], 2, "--dry-run takes no shards."),
        (["s", "--max-cost", "9"], 2, "--max-cost limits one shard."),
        (["s", "--out", "here"], 1, "out must be left out for a shard"),
        (["s", "--limit", "2"], 1, "limit must be left out for a shard"),
        (["s", "--shard", "3"], 1, "shard must be a number from 0 to 2; got 3."),
    ],
)
def test_what_shards_cannot_have_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    said(capsys, 0, "pool", "shard", "capitals.jsonl", "--rows", "3", "--out", "s")
    assert message in " ".join(said(capsys, code, "evaluate", *arguments).split())
    assert not Path("s/run.json").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("_store")
@pytest.mark.skipif(sys.platform == "win32", reason="the blocks are for a POSIX shell")
@pytest.mark.parametrize("way", ["xargs", "--engine ray", "s3://my-bucket"])
def test_a_shell_block_of_the_page_makes_the_plain_run(way: str, tmp_path: Path) -> None:
    if "ray" in way:
        pytest.importorskip("ray", reason="ray is not installed; the extra `test` has it")
    page = ROOT / "docs" / "how-to" / "run-in-shards.md"
    typed = next(block.text for block in blocks(page) if block.language == "sh" and way in block.text)
    (tmp_path / "artifacts").symlink_to(ROOT / "artifacts")
    eldgr = tmp_path / "bin" / "eldgr"
    eldgr.parent.mkdir()
    eldgr.write_text(f'#!/bin/sh\nexec "{COMMAND[0]}" -c "{COMMAND[2]}" "$@"\n')
    eldgr.chmod(eldgr.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{eldgr.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-e", "-c", typed], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    evaluate(heuristic_selector(), Plan([Path("artifacts/demo-retrieval.jsonl")], Path("plain")))
    assert results(Path("runs/merged")) == results(Path("plain"))
