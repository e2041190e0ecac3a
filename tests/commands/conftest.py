"""The command as a user types it, in an empty folder; what it prints, and its exit code."""

from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main
from tests.commands.installed import Eldgr, Output
from tests.finished_runs import finished_run


@pytest.fixture
def eldgr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Eldgr:
    monkeypatch.chdir(tmp_path)

    def invoke(*words: str | Path, code: int = 0) -> Output:
        capsys.readouterr()
        assert main([*map(str, words)]) == code
        out, err = capsys.readouterr()
        return Output(out, err)

    return invoke


@pytest.fixture
def run(eldgr: Eldgr, tmp_path: Path) -> Path:
    return finished_run(tmp_path)[0]
