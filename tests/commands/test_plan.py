"""`eldgr plan`: a table, or JSON, before anything is spent."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.statistics import mcnemar_power, questions_needed
from tests.commands.installed import Eldgr

PLAN = "from eldgr_dspy.programs.commands import main; code = main(['plan', '--gain', '2', '--discordant', '6'])"


def test_it_says_how_many_questions_a_gain_needs(eldgr: Eldgr) -> None:
    out = eldgr("plan", "--gain", "2", "--discordant", "6").out
    assert "questions to see +2.00 with power 0.8 at alpha 0.05" in out
    assert "│ 6.00         │     1,244 │      0.8000 │                 50–25 │" in out
    figures = json.loads(eldgr("plan", "--gain", "2", "--discordant", "6", "--json").out)
    assert figures["questions"] == questions_needed(0.02, 0.06) == 1_244
    assert figures["power_there"] == mcnemar_power(1_244, 0.02, 0.06) >= 0.8
    assert (figures["wins"] - figures["losses"], figures["wins"] + figures["losses"]) == pytest.approx((24.88, 74.64))


def test_a_gain_that_no_test_can_show_is_refused(eldgr: Eldgr) -> None:
    assert eldgr("plan", "--gain", "8", "--discordant", "6.5", code=1).err == (
        "Error: gain=8 is more than discordant=6.5: wins minus losses can't be more than wins and losses together. "
        "Give both in percent of all questions.\n"
    )
    for gain in ("0", "-1", "101", "nan"):
        assert main(["plan", "--gain", gain, "--discordant", "100"]) != 0


def test_a_smaller_alpha_and_more_power_need_more(eldgr: Eldgr) -> None:
    results = [
        json.loads(eldgr("plan", "--gain", "2", "--discordant", "6", "--json", *more).out)["questions"]
        for more in ((), ("--power", "0.9"), ("--power", "0.9", "--alpha", "0.0125"))
    ]
    assert results == sorted(set(results))


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
