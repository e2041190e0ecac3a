"""The page of evidence shows what its commands print and what kept replies give again; needs the real pools."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import evidence_tables, selectors
from benchmarks.experiments.real_models.judging import RULES
from benchmarks.experiments.real_models.recording import RESULTS, restore
from eldgr_dspy.programs.commands import main
from eldgr_dspy.rule.named_judges import name_in
from tests.evidence_page import PAGE, TABLES, cells, column

COMPARISONS = re.findall(r"^`python -m benchmarks\.selectors (.+)`\n\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)


def test_each_table_of_results_has_a_command() -> None:
    assert len(TABLES) + len(COMPARISONS) == PAGE.count("| majority |") == 4


@pytest.mark.slow
def test_the_command_prints_the_rows_of_its_table(
    pools_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On one of the pools. For the others `test_pools_as_recorded.py` compares the figures of the same run."""
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    evidence_tables.main(["svamp-codex8"])
    output = dict(row[:2] for row in cells(capsys.readouterr().out) if len(row) == 2)
    assert column("svamp-codex8").items() <= output.items()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for names, _ in COMPARISONS for name in names.split()])
def test_a_command_prints_each_selector_alone_and_locked(
    name: str, pools_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_POOLS", str(pools_dir))
    selectors.main([name, "--untimed"])
    output = {row[0]: row[1:3] for row in cells(capsys.readouterr().out) if len(row) == len(selectors.HEADERS)}
    (head, *rows) = cells(COMPARISONS[0][1])
    for row in rows:
        cell = row[head.index(name)]
        alone, inside = output.get(row[0], ["", ""])
        assert cell == (f"{alone} → {inside}" if inside not in ("", "N/A") else alone), row[0]


ROOT = Path(__file__).resolve().parents[2]
JUDGES = ["--judges", "qwen2.5-coder-1.5b,qwen2.5-coder-0.5b,smollm2-135m"]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "name", "questions"), [(0, "hotpotqa", 150), (1, "mixed", 100), (2, "gsm8k", 200)])
def test_the_kept_replies_give_the_accuracy_that_the_page_shows(
    table: int, name: str, questions: int, pools_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    restore(pools_dir, tmp_path)
    tables = PAGE.split("| rule | EM |")[1:]
    page = dict(re.findall(r"^\| `([^`]+)` \| ([0-9.]+) \| .*[+-][0-9.]+ \[", tables[table], re.MULTILINE))
    options = [*JUDGES, "--rules", ",".join(RULES[name]), "--limit", str(questions)]
    replies, run = str(RESULTS / f"{name}.replies.jsonl.gz"), str(tmp_path / "run")
    assert main(["evaluate", str(tmp_path / f"{name}.jsonl"), "--replay", replies, "--out", run, *options]) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    rules = summary["pools"][name]["rules"]
    rows = {(rule if rule in page else name_in(rule), f"{figures['em']:.2f}") for rule, figures in rules.items()}
    assert rows == {*page.items()}  # a rule that asks no judge has one row for all of them
    assert len(page) == 12
