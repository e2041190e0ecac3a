"""What a weak model or its server does wrong counts as an abstention, or is asked again, and never as a verdict."""

import json
import threading
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.selector import Selector
from tests.capitals import row, write_pool
from tests.lm_server import Answer, Asked, obliging, serving
from tests.loopback import openai_server
from tests.selecting import CONTESTED, SILENT, verdict

FOR_DOHA = json.dumps(verdict(2))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")


def selected(judge: Any) -> Any:
    """What ships if the judge's request is answered so, and the repairer has nothing to say."""

    def answer(body: dict[str, Any]) -> Any:
        return judge if "judge_rationale" in json.dumps(body["messages"]) else json.dumps(SILENT)

    with openai_server(answer) as address:
        select = Selector()
        select.set_lm(dspy.LM("openai/weak", api_base=address, cache=False, num_retries=0))
        return select(**CONTESTED)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (FOR_DOHA[:-1] + " " * 4_000, "unparsable: The reply is not exactly one JSON object"),
        (
            (400, "This model's maximum context length is 512 tokens. However, your request has 1304 input tokens."),
            "prompt too long: ",
        ),
        (
            (400, "request (1304 tokens) exceeds the available context size (512 tokens), try increasing it"),
            "prompt too long: ",
        ),
    ],
    ids=["white space", "context of vLLM", "context of llama.cpp"],
)
def test_what_a_weak_model_does_is_an_abstention(reply: Any, reason: str) -> None:
    """What else it may write is in `test_strict_adapter.py`."""
    pred = selected(reply)
    assert (pred.answer, pred.branch) == ("Dubai", "consensus")
    assert pred.abstentions["judge"].startswith(reason)
    assert not pred.failures


def test_a_server_that_dies_in_the_middle_of_a_run_and_comes_back_costs_no_question(tmp_path: Path) -> None:
    """The run waits, asks again and finishes; each question is judged once."""
    lock, seen = threading.Lock(), {"requests": 0}

    def judge(request: Asked) -> Answer:
        with lock:
            seen["requests"] += 1
            number = seen["requests"]
        away = {5: Answer(status=0), 6: Answer(status=503)}  # it dies, and starts
        return away.get(number) or obliging(request)

    pool = write_pool(tmp_path / "pool.jsonl", map(row, range(8)))
    with serving(judge) as server:
        asking = ["--judge", "openai/weak", "--api-base", server.address, "--workers", "1", "--rules", "judge"]
        assert main(["evaluate", str(pool), "--out", str(tmp_path / "run"), "--quiet", *asking]) == 0
    lines = map(json.loads, (tmp_path / "run" / "journal.jsonl").read_text("utf-8").splitlines())
    judged = [line for line in lines if line.get("role") == "judge" and "outcome" in line]
    assert len(judged) == len({json.dumps(line["key"]) if "key" in line else line["id"] for line in judged}) == 8
    assert "failed" not in {line["outcome"] for line in judged}
    assert seen["requests"] == 8 + 2
