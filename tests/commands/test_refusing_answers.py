"""The settings `refusals` and `refusal`: of a run, of a run from before them, of a freeze and of bounds."""

import json
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.figures.finished_run import RunRead
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.commands.installed import Eldgr

CANDIDATES = [{"text": text, "answer": text} for text in ("I don't know", "I don’t know.", "Doha")]
EVIDENCE = [{"title": "", "text": "Doha is the capital of Qatar."}]


@pytest.fixture(autouse=True)
def _pool(eldgr: Eldgr) -> None:
    about = {"question": "What is the capital of Qatar?", "evidence": EVIDENCE, "gold": ["Doha"]}
    write_pool(Path("pool.jsonl"), [row(1, candidates=CANDIDATES, **about)])


RUN = ("evaluate", "pool.jsonl", "--out", "run", "--quiet")


def evaluate(eldgr: Eldgr, *options: str) -> Any:
    """The decision of EL-DGR."""
    eldgr(*RUN, *options)
    lines = [json.loads(line) for line in Path("run/decisions.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    return next(line for line in lines if line["rule"] == "eldgr")


@each_case("commands", "settings of refusals")
def test_a_run_decides_by_refusals_and_states_them(options: list[str], answer: str, reason: str, eldgr: Eldgr) -> None:
    result = evaluate(eldgr, "--fresh", *options)
    assert (result["answer"], result["reason"]) == (answer, reason)
    summary = Path("run/summary.json").read_text(encoding="utf-8")
    eldgr(*RUN, *options)  # resumed
    assert Path("run/summary.json").read_text(encoding="utf-8") == summary


def test_a_run_from_before_refusals_is_read_and_resumed_without_them(eldgr: Eldgr) -> None:
    evaluate(eldgr, "--set", "refusals=")
    heads = [json.loads(line) for line in Path("run/journal.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [*heads[0]["details"]] == ["certificate", "derivation", "consult", "homogeneous", "preference"]
    assert RunRead(Path("run"), heads, None).settings.refusals == ()  # type: ignore[arg-type]
    figures = json.loads(eldgr("decide", "run", "--rules", "eldgr", "--json").out)
    assert figures["pools"]["pool"]["rules"]["eldgr"]["em"] == 100  # the judge's Doha
    error = eldgr(*RUN, code=1).err
    assert '  refusal: (absent) -> "inapplicable"\n  refusals: (absent) -> ["I don\'t know"' in error
    eldgr(*RUN, "--set", "refusals=")


def test_a_freeze_keeps_a_function_and_refuses_other_refusals(eldgr: Eldgr) -> None:
    Path("mine.py").write_text("def refuses(answer):\n    return 'know' in answer\n", encoding="utf-8")
    eldgr("freeze", "--heuristic", "--set", "refusals=mine:refuses", "--out", "rule.freeze.json")
    refusals = json.loads(Path("rule.freeze.json").read_text(encoding="utf-8"))["settings"]["refusals"]
    assert refusals["name"] == "mine:refuses"
    result = evaluate(eldgr, "--freeze", "rule.freeze.json", "--set", "refusals=mine:refuses")
    assert result["reason"] == "consensus_inapplicable"
    confirming = ["evaluate", "pool.jsonl", "--out", "other", "--quiet", "--freeze", "rule.freeze.json"]
    lacking = eldgr(*confirming, code=1).err
    assert "it was frozen with refusals='mine:refuses'. Give it: --set refusals=MODULE:NAME" in lacking
    assert "  settings.refusals: " in eldgr(*confirming, "--set", "refusals=None", code=1).err


def test_what_a_judge_can_change_depends_on_the_refusals(eldgr: Eldgr) -> None:
    for options, most in (([], 0), (["--set", "refusals="], 100), (["--set", "refusal=no_answer"], 100)):
        figures = json.loads(eldgr("bound", "pool.jsonl", "--json", *options).out)
        assert figures["pools"]["pool"]["bounds"]["eldgr"][1] == most
