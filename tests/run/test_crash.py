"""Runs that are killed at random moments lose nothing; `make crash` does this a thousand times."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KILLS = 24


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the harness waits for its children by pidfd")
def test_killed_runs_finish_as_undisturbed_ones_do_and_lose_only_calls_in_flight() -> None:  # hazard 88
    command = [sys.executable, "-m", "tests.crash", "--kills", str(KILLS), "--seed", "7", "--jobs", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    kills, runs = map(int, re.findall(r"\d+", done.stdout)[:2])
    assert (kills, runs > 0) == (KILLS, True)
    requests, journaled, in_flight = map(
        int, re.findall(r"received (\d+) requests: (\d+) are journaled .*, (\d+) were in flight", done.stdout)[0]
    )
    assert requests == journaled + in_flight
