"""What the tests of the way to an LM share: what a real server may do to a request, and runs that ask it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.consultations import Consultation
from tests.capitals import row, write_pool
from tests.case_tables import TEXTS, build, tables_of
from tests.lm_server import Answer, Entry, LMServer, Request

Run = Callable[[Selector, Plan], Any]
WAYS: dict[str, tuple[Run, int]] = {"sync": (evaluate, 1), "threads": (evaluate, 4)}
each_way = pytest.mark.parametrize("way", WAYS)


def verdict(preferred: Any, **changes: Any) -> str:
    return json.dumps({"judge_rationale": "seen", "assessments": [], "preferred": preferred, **changes})


GOOD = Answer(verdict(2))
DRAFT, FINAL = verdict(0), verdict(2)


@dataclass(frozen=True)
class Fault:
    """What a server does to each request until it is healed, and what must follow.

    Attributes:
        answer: What it does. outcome: `ok`, `abstained`, `failed`, or `fatal`, which stops the run at once.
        requests: How many requests a question takes; an error that passes is repeated twice where the pause is nothing.
        reason: How the reason in the journal begins.
    """

    answer: Answer
    outcome: str
    requests: int = 1
    reason: str = ""

    @property
    def retries(self) -> int:
        """How many retries the LM has; without a `Retry-After` they would only take time."""
        return 2 if self.answer.status >= 400 else 0


def spell(text: str) -> str:
    """A text of the table, in which FINAL and DRAFT are verdicts, and HEAD what they begin with."""
    return text.replace("FINAL", FINAL).replace("DRAFT", DRAFT).replace("HEAD ", FINAL[:-2])


def answer_of(text: str = "", body: str | None = None, **options: Any) -> Answer:
    for choice in options.get("changes", {}).get("choices") or ():
        choice["message"]["content"] = choice["message"]["content"] and spell(choice["message"]["content"])
    return Answer(spell(text), body=None if body is None else body.encode("latin-1"), **options)


FAULTS: dict[str, Fault] = {
    name: Fault(answer_of(**answer), *rest)
    for name, (answer, *rest) in build(tables_of("asking")["faults"], TEXTS).items()
}
"""Errors that pass, refusals of one request, errors that stop a run, answers that say nothing, and verdicts."""


def lm_at(address: str, model: str = "openai/gpt-4o-mini", **options: Any) -> Any:
    """An unmodified `dspy.LM` that asks a server."""
    return dspy.LM(model, **{"api_base": address, "api_key": "key", "cache": False, "num_retries": 0, **options})


def selector_at(server: LMServer, **options: Any) -> Selector:
    selector = Selector()
    selector.set_lm(lm_at(server.address, **options))
    return selector


class Silent(dspy.Module):
    def forward(self, **inputs: Any) -> Any:
        return dspy.Prediction(abstained="silent")


def plan_of(folder: Path, workers: int = 4, questions: int = 3, **options: Any) -> Plan:
    pool = write_pool(folder / "p.jsonl", map(row, range(questions)))
    options = {"max_failures": "100%", **options}
    return Plan([pool], folder / "run", ("majority", "judge"), workers=workers, **options)


def log_of(folder: Path) -> list[Consultation]:
    return list(read_journal(folder / "run" / "journal.jsonl"))


def number_of(request: Request | Entry) -> int:
    return int(request.question.split("number ")[1].split("?")[0])
