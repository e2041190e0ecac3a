"""Runs under a freeze, and changes of what was frozen."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.freezes import read_freeze
from eldgr_dspy.programs.selector import Selector

TWO = ("majority", "eldgr")


def run(pool: Path | Sequence[Path], freeze: Path, out: str, selector: Selector | None = None, **more: Any) -> Any:
    """What a run under a freeze says of its confirmation."""
    pools = [pool] if isinstance(pool, Path) else pool
    plan = Plan(pools, Path(out), rules=TWO, freeze=freeze, **more)
    return evaluate(selector or heuristic_selector(), plan)["confirmation"]


def reword(selector: Selector) -> None:
    (predictor,) = selector.judge.predictors()
    signature: Any = predictor.signature
    predictor.signature = signature.with_instructions("Choose.")


def demonstrate(selector: Selector) -> None:
    for predictor in selector.judge.predictors():
        predictor.demos = [dspy.Example(question="Which?", preferred=1)]


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Make the freeze that another version, or another machine, would have made."""
    content = dict(read_freeze(path).content)
    change(content)
    path.unlink()
    path.write_text(json.dumps({**content, "sha256": hash_of(content)}))


def hash_of(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def command(*arguments: str, path: Path | None = None, stdout: Any = PIPE) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own, which imports anew, from a folder before all others."""
    code = "import sys; from eldgr_dspy.programs.commands import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(path)} if path else None
    whole = [sys.executable, "-c", code, *arguments]
    return subprocess.run(whole, stdout=stdout, stderr=PIPE, text=True, check=False, env=environment)


def imported_anew(patch: pytest.MonkeyPatch, name: str) -> Any:
    """A module of the working directory as it now is."""
    patch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    return importlib.import_module(name)
