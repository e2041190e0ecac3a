"""Processes that run shards are killed and started again: nothing is lost, nothing is asked twice, one run results."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.running import uncommitted
from tests.commands.installed import COMMAND
from tests.house.doc_blocks import ROOT
from tests.shards.sharded import results, sharded

PATIENCE = 120.0  # seconds, for a machine that is busy


def until_further(directory: Path, done: int) -> None:
    """Start the command, and kill it when more shards are done than were, in the middle of the next one."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([*COMMAND, "evaluate", str(directory), "--quiet"], env=environment) as process:
        end = time.monotonic() + PATIENCE
        while len([*(directory / "done").glob("*.json")]) <= done and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_driver_that_is_killed_five_times_leaves_a_run_as_undisturbed(tmp_path: Path) -> None:
    directory, kills = sharded(tmp_path, rows=4, n=40), 0
    while left := uncommitted(directory):
        until_further(directory, 10 - len(left) if kills < 5 else 10)
        kills += 1
        assert kills < 20
    assert kills >= 5
    merge(directory, tmp_path / "merged")
    evaluate(heuristic_selector(), Plan([tmp_path / "capitals.jsonl"], tmp_path / "plain"))
    assert results(tmp_path / "merged") == results(tmp_path / "plain")
    keys = [entry.key for entry in read_journal(tmp_path / "merged" / "journal.jsonl")]
    assert len(keys) == len(set(keys))
