"""A test that stands still is a failure of the run, also where it lets nothing raise in it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

STANDING = """
import threading

def test_that_stands_still():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass

def test_that_passes():
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "message"),
    [("0", "in test_that_stands_still"), ("1", "crashed while running 'tests_that_stand.py::test_that_stands_still'")],
)
def test_a_test_that_stands_still_fails(tmp_path: Path, workers: str, message: str) -> None:
    (tmp_path / "tests_that_stand.py").write_text(STANDING)
    arguments = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", ".", "-o", "faulthandler_timeout=3", "-n", workers]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, "tests_that_stand.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
