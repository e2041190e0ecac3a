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
def test_the_kept_replies_give_the_accuracy_that_the_page_shows(
    pools_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    restore(pools_dir, tmp_path)
    shown = dict(re.findall(r"^\| `([^`]+)` \| ([0-9.]+) \| [0-9.]+ \| [+-]", PAGE, re.MULTILINE))
    assert shown
    asking = ["--judges", JUDGES, "--rules", ",".join(RULES["hotpotqa"]), "--out", str(tmp_path / "run")]
    replies = KEPT / "hotpotqa.replies.jsonl.gz"
    assert main(["evaluate", str(tmp_path / "hotpotqa.jsonl"), "--replay", str(replies), *asking, "--quiet"]) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    rules = summary["pools"]["hotpotqa"]["rules"]
    assert shown == {rule: f"{figures['em']:.2f}" for rule, figures in rules.items()}
