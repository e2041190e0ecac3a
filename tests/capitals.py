"""Questions about capitals, an LM that judges them, and selectors that ask it: what the tests of runs share."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import dspy

from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, role_of, scripted_lm, text_of

EVIDENCE = [{"title": "Lyon", "text": "Lyon lies on the Rhone."}, {"title": "Paris", "text": "Paris is the capital."}]


def row(number: int, **changes: Any) -> dict[str, Any]:
    answers = changes.pop("answers", ("Nice", "Nice", "Paris"))
    return {
        "id": f"q{number}", "question": f"What is capital number {number}?", "task": "retrieval",
        "candidates": [{"text": f"I think {answer}", "answer": answer} for answer in answers], "evidence": EVIDENCE,
        "gold": ["Paris"], **changes,
    }  # fmt: skip


def write_pool(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in rows), encoding="utf-8")
    return path


VERDICT = {"assessments": [], "preferred": 2, "judge_rationale": "seen"}


NO_SPAN = {"repaired_answer": "", "repair_passage": -1}


def obliging(request: Any) -> Any:
    return VERDICT if role_of(request) == "judge" else NO_SPAN


def selector_with(reply: Callable[[Any], Any], **settings: Any) -> tuple[Selector, ScriptedLM]:
    lm = scripted_lm(reply)
    selector = Selector(**settings)
    selector.set_lm(lm)
    return selector, lm


def drop_times(summary: Mapping[str, Any]) -> str:
    times = ("seconds", "seconds_saved")
    return json.dumps(
        json.loads(json.dumps(summary), object_hook=lambda fields: {k: v for k, v in fields.items() if k not in times})
    )


class Flaky:
    """Fails a call whose question number `fails`; counts every call."""

    def __init__(self, fails: Callable[[int], bool], error: Exception | None = None) -> None:
        self.fails, self.calls = fails, 0
        self.error = error or dspy.LMServerError("the server is away")
        self.lock = Lock()

    def __call__(self, request: Any) -> Any:
        with self.lock:
            self.calls += 1
        number = int(text_of(request).split("capital number ")[1].split("?")[0])
        return self.error if self.fails(number) else obliging(request)


def recording(path: Path, ids: Iterable[str], **more: Any) -> Path:
    lines = [
        {"kind": "consultation", "id": row_id, "role": "judge", "outcome": "ok", "content": VERDICT, **more}
        for row_id in ids
    ]
    return write_pool(path, lines)
