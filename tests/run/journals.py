"""Consultations for a journal, a journal of three, and what a file of JSON holds."""

import json
from pathlib import Path
from typing import Any

from eldgr_dspy.journal import Journal
from eldgr_dspy.rule.consultations import Consultation


def one(question: str = "q1", outcome: Any = "ok", **more: Any) -> Consultation:
    content = {"preferred": 0} if outcome == "ok" else None
    reason = None if outcome == "ok" else "why"
    return Consultation("pool", question, "judge", outcome, content=content, reason=reason, **more)


def journal_with_contents(folder: Path) -> Path:
    with Journal(folder / "j") as journal:
        journal.append_head({"kind": "settings", "name": "rule", "details": {"certificate": "folded"}})
        for number in range(3):
            content = {"preferred": 2, "judge_rationale": "Because of what passage 1 says.", "scores": [0.25, 1]}
            journal.append(Consultation("p", f"q{number}", "judge", "ok", content=content, calls=1, cost=0.5))
    return folder / "j"


def json_of(path: Path) -> Any:
    return json.loads(path.read_text())


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
