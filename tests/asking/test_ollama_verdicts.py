"""A verdict comes from Ollama's wire through the selector and the command, and nothing else passes for one."""

import asyncio
import json
from pathlib import Path
from typing import Any

import dspy
import pytest

import eldgr_dspy
from eldgr_dspy.programs.commands import main
from tests.lm_server import obliging, understand
from tests.ollama_server import Body, Models, Reply, ollama_server
from tests.selecting import CONTESTED, SILENT, verdict

ROOT = Path(__file__).resolve().parents[2]
POOL = str(ROOT / "artifacts" / "demo-retrieval.jsonl")
FOR_DOHA, FOR_DUBAI = json.dumps(verdict(2)), json.dumps(verdict(0))


def answering(reply: Reply) -> Any:
    """Reply so as judge, and have nothing to say as repairer."""
    return lambda body: reply if "preferred" in body["format"]["properties"] else SILENT


def selected(reply: Reply, *, awaited: bool, **options: Any) -> Any:
    select = eldgr_dspy.Selector(**options)
    with ollama_server(answering(reply)) as server:
        select.set_lm(eldgr_dspy.ollama("deepseek-r1:7b", host=server.address, cache=False, num_retries=0, timeout=20))
        return asyncio.run(select.acall(**CONTESTED)) if awaited else select(**CONTESTED)


each_way = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


@each_way
@pytest.mark.parametrize("draft", ["", f"<think>{FOR_DUBAI}</think>"], ids=["no", "yes"])
def test_a_certified_preference_ships(draft: str, awaited: bool) -> None:
    pred = selected(Reply(draft + FOR_DOHA), awaited=awaited)
    assert (pred.answer, pred.branch, pred.preference) == ("Doha", "judge", 2)


@each_way
@pytest.mark.parametrize(
    "reply",
    [
        Reply(f"<think>{FOR_DOHA}"),
        Reply(f"{FOR_DUBAI}</think>{FOR_DOHA}"),
        Reply(FOR_DOHA + FOR_DOHA),
        Reply(FOR_DOHA[:-1], reason="length"),
        Reply(FOR_DOHA.replace("2", "-1")),
        Reply(FOR_DOHA.replace('"preferred": 2', '"preferred": 0, "preferred": 2')),
        Reply(FOR_DOHA.replace('"preferred": 2', '"preferred": true')),
        Reply(FOR_DOHA.replace("0.5", "NaN")),
        Reply("I choose candidate 2."),
        Reply("", thinking=FOR_DOHA),
    ],
    ids=["unclosed", "orphan", "two", "cut", "-1", "twice", "true", "NaN", "prose", "thought"],
)
def test_what_is_not_a_verdict_is_an_abstention(reply: Reply, awaited: bool) -> None:  # hazards 57, 58, 59, 60, 61, 62
    pred = selected(reply, awaited=awaited)
    assert (pred.answer, pred.branch, list(pred.abstentions)) == ("Dubai", "consensus", ["judge", "repairer"])


@each_way
def test_a_prompt_that_was_cut_never_gives_a_verdict(awaited: bool) -> None:  # hazard 82
    reply = Reply(FOR_DOHA, read=8191)
    with pytest.raises(dspy.ContextWindowExceededError):
        selected(reply, awaited=awaited, on_error="raise")
    pred = selected(reply, awaited=awaited)
    assert (pred.answer, pred.branch) == ("Dubai", "consensus")
    assert "num_ctx" in pred.abstentions["judge"]


def evaluated(tmp_path: Path, address: str, *more: str) -> int:
    options = ["--out", str(tmp_path / "run"), "--limit", "6", "--quiet", "--api-base", address]
    return main(["evaluate", POOL, "--judge", "ollama/deepseek-r1:7b", *options, *more])


@pytest.mark.parametrize("suffix", ["", "/v1"])
def test_the_command_asks_a_judge_that_ollama_runs(tmp_path: Path, suffix: str) -> None:
    def judge(body: Body) -> str:
        return "<think>Hm.</think>" + obliging(understand("", body)).text

    with ollama_server(judge) as server:
        assert evaluated(tmp_path, server.address + suffix) == 0
        sent = server.bodies()
    assert sent and all(body["think"] is False and body["options"]["temperature"] == 0.0 for body in sent)
    lines = (tmp_path / "run" / "journal.jsonl").read_text("utf-8").splitlines()
    replies = [one for one in map(json.loads, lines) if one.get("role") == "judge" and one["calls"]]
    assert len(replies) == len(sent)
    assert "ok" in {one["outcome"] for one in replies} <= {"ok", "abstained"}


def test_the_command_stops_at_once_where_the_model_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # hazard 80
    with ollama_server(models=Models(names=[])) as server:
        assert evaluated(tmp_path, server.address, "--workers", "1") == 3
        assert len(server.bodies()) == 1
    assert "ollama pull deepseek-r1:7b" in capsys.readouterr().err


def test_the_command_refuses_a_password_in_the_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluated(tmp_path, "http://me:s3cret@gpu-box:11434") == 1
    assert "without password" in (said := capsys.readouterr().err) and "s3cret" not in said
