"""`--answer MODULE:NAME` in every command that opens a pool, as a user types it."""

import json
import linecache
import shutil
import sys
from pathlib import Path

import pytest

from eldgr_dspy import answer_types
from eldgr_dspy.base.named_objects import object_named
from eldgr_dspy.programs.commands.options import AnswerName
from eldgr_dspy.programs.run.frozen import frozen_selector
from tests.commands.installed import Eldgr

TYPES = """
import re

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.matching.text_keys import AnswerClass


def year_in(answer):
    found = re.search("[0-9]{4}", answer)
    return found and found[0]


class Years(AnswerType):
    way = "evidence"
    scores = ("accuracy",)

    def read(self, answer):
        year = year_in(answer)
        return year and AnswerClass(year)

    def is_right(self, answer, gold):
        return self.class_of(answer) in [self.class_of(right) for right in gold]


years = Years()
"""
NAME = "own_types:years"
ROW = {
    "id": "q",
    "question": "When did it open?",
    "task": NAME,
    "candidates": [
        {"text": "It was in 1977, or rather 1976.", "answer": "in 1976"},
        {"answer": "1977"},
        {"answer": "1977."},
    ],
    "evidence": [{"text": "It opened in 1976."}],
    "gold": ["1976"],
}


@pytest.fixture(autouse=True)
def types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("own_types.py").write_text(TYPES)
    Path("years.jsonl").write_text(json.dumps(ROW) + "\n")
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on as in a new process."""
    monkeypatch.setattr(answer_types, "_OWN", {})
    monkeypatch.setattr(answer_types, "_SHOWN", {})
    monkeypatch.delitem(sys.modules, "own_types", raising=False)
    shutil.rmtree("__pycache__", ignore_errors=True)
    linecache.clearcache()
    object_named.cache_clear()


def change(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    Path("own_types.py").write_text(TYPES.replace(old, new))
    forget(monkeypatch)


def said(eldgr: Eldgr, *words: str, code: int = 0) -> str:
    """What a command prints where it succeeds, and else why it does not."""
    out, err = eldgr(*words, code=code)
    return err if code else out


def evaluated(eldgr: Eldgr, *more: str, code: int = 0) -> str:
    return said(eldgr, "evaluate", "years.jsonl", "--answer", NAME, "--out", "run", *more, code=code)


@pytest.mark.parametrize("command", ["evaluate", "bound", "pool check"])
def test_a_pool_imports_nothing(eldgr: Eldgr, command: str) -> None:
    told = said(eldgr, *command.split(), "years.jsonl", code=1)
    assert "task is 'own_types:years' (str); expected one of" in told
    assert told.endswith("or your own module:name, given as --answer.\n")
    assert "own_types" not in sys.modules
    if command != "evaluate":  # with it the pool is read
        figures = json.loads(said(eldgr, *command.split(), "years.jsonl", "--answer", NAME, "--format", "json"))
        assert figures["pools"]["years"]["task"] == NAME


def test_a_pool_of_another_type_is_refused(eldgr: Eldgr) -> None:
    Path("years.jsonl").write_text(json.dumps({**ROW, "task": "short"}) + "\n")
    assert "must have answers of the type 'own_types:years'; got 'short'." in evaluated(eldgr, code=1)


def test_a_run_votes_scores_and_certifies_by_the_type(eldgr: Eldgr) -> None:
    evaluated(eldgr)
    pool = json.loads(Path("run/summary.json").read_text())["pools"]["years"]
    assert pool["answer_type"] == {"way": "evidence", "scores": ["accuracy"]}
    assert [pool["rules"][rule]["em"] for rule in ("majority", "certified")] == [0.0, 100.0]
    assert {*pool["bounds_any_span"].values()} == {None}
    decided = map(json.loads, Path("run/decisions.jsonl").read_text().splitlines())
    assert {one["rule"]: one["answer"] for one in decided}["certified"] == "in 1976"
    stated = json.loads(Path("run/journal.jsonl").read_text().partition("\n")[0])["details"]["answer"]
    assert (stated["name"], len(stated["source"])) == (NAME, 16)
    assert json.loads(Path("run/record.json").read_text())["settings"]["answer"] == stated


def test_a_shared_name_means_the_type_that_was_loaded_last() -> None:
    Path("own_types.py").write_text(f"{TYPES}\n\nYears.name = 'shared'\none, other = Years(), Years()\n")
    for name in ("one", "other", "one"):
        loaded = answer_types.load_type(f"own_types:{name}")
        assert answer_types.answer_type("shared") is loaded
        assert loaded.loaded_as == f"own_types:{name}"


def test_what_an_option_names_is_found_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own_types.py").write_text(f"{TYPES}\n\nYears.name = 'by_year'\n")
    name = AnswerName().convert(NAME, None, None)
    forget(monkeypatch)
    assert answer_types.load_type(name).name == "by_year"


def test_a_type_may_say_what_is_right_in_the_truth_values_of_numpy(eldgr: Eldgr) -> None:
    is_right = "self.class_of(answer) in [self.class_of(right) for right in gold]"
    with_numpy = TYPES.replace("import re", "import re\n\nimport numpy").replace(is_right, f"numpy.bool_({is_right})")
    Path("own_types.py").write_text(with_numpy)
    evaluated(eldgr)
    assert Path("run", "summary.json").exists()


def test_a_finished_run_is_shown_without_the_type(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(eldgr)
    Path("own_types.py").unlink()
    forget(monkeypatch)
    assert "accuracy %" in said(eldgr, "report", "run")
    assert "The same settings" in said(eldgr, "compare", "run", "again=run")


def test_a_run_whose_type_has_changed_is_refused(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(eldgr)
    evaluated(eldgr)
    change(monkeypatch, "year and AnswerClass(year)", 'AnswerClass(year or "none")')
    assert "answer.source" in evaluated(eldgr, code=1)
    told = said(
        eldgr, "evaluate", "years.jsonl", "--answer", NAME, "--replay", "run/journal.jsonl", "--out", "other", code=1
    )
    assert "recorded with another answer type 'own_types:years': source" in told
    told = said(eldgr, "decide", "run", "--rules", "majority", "--answer", NAME, code=1)
    assert "run: answer='own_types:years' is not what the file states: source: " in told


@pytest.mark.parametrize(
    ("changed", "named"), [("{4}", "code.own_types"), ("year and AnswerClass(year)", "settings.answer.source")]
)
def test_a_freeze_holds_the_type_and_what_it_uses(
    eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch, changed: str, named: str
) -> None:
    said(eldgr, "freeze", "--heuristic", "--answer", NAME, "--out", "rule.freeze.json")
    confirming = ("evaluate", "years.jsonl", "--freeze", "rule.freeze.json", "--answer", NAME)
    said(eldgr, *confirming, "--out", "first")
    assert frozen_selector("rule.freeze.json", answer=NAME).type.name == NAME
    change(monkeypatch, changed, changed + " ")
    assert f"  {named}: " in said(eldgr, *confirming, "--out", "second", code=1)


def test_a_name_that_is_no_type_is_refused(eldgr: Eldgr) -> None:
    assert "answer must be one of" in said(eldgr, "bound", "years.jsonl", "--answer", "year", code=2)
    assert "has no 'months'" in said(eldgr, "bound", "years.jsonl", "--answer", "own_types:months", code=2)


def test_a_finished_run_is_decided_and_shown_again(eldgr: Eldgr, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(eldgr)
    forget(monkeypatch)
    assert "own_types:years, 1 question" in said(
        eldgr, "decide", "run", "--rules", "majority,certified", "--answer", NAME
    )
    forget(monkeypatch)
    output = said(eldgr, "show", "run", "q")
    assert "it was made with" not in output and "1976" in output
    assert "own_types" not in sys.modules
    assert "in 1976 (consensus)" not in output
    assert "1977 (consensus)" in said(eldgr, "show", "run", "q", "--answer", NAME)
