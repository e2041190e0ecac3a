"""The page of evidence shows what the kept replies of real models give again, without a model; needs the real pools."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.experiments.real_models.judging import RULES, WITHOUT_JUDGE
from benchmarks.experiments.real_models.recording import KEPT, restore
from eldgr_dspy.programs.commands import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
JUDGES = ["--judges", "qwen2.5-coder-1.5b,qwen2.5-coder-0.5b,smollm2-135m"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "questions", "table", "rules", "judges"),
    [
        ("hotpotqa", 150, 0, RULES["hotpotqa"], JUDGES),
        ("mixed", 100, 1, RULES["mixed"], JUDGES),
        ("gsm8k", 200, 2, WITHOUT_JUDGE, []),
    ],
    ids=["hotpotqa", "mixed", "gsm8k"],
)
def test_the_kept_replies_give_the_accuracy_that_the_page_shows(
    name: str,
    questions: int,
    table: int,
    rules: tuple[str, ...],
    judges: list[str],
    pools_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    restore(pools_dir, tmp_path)
    tables = PAGE.split("| rule | EM |")[1:]
    page = dict(re.findall(r"^\| `([^`]+)` \| ([0-9.]+) \| .*[+-][0-9.]+ \[", tables[table], re.MULTILINE))
    options = [*judges, "--rules", ",".join(rules), "--limit", str(questions)]
    replies, run = str(KEPT / f"{name}.replies.jsonl.gz"), str(tmp_path / "run")
    assert main(["evaluate", str(tmp_path / f"{name}.jsonl"), "--replay", replies, "--out", run, *options]) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    decided = summary["pools"][name]["rules"]
    assert page == {rule: f"{figures['em']:.2f}" for rule, figures in decided.items()}
    assert len(page) == (12 if judges else 6)
