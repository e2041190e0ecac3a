"""What the tests of the way to an LM share: what a real server may do to a request, and runs that ask it."""

import json
from collections.abc import Callable, Mapping
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
from tests.lm_server import Answer, Asked, LMServer, Logged


def verdict(preferred: Any, **changes: Any) -> str:
    return json.dumps({"judge_rationale": "seen", "assessments": [], "preferred": preferred, **changes})


GOOD = Answer(verdict(2))
DRAFT, FINAL = verdict(0), verdict(2)


def choices(*texts: str | None) -> Mapping[str, Any]:
    messages = [{"role": "assistant", "content": text} for text in texts]
    return {"choices": [{"index": i, "finish_reason": "stop", "message": one} for i, one in enumerate(messages)]}


def refusal(message: str) -> Answer:
    return Answer(status=400, body=json.dumps({"error": {"message": message, "type": "invalid"}}).encode())


@dataclass(frozen=True)
class Fault:
    """What a server does to each request until it is healed, and what must follow.

    Attributes:
        answer: What it does. outcome: `ok`, `abstained`, `failed`, or `fatal`, which stops the run at once.
        sent: How many requests a question takes; an error that passes is repeated twice where the pause is nothing.
        reason: How the reason in the journal begins.
    """

    answer: Answer
    outcome: str
    sent: int = 1
    reason: str = ""

    @property
    def retries(self) -> int:
        """How many retries the LM has; without a `Retry-After` they would only take time."""
        return 2 if self.answer.status >= 400 else 0


FAULTS: dict[str, Fault] = {
    # errors that pass: asked again at once, failed in the end, asked again on resume
    "429 with Retry-After": Fault(Answer(status=429), "failed", 3, "LMRateLimitError: "),
    "408": Fault(Answer(status=408), "failed", 3, "LMTimeoutError: "),
    "500": Fault(Answer(status=500), "failed", 3, "LMServerError: "),
    "502": Fault(Answer(status=502), "failed", 3, "LMServerError: "),
    "503": Fault(Answer(status=503), "failed", 3, "LMServerError: "),
    "504": Fault(Answer(status=504), "failed", 3, "LMTimeoutError: "),
    "reset before the answer": Fault(Answer(status=0), "failed", 1, "LMTransportError: "),
    "reset within the body": Fault(Answer(FINAL, cut=90), "failed", 1, "LMTransportError: "),
    "a truncated body": Fault(Answer(body=b'{"id": "x", "choices": [{"ind'), "failed", 1, "LMProviderError: "),
    "a page in place of JSON": Fault(Answer(body=b"<html>Bad gateway"), "failed", 1, "LMProviderError: "),
    "no body": Fault(Answer(body=b""), "failed", 1, "LMProviderError: "),
    # refusals of this one request: not asked again until the run is resumed
    "400": Fault(Answer(status=400), "failed", 1, "LMInvalidRequestError: "),
    "413": Fault(Answer(status=413), "failed", 1, "LMInvalidRequestError: "),
    "422": Fault(Answer(status=422), "failed", 1, "LMInvalidRequestError: "),
    "a body of another kind": Fault(Answer(body=b"[]"), "failed", 1, "LMUnexpectedError: "),
    # errors that stay: they stop the run
    "401": Fault(Answer(status=401), "fatal", 1, "LMAuthError: "),
    "402": Fault(Answer(status=402), "fatal", 1, "LMBillingError: "),
    "403": Fault(Answer(status=403), "fatal", 1, "LMAuthError: "),
    "404": Fault(Answer(status=404), "fatal", 1, "LMInvalidRequestError: "),
    "404 for the model": Fault(Answer(status=404, code="model_not_found"), "fatal", 1, "LMUnsupportedModelError: "),
    "429 for want of money": Fault(Answer(status=429, code="insufficient_quota"), "fatal", 1, "LMBillingError: "),
    # answers that say nothing
    "400 for the length": Fault(
        Answer(status=400, code="context_length_exceeded"), "abstained", 1, "prompt too long: "
    ),
    "400 of vLLM for the length": Fault(
        refusal("This model's maximum context length is 512 tokens. However, your request has 1304 input tokens."),
        "abstained",
        1,
        "prompt too long: ",
    ),
    "400 of llama.cpp for the length": Fault(
        refusal("request (1304 tokens) exceeds the available context size (512 tokens), try increasing it"),
        "abstained",
        1,
        "prompt too long: ",
    ),
    "a reply cut by its limit": Fault(Answer(FINAL[:40], finish="length"), "abstained", 1, "cut off: "),
    "a whole reply at its limit": Fault(Answer(FINAL, finish="length"), "ok"),
    "a reply withheld": Fault(Answer("", finish="content_filter"), "abstained", 1, "withheld: "),
    "no choice": Fault(Answer(changes={"choices": []}), "abstained", 1, "unparsable: "),
    "choices left out": Fault(Answer(changes={"choices": None}), "abstained", 1, "unparsable: "),
    "a null for an answer": Fault(Answer(changes=choices(None)), "abstained", 1, "unparsable: "),
    "two choices": Fault(Answer(changes=choices(DRAFT, FINAL)), "abstained", 1, "several answers: "),
    "two verdicts": Fault(Answer(DRAFT + FINAL), "abstained", 1, "unparsable: "),
    "a verdict twice": Fault(Answer(FINAL + FINAL), "abstained", 1, "unparsable: "),
    "a draft never closed": Fault(Answer(f"<think>{DRAFT} {FINAL}"), "abstained", 1, "unparsable: "),
    "a draft never opened": Fault(Answer(f"{DRAFT}</think>{FINAL}"), "abstained", 1, "unparsable: "),
    "duplicate keys": Fault(Answer(FINAL[:-1] + ', "preferred": 0}'), "abstained", 1, "unparsable: "),
    "truncated JSON": Fault(Answer(FINAL[:-1]), "abstained", 1, "unparsable: "),
    "white space without end": Fault(
        Answer(FINAL[:-1] + " " * 4_000), "abstained", 1, "unparsable: The reply is not exactly one JSON object"
    ),
    "NaN": Fault(Answer(verdict(float("nan"))), "abstained", 1, "unparsable: "),
    "True": Fault(Answer(verdict(True)), "abstained", 1, "unparsable: "),
    "index -1": Fault(Answer(verdict(-1)), "abstained", 1, ""),
    "index G": Fault(Answer(verdict(3)), "abstained", 1, "preferred=3 is not a whole number from 0 to 2"),
    # verdicts
    "a closed draft before the verdict": Fault(Answer(f"<think>{DRAFT}</think>{FINAL}"), "ok"),
    "another model": Fault(Answer(FINAL, changes={"model": "llama-3"}), "ok"),
    "no usage": Fault(Answer(FINAL, changes={"usage": None}), "ok"),
    "a slow drip": Fault(Answer(FINAL, drip=0.002), "ok"),
}


def selector_at(server: LMServer, **options: Any) -> Selector:
    """A selector whose roles ask a server by an unmodified `dspy.LM`."""
    selector = Selector()
    options = {"api_base": server.address, "api_key": "key", "cache": False, "num_retries": 0, **options}
    selector.set_lm(dspy.LM("openai/gpt-4o-mini", **options))
    return selector


Run = Callable[[Selector, Plan], Any]


class Silent(dspy.Module):
    """A role that says nothing."""

    def forward(self, **inputs: Any) -> Any:
        return dspy.Prediction(abstained="silent")


WAYS: dict[str, tuple[Run, int]] = {"sync": (evaluate, 1), "threads": (evaluate, 4)}
each_way = pytest.mark.parametrize("way", WAYS)


def plan_of(folder: Path, workers: int = 4, questions: int = 3, **options: Any) -> Plan:
    pool = write_pool(folder / "p.jsonl", map(row, range(questions)))
    options = {"max_failures": "100%", **options}
    return Plan([pool], folder / "run", ("majority", "judge"), workers=workers, **options)


def made(folder: Path) -> list[Consultation]:
    """The consultations of a run."""
    return list(read_journal(folder / "run" / "journal.jsonl"))


def number_of(asked: Asked | Logged) -> int:
    """The number of the question that a request is about."""
    return int(asked.question.split("number ")[1].split("?")[0])
