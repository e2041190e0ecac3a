"""A verdict comes from Ollama's wire through the selector and the command, which asks for the context it is given."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

import eldgr_dspy
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.commands import main
from tests.lm_server import obliging, understand
from tests.ollama_server import Models, Reply, ollama_server
from tests.refusing import refuses
from tests.results.demo_pools import ARTIFACTS
from tests.selecting import CONTESTED, SILENT, each_call, verdict

POOL = str(ARTIFACTS / "demo-retrieval.jsonl")
FOR_DOHA = json.dumps(verdict(2))


def choose(reply: Reply, call: Any, **options: Any) -> Any:
    select = eldgr_dspy.Selector(**options)
    with ollama_server(lambda body: reply if "preferred" in body["format"]["properties"] else SILENT) as server:
        select.set_lm(eldgr_dspy.ollama("deepseek-r1:7b", host=server.address, cache=False, num_retries=0, timeout=20))
        return call(select, CONTESTED)


@each_call
def test_a_certified_preference_ships_and_a_prompt_that_was_cut_never_gives_one(call: Any) -> None:  # hazard 82
    pred = choose(Reply(f"<think>{json.dumps(verdict(0))}</think>{FOR_DOHA}"), call)
    assert (pred.answer, pred.branch, pred.preference) == ("Doha", "judge", 2)
    cut = Reply(FOR_DOHA, read=8191)
    refuses(dspy.ContextWindowExceededError, "num_ctx", choose, cut, call, on_error="raise")
    pred = choose(cut, call)
    assert (pred.answer, pred.branch, "num_ctx" in pred.abstentions["judge"]) == ("Dubai", "consensus", True)


def evaluate(tmp_path: Path, address: str, *more: str) -> int:
    options = ["--out", str(tmp_path / "run"), "--limit", "6", "--quiet", "--api-base", address]
    return main(["evaluate", POOL, "--judge", "ollama/deepseek-r1:7b", *options, *more])


@pytest.mark.parametrize("suffix", ["", "/v1"])
def test_the_command_asks_a_judge_that_ollama_runs(tmp_path: Path, suffix: str) -> None:
    with ollama_server(lambda body: "<think>Hm.</think>" + obliging(understand("", body)).text) as server:
        assert evaluate(tmp_path, server.address + suffix) == 0
        bodies = server.bodies()
    assert bodies and all(body["think"] is False and body["options"]["temperature"] == 0.0 for body in bodies)
    replies = [one for one in read_journal(tmp_path / "run" / "journal.jsonl") if one.role == "judge" and one.calls]
    assert len(replies) == len(bodies)
    assert "ok" in {one.outcome for one in replies} <= {"ok", "abstained"}


def test_the_command_stops_without_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # hazard 80
    with ollama_server(models=Models(names=[])) as server:
        assert (evaluate(tmp_path, server.address, "--workers", "1"), len(server.bodies())) == (3, 1)
    assert "ollama pull deepseek-r1:7b" in capsys.readouterr().err


def test_the_command_asks_for_the_context_that_it_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ollama_server() as server:
        assert evaluate(tmp_path, server.address) == 0
        before = len(server.bodies())
        assert evaluate(tmp_path, server.address, "--set", "num_ctx=16384") == 1
        assert "num_ctx: 8192 -> 16384" in capsys.readouterr().err
        assert evaluate(tmp_path, server.address, "--set", "num_ctx=16384", "--fresh") == 0
        contexts = [body["options"]["num_ctx"] for body in server.bodies()]
    assert contexts == [8192] * before + [16384] * before
