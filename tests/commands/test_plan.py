"""`eldgr plan`: a table, or JSON, before anything is spent."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.figures.planning import plan_ahead
from tests.commands.installed import Eldgr

LEVEL: Any = {"power": 0.8, "alpha": 0.05}
PLAN = "from eldgr_dspy.programs.commands import main; code = main(['plan', '--gain', '2', '--discordant', '6'])"


def test_it_says_how_many_questions_a_gain_needs(eldgr: Eldgr) -> None:
    out = eldgr("plan", "--gain", "2", "--discordant", "6").out
    assert "questions to see +2.00 with power 0.8 at alpha 0.05" in out
    assert "│ 6.00         │     1,244 │      0.8000 │                 50–25 │" in out
    assert json.loads(eldgr("plan", "--gain", "2", "--discordant", "6", "--json").out) == plan_ahead(2.0, 6.0, **LEVEL)


def test_a_smaller_alpha_and_more_power_need_more(eldgr: Eldgr) -> None:
    found = [
        json.loads(eldgr("plan", "--gain", "2", "--discordant", "6", "--json", *more).out)["questions"]
        for more in ((), ("--power", "0.9"), ("--power", "0.9", "--alpha", "0.0125"))
    ]
    assert found == sorted(set(found))


def process(code: str, **options: Any) -> Any:
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False, **options)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
def test_a_plan_that_cannot_be_printed_is_an_error_and_a_closed_pipe_is_not() -> None:
    with Path("/dev/full").open("wb") as full:
        done = process(f"import sys; {PLAN}; sys.exit(code)", stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: The plan could not be written: Standard output: No space")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = process(f"import sys; {PLAN}; sys.exit(code)", stdout=closed)
    assert (done.returncode, done.stderr) == (0, b"")
