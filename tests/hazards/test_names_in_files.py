"""A file is data: no name that a run, a lock, shards, a recording or a recipe states is imported or called."""

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy import Selector
from eldgr_dspy.errors import EldgrError
from eldgr_dspy.journal_lines import sealed
from eldgr_dspy.named_objects import object_named
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.locks import freeze
from tests.capitals import row, write_pool
from tests.run.frozen import rewrite

CANARY = """
from pathlib import Path

Path("imported").touch()


def sing(*given, **named):
    Path("called").touch()
    return True


def rule(case):
    Path("called").touch()
    yield "judge"


class Module:
    def __init__(self, *given, **named):
        Path("called").touch()
"""
STATED: Any = [
    {"refusals": {"name": "builtins:eval", "source": None}},
    {"refusals": {"name": "canary:sing", "source": None}},
    {"refusals": "canary:sing"},
    {"certificate": {"name": "canary:sing", "source": None}},
    {"certificate": {"name": "canary:sing"}},
    {"certificate": "canary:sing"},
    {"answer": {"name": "canary:Module", "source": None}},
    {"answer": {"name": "short", "loaded_as": "canary:Module", "source": None}},
    {"answer": "canary:Module"},
]
"""What settings may state that would run code."""
READING: Any = [
    ["show", "run", "q0"],
    ["report", "run", "--format", "html"],
    ["report", "run"],
    ["decide", "run", "--rules", "judge"],
    ["compare", "run", "run"],
    ["export", "run", "--out", "table.csv"],
    ["reproduce", "eldgr=run"],
]
SPEAKS = "__import__('pathlib').Path('called').touch()"
"""A candidate that runs if it is evaluated."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool with a candidate that is code, a run on it, and a lock."""
    folder = tmp_path_factory.mktemp("made")
    pool = write_pool(folder / "capitals.jsonl", [row(0, answers=(SPEAKS, "Nice", "Nice", "Paris")), row(1)])
    rules = ["--rules", "majority,judge,eldgr"]
    assert main(["evaluate", str(pool), *rules, "--out", str(folder / "run"), "--quiet"]) == 0
    freeze(heuristic_selector(), ("majority", "eldgr"), folder / "rule.lock.json")
    return folder


@pytest.fixture(autouse=True)
def desk(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with the run, the lock, and a module that says when it is imported or called; nothing of it is."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "canary.py").write_text(CANARY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "canary", raising=False)
    importlib.invalidate_caches()
    object_named.cache_clear()
    yield
    assert [name for name in ("imported", "called") if Path(name).exists()] == []
    assert "canary" not in sys.modules


def settings(change: dict[str, Any]) -> None:
    """Make the run one whose settings state this too."""
    journal = Path("run/journal.jsonl")
    head, *rest = journal.read_text().splitlines(keepends=True)
    record = json.loads(head)
    assert record["kind"] == "settings"
    record["details"] |= change
    record.pop("crc", None)
    journal.write_text("".join([sealed(record).decode(), *rest]))


def frozen(change: Callable[[dict[str, Any]], object]) -> None:
    """Make the lock a stranger's: whole, with the right hash, and with this in it."""
    rewrite(Path("rule.lock.json"), change)


# hazard 111
@pytest.mark.parametrize("stated", STATED, ids=str)
@pytest.mark.parametrize("command", READING, ids=lambda words: " ".join(words[:1] + words[3:]))
def test_a_command_that_reads_a_run_runs_no_code_that_it_states(command: Sequence[str], stated: Any) -> None:
    settings(stated)
    main([*command])


# hazard 111
@pytest.mark.parametrize("stated", STATED, ids=str)
def test_a_lock_runs_no_code_that_its_settings_state(stated: Any, capsys: pytest.CaptureFixture[str]) -> None:
    frozen(lambda lock: lock["settings"].update(stated))
    assert main(["evaluate", "capitals.jsonl", "--lock", "rule.lock.json", "--out", "other"]) == 1
    with pytest.raises(EldgrError):
        Selector.from_frozen("rule.lock.json")


# hazard 111
@pytest.mark.parametrize("name", ["canary:rule", "builtins:eval", "canary:sing"])
def test_a_lock_runs_no_rule_that_it_names(name: str) -> None:
    frozen(lambda lock: lock.update(rules={name: {"decisions": "0" * 16}}))
    assert main(["evaluate", "capitals.jsonl", "--lock", "rule.lock.json", "--out", "other"]) == 1
    with pytest.raises(EldgrError):
        Selector.from_frozen("rule.lock.json")


def judge(**changed: Any) -> Callable[[dict[str, Any]], object]:
    return lambda lock: lock["roles"]["judge"].update(changed)


# hazard 112
@pytest.mark.parametrize(
    "change",
    [
        judge(module="os.abort"),
        judge(module="canary.sing"),
        judge(module="canary.Module"),
        judge(module="eldgr_dspy.programs.commands.main"),
        judge(attributes={"self": {"formula": "canary:sing"}}),
        judge(attributes={"self": {"source": {"name": "canary:sing", "source": None}}}),
        judge(attributes={"self": {"formula": "autodspy:rule.lock.json"}}),
    ],
)
def test_a_lock_calls_nothing_that_its_roles_name(change: Callable[[dict[str, Any]], object]) -> None:
    frozen(change)
    with pytest.raises(EldgrError):
        Selector.from_frozen("rule.lock.json")
