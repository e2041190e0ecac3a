"""A file is data: no name that a run, a freeze, a recording or a recipe states is imported or called."""

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy import Selector
from eldgr_dspy.base.named_objects import load_object
from eldgr_dspy.errors import ArgumentError, EldgrError, RunChangedError
from eldgr_dspy.formats.journal_lines import seal
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.engines.ollama import ADDRESS, ollama
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.freezes import write_freeze
from eldgr_dspy.programs.run.frozen import frozen_selector
from tests.capitals import row, write_pool
from tests.case_tables import tables_of
from tests.refusing import refuses
from tests.run.freezing import rewrite

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
CODE_SETTINGS = tables_of("hazards")["settings that would run code"]
"""What settings may state that would run code."""
READING: Any = [
    ["show", "run", "q0"], ["report", "run", "--format", "html"], ["report", "run"],
    ["decide", "run", "--rules", "judge"], ["compare", "run", "again=run"], ["export", "run", "--out", "table.csv"],
]  # fmt: skip
SPEAKS = "__import__('pathlib').Path('called').touch()"
"""A candidate that runs if it is evaluated."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool with a candidate that is code, a run on it, and a freeze."""
    folder = tmp_path_factory.mktemp("made")
    pool = write_pool(folder / "capitals.jsonl", [row(0, answers=(SPEAKS, "Nice", "Nice", "Paris")), row(1)])
    rules = ["--rules", "majority,judge,eldgr"]
    assert main(["evaluate", str(pool), *rules, "--out", str(folder / "run"), "--quiet"]) == 0
    write_freeze(heuristic_selector(), ("majority", "eldgr"), folder / "rule.freeze.json")
    return folder


@pytest.fixture(autouse=True)
def desk(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with the run, the freeze, and a module that says when it is imported or called; nothing of it is."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    (tmp_path / "canary.py").write_text(CANARY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "canary", raising=False)
    importlib.invalidate_caches()
    load_object.cache_clear()
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
    journal.write_text("".join([seal(record).decode(), *rest]))


def forge(change: Callable[[dict[str, Any]], object]) -> None:
    """Make the freeze a stranger's: whole, with the right hash, and with this in it."""
    rewrite(Path("rule.freeze.json"), change)


# hazard 113
@pytest.mark.parametrize("entry", CODE_SETTINGS, ids=str)
@pytest.mark.parametrize("command", READING, ids=lambda words: " ".join(words[:1] + words[3:]))
def test_a_command_that_reads_a_run_runs_no_code_that_it_states(command: Sequence[str], entry: Any) -> None:
    """A run that names code is shown from what it recorded; only deciding again needs the code, and is refused."""
    settings(entry)
    (value,) = entry.values()
    assert main([*command]) in ((0,) if isinstance(value, dict) and command[0] != "decide" else (0, 1))


@pytest.mark.parametrize(
    "option", [["--set", "refusals=builtins:eval"], ["--certificate", "builtins:eval"], ["--answer", "builtins:eval"]]
)
def test_a_builtin_is_nobodys_own(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:  # hazard 113
    name = option[1].rpartition("=")[0] or option[0].removeprefix("--")
    settings({name: {"name": "builtins:eval", "source": None}})
    assert main(["decide", "run", "--rules", "judge", *option]) == 1
    output = capsys.readouterr().err
    assert "'eval' is a builtin" in output or "without a hash of its source" in output
    assert main(["evaluate", "capitals.jsonl", "--out", "other", *option]) in (1, 2)
    assert "'eval' is a builtin" in capsys.readouterr().err.replace("\n", " ")


def test_a_saved_program_without_a_hash_is_refused() -> None:  # hazard 113
    Selector().save("select.json")
    content = json.loads(Path("select.json").read_text())
    content["choices"]["refusals"] = {"name": "builtins:eval", "source": None}
    Path("select.json").write_text(json.dumps(content))
    with pytest.raises(ArgumentError, match="'builtins:eval' is stated without a hash of its source"):
        Selector(refusals=eval).load("select.json")


# hazard 113
@pytest.mark.parametrize("entry", CODE_SETTINGS, ids=str)
def test_a_freeze_runs_no_code_that_its_settings_state(entry: Any, capsys: pytest.CaptureFixture[str]) -> None:
    forge(lambda freeze: freeze["settings"].update(entry))
    assert main(["evaluate", "capitals.jsonl", "--freeze", "rule.freeze.json", "--out", "other"]) == 1
    with pytest.raises(EldgrError):
        frozen_selector("rule.freeze.json")


@pytest.mark.parametrize("name", ["canary:rule", "builtins:eval", "canary:sing"])
def test_a_freeze_runs_no_rule_that_it_names(name: str) -> None:  # hazard 113
    forge(lambda freeze: freeze.update(rules={name: {"decisions": "0" * 16}}))
    assert main(["evaluate", "capitals.jsonl", "--freeze", "rule.freeze.json", "--out", "other"]) == 1
    with pytest.raises(EldgrError):
        frozen_selector("rule.freeze.json")


@pytest.mark.parametrize("change", tables_of("hazards")["roles of a freeze"], ids=str)
def test_a_freeze_calls_nothing_that_its_roles_name(change: dict[str, Any]) -> None:  # hazard 114
    forge(lambda freeze: freeze["roles"]["judge"].update(change))
    with pytest.raises(EldgrError):
        frozen_selector("rule.freeze.json")


def set_lm(model: Any = None) -> None:
    """Make the freeze one whose roles have this LM."""
    select = Selector()
    select.set_lm(model or dspy.LM("openai/m"))
    Path("rule.freeze.json").unlink()
    write_freeze(select, ("judge",), Path("rule.freeze.json"))


def call_with(**options: Any) -> Callable[[dict[str, Any]], object]:
    """Give the judge's call these options."""
    return lambda freeze: freeze["roles"]["judge"]["prompts"]["predict"]["config"].update(options)


def lm(**settings: Any) -> Callable[[dict[str, Any]], object]:
    return lambda freeze: freeze["roles"]["judge"]["lm"]["settings"].update(settings)


# hazard 114
@pytest.mark.parametrize(
    "place", ["api_base", "base_url", "headers", "extra_headers", "api_version", "custom_llm_provider"]
)
@pytest.mark.parametrize("where", [lm, call_with], ids=["lm", "call"])
def test_a_freeze_sends_no_key_anywhere(where: Callable[..., Any], place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    set_lm()
    forge(where(**{place: "http://127.0.0.1:9/v1"}))
    with pytest.raises(EldgrError) as info:
        frozen_selector("rule.freeze.json")
    assert "127.0.0.1" not in str(info.value) and "lm=" in str(info.value)


def test_a_name_of_a_model_that_is_an_address_is_refused() -> None:  # hazard 114
    set_lm()
    forge(lambda freeze: [role["lm"].update(model="openai/http://127.0.0.1:9") for role in freeze["roles"].values()])
    refuses(ArgumentError, "does not say where to send a key", frozen_selector, "rule.freeze.json")


def test_a_freeze_opens_no_file_of_a_model() -> None:  # hazard 114
    set_lm()
    Path("secret.txt").write_text("GGUX, said to nobody")
    forge(lambda freeze: [role["lm"].update(model="local:secret.txt") for role in freeze["roles"].values()])
    with pytest.raises(ArgumentError, match=r"names in a file load nothing.*Give the LM: frozen_selector\(\.\.\., lm="):
        frozen_selector("rule.freeze.json")


def test_the_address_is_the_callers_and_is_not_compared() -> None:  # hazard 114
    set_lm(dspy.LM("openai/m", api_base="http://127.0.0.1:9/v1", max_tokens=9))
    refuses(ArgumentError, "was frozen at an address of its own; give it", frozen_selector, "rule.freeze.json")
    for address in ("http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"):
        client: Any = frozen_selector("rule.freeze.json", api_base=address).judge.get_lm()
        assert (client.model, client.kwargs["api_base"], client.kwargs["max_tokens"]) == ("openai/m", address, 9)
    for other in (dspy.LM("openai/n", max_tokens=9), dspy.LM("openai/m", max_tokens=8)):
        refuses(RunChangedError, r"roles\.judge\.lm\.", frozen_selector, "rule.freeze.json", lm=other)
    own = dspy.LM("openai/m", max_tokens=9, api_base="http://127.0.0.1:10/v1")
    assert frozen_selector("rule.freeze.json", lm=own).judge.get_lm() is own


def test_the_address_of_ollama_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:  # hazard 114
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    set_lm(ollama("m", host="http://elsewhere:1", num_ctx=99))
    for address, host in ((None, ADDRESS), ("http://mine:2", "http://mine:2")):
        client: Any = frozen_selector("rule.freeze.json", api_base=address).judge.get_lm()
        assert (client.kwargs["metadata"]["host"], client.kwargs["metadata"]["num_ctx"]) == (host, 99)
