"""The page of evidence shows what the kept replies of real models give again, without a model; needs the real pools."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.experiments.real_models.judging import RULES
from benchmarks.experiments.real_models.recording import KEPT, restore
from eldgr_dspy.programs.commands import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
JUDGES = "qwen2.5-coder-1.5b,qwen2.5-coder-0.5b,smollm2-135m"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "questions", "table"), [("hotpotqa", 150, 0), ("mixed", 100, 1)])
def test_the_kept_replies_give_the_accuracy_that_the_page_shows(
    name: str, questions: int, table: int, pools_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    restore(pools_dir, tmp_path)
    tables = PAGE.split("| rule | EM | F1 | against majority")[1:]
    page = dict(re.findall(r"^\| `([^`]+)` \| ([0-9.]+) \| [0-9.]+ \| [+-]", tables[table], re.MULTILINE))
    options = ["--judges", JUDGES, "--rules", ",".join(RULES[name]), "--limit", str(questions)]
    replies, run = str(KEPT / f"{name}.replies.jsonl.gz"), str(tmp_path / "run")
    assert main(["evaluate", str(tmp_path / f"{name}.jsonl"), "--replay", replies, "--out", run, *options]) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    rules = summary["pools"][name]["rules"]
    assert page == {rule: f"{figures['em']:.2f}" for rule, figures in rules.items()}
    assert len(page) == 12
