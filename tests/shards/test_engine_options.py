"""`--engine` on the command line, where no cluster is needed."""

import sys
from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.shards import ray_actors
from tests.refusing import refused
from tests.shards.sharded import sharded


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return sharded(tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--processes", "2"], "--processes needs --engine ray."),
        (["--address", "auto"], "--address needs --engine ray."),
        (["--engine", "ray", "--shard", "1"], "--engine ray cannot be used with --shard. It runs all shards."),
        (["--engine", "ray", "--limit", "1"], "--engine ray cannot be used with --limit. It runs whole pools."),
        (
            ["--engine", "ray", "--fresh"],
            "--engine ray cannot be used with --fresh. Give another --out to start again.",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    directory: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(directory), *options]) == 2
    assert said in capsys.readouterr().err


def test_without_ray_the_remedy_is_said(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["evaluate", str(directory), "--engine", "ray"]) == 1
    assert "needs the package ray; run: pip install 'eldgr_dspy[ray]'" in capsys.readouterr().err


def test_workers_without_the_package_are_named() -> None:
    assert "got none on node7. Install 0.1.0 there" in refused(lambda: ray_actors.require_version("node7", None))
