"""`eldgr doctor` says what stands between a model and a verdict, and its exit code whether anything does."""

import json
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from click.testing import CliRunner

from eldgr_dspy.programs.commands.command import cli
from eldgr_dspy.programs.selector import Selector
from tests.capitals import row, write_pool
from tests.commands.installed import Eldgr
from tests.commands.parisian import VERDICT, parisian
from tests.loopback import Answer, openai_server
from tests.ollama_server import Body, Models, Reply, fill, ollama_server

GOOD = ["server", "model", "context", "structured output", "verdict", "thinking", "model served", "speed"]


def examine(address: str, *more: str, judge: str = "ollama/deepseek-r1:7b") -> tuple[int, dict[str, Any]]:
    """The exit code, and the findings by name."""
    options = ["--judge", judge, "--api-base", address, "--timeout", "20", "--json", *more]
    result = CliRunner().invoke(cli, ["doctor", *options], catch_exceptions=False)
    reply = json.loads(result.stdout)
    assert reply["ok"] is (result.exit_code == 0) is all(one["ok"] for one in reply["findings"])
    return result.exit_code, {one["check"]: one for one in reply["findings"]}


def wrong(result: dict[str, Any]) -> dict[str, str]:
    return {name: one["text"] for name, one in result.items() if not one["ok"]}


def test_all_is_well_with_a_judge_that_can_be_asked(eldgr: Eldgr) -> None:
    with ollama_server(parisian) as server:
        code, result = examine(server.address)
        lines = eldgr("doctor", "--api-base", server.address).out.splitlines()
    assert (code, list(result), "8192" in result["context"]["text"]) == (0, GOOD, True)
    assert [line.partition(":")[0] for line in lines] == [f"ok    {name}" for name in GOOD]
    with ollama_server(lambda _: VERDICT) as server:  # which does not hold its model to a schema
        code, result = examine(server.address)
    assert (code, list(result)) == (0, GOOD)
    assert result["structured output"]["text"].startswith(_IGNORES)


def test_a_server_that_is_not_there_is_the_only_finding(eldgr: Eldgr) -> None:  # hazard 79
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{port.getsockname()[1]}"
        code, result = examine(address)
        assert (code, list(wrong(result))) == (1, ["server"])
        assert eldgr("doctor", "--api-base", address, code=1).out.startswith("FAIL  server: ")


def test_a_missing_model_comes_with_the_command_that_gets_it_and_is_pulled_on_demand() -> None:  # hazard 80
    """A pull that gets on may take longer than a call, and a model without a tag is the latest."""
    with ollama_server(parisian, models=Models(names=[])) as server:
        code, result = examine(server.address)
        assert (code, list(result)) == (1, ["server", "model"])
        assert "ollama pull deepseek-r1:7b" in wrong(result)["model"]
        assert not server.bodies("/api/pull")
        for _ in range(2):
            assert examine(server.address, "--pull")[0] == 0
            assert [body["model"] for body in server.bodies("/api/pull")] == ["deepseek-r1:7b"]
    with ollama_server(models=Models(names=[], remote=())) as server:
        code, result = examine(server.address, "--pull")
    assert code == 1 and "does not exist" in wrong(result)["model"]
    with ollama_server(parisian, models=Models(names=[], pause=0.5)) as server:
        assert examine(server.address, "--pull", "--timeout", "1.5")[0] == 0
    with ollama_server(parisian, models=Models(names=["tiny", "tiny:latest"])) as server:
        assert examine(server.address, "--pull", judge="ollama/tiny")[0] == 0
        assert not server.bodies("/api/pull")


@pytest.mark.parametrize("stall", ["hang", "repeat"])
def test_a_pull_that_gets_no_further_is_given_up(stall: str) -> None:  # hazard 81
    """A server that has lost its own connection keeps reporting how far it is."""
    with ollama_server(models=Models(names=[], stall=stall)) as server:
        code, result = examine(server.address, "--pull", "--timeout", "0.3")
        assert server.hangup.wait(20)
    assert (code, list(result)) == (1, ["server", "model"])
    assert f"{server.address} made no progress for 0.3 s" in wrong(result)["model"]


NOTICES: dict[str, tuple[Callable[[Body], Any], str]] = {  # what a judge does, and the check that fails or its thoughts
    "lacking": (lambda _: '{"preferred": 1}', "verdict"),
    "prose": (lambda _: "Paris, of course.", "verdict"),
    "empty": (lambda _: "", "verdict"),
    "two": (lambda body: parisian(body) * 2, "verdict"),
    "berlin": (lambda body: parisian(body).replace('"preferred": 1', '"preferred": 0'), "verdict"),
    "other": (lambda body: Reply(parisian(body), model="tinyllama"), "model served"),
    "500": (lambda _: Reply("no", status=500), "call"),
    "401": (lambda _: Reply("no", status=401), "call"),
    "torn": (lambda body: Reply(parisian(body), fault="torn"), "call"),
    "cut": (lambda body: Reply(parisian(body), read=8192), "verdict"),
    "thinks": (lambda body: Reply(parisian(body), thinking="Which one?", output=30), "10 characters"),
    "hides": (lambda body: Reply(parisian(body), output=900), "900 tokens"),
    "leaks": (lambda body: f"<think>Hm.</think>{parisian(body)}", "3 "),
}


@pytest.mark.parametrize(("behaviour", "finding"), NOTICES.values(), ids=NOTICES)
def test_what_is_wrong_is_said_and_a_judge_may_think(behaviour: Callable[[Body], Any], finding: str) -> None:
    with ollama_server(behaviour) as server:
        code, result = examine(server.address)
    thoughts = finding[0].isdigit()
    assert (code, list(wrong(result))) == ((0, []) if thoughts else (1, [finding]))
    assert not thoughts or result["thinking"]["text"].startswith(f"It cannot be turned off: {finding}")
    assert "\n" not in "".join(one["text"] for one in result.values())


def test_a_model_that_reads_less_than_is_asked_for_is_said() -> None:  # hazard 82
    with ollama_server(parisian, models=Models(context_length=4096)) as server:
        code, result = examine(server.address)
        assert code == 1 and "--num-ctx 4096" in wrong(result)["context"]
        server.log.clear()
        code, result = examine(server.address, "--num-ctx", "4096")
        assert {body["options"]["num_ctx"] for body in server.bodies()} == {4096}
    assert code == 0 and result["context"]["text"].startswith("It asks for 4096 tokens")


LATE = "The model had not answered in full after 0.3 s; use a larger --timeout to wait longer."


def test_a_server_that_hangs_does_not_hold_up_the_doctor() -> None:  # hazard 81
    with ollama_server(lambda _: Reply(fault="hang")) as server:
        code, result = examine(server.address, "--timeout", "0.3")
    assert (code, wrong(result)) == (1, {"call": LATE})
    gate = threading.Event()
    with openai_server(lambda _: "late" * gate.wait(20)) as address:
        code, result = examine(address, "--timeout", "0.3", judge="openai/m")
        gate.set()
    assert (code, wrong(result)) == (1, {"call": LATE})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def by_prompt(body: Body) -> str:
    """What an LM writes that goes by the words of its prompt alone."""
    return VERDICT if "judge_rationale" in json.dumps(body["messages"]) else '{"preferred": 1}'


def by_schema(body: Body) -> str:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return json.dumps(fill(schema)) if schema and "seal" in schema["properties"] else by_prompt(body)


def refusing(*kinds: str, status: int = 400) -> Answer:
    """A server that takes no response_format of these kinds."""

    def answer(body: Body) -> str | tuple[int, str]:
        kind = body.get("response_format", {}).get("type")
        return (status, f"response_format {kind} is not supported") if kind in kinds else by_prompt(body)

    return answer


_KEEPS = "A JSON schema was tried: the reply is the one JSON object that it allows. "
_IGNORES = "A JSON schema was tried: the server accepts it but does not hold the model to it, which wrote "
_REFUSES = "A JSON schema was tried, and failed: response_format json_schema is not supported. "
_THIS = "The Selector sends this model"
_NONE = f"{_THIS} no schema and no response_format, and abstains if a reply is not exactly as asked"
_SENDS = f"{_THIS} a JSON schema with each question, and abstains if"
OTHER, OLDER, NEWER = "openai/m", "openai/gpt-3.5-turbo", "openai/gpt-4o-mini"  # as DSPy's list of models has them


@pytest.mark.parametrize(
    ("model", "answer", "sentence", "would"),
    [
        *((model, by_prompt, _IGNORES, _SENDS) for model in (OTHER, OLDER, NEWER)),
        *((model, by_schema, _KEEPS, _SENDS) for model in (OTHER, NEWER)),
        *((model, refusing("json_schema"), _REFUSES, _NONE) for model in (OTHER, OLDER, NEWER)),
        (OTHER, refusing("json_schema", status=500), _REFUSES, _NONE),
        (OTHER, refusing("json_schema", "json_object"), _REFUSES, _NONE),
    ],
    ids="unheld object schema-unheld held schema refused object-refused schema-refused crashes none".split(),
)
def test_a_server_that_selectors_work_with_passes_anyway(model: str, answer: Answer, sentence: str, would: str) -> None:
    with openai_server(answer) as address:
        code, result = examine(address, judge=model)
        pred = choose(model, address)
    assert (pred.answer, pred.branch, pred.abstentions) == ("Paris", "judge", {})
    schema = ["schema"] * (would == _NONE)
    assert (code, list(result)) == (0, ["structured output", *schema, "verdict", "speed"])
    assert not schema or result["schema"]["text"].startswith("The server refuses the JSON schema of the judge's reply.")
    assert result["structured output"]["text"].startswith(sentence) and would in result["structured output"]["text"]


def choose(model: str, address: str) -> Any:
    """What a Selector with this LM makes of two rivals, of which the evidence has one."""
    select = Selector()
    select.set_lm(dspy.LM(model, api_base=address, cache=False, num_retries=0, temperature=0.0))
    rivals = {"question": "What is the capital of France?", "candidates": ["Berlin", "Paris", "Berlin"]}
    return select(**rivals, evidence=["Paris is the capital of France."])


@pytest.mark.parametrize("model", [OTHER, NEWER])
@pytest.mark.parametrize("reply", ["Paris, of course.", '{"preferred": 1}', f"Gladly: {VERDICT}", ""])
def test_a_server_with_which_the_selector_would_only_abstain_fails(model: str, reply: str) -> None:
    with openai_server(lambda _: reply) as address:
        code, result = examine(address, judge=model)
        pred = choose(model, address)
    assert (pred.answer, list(pred.abstentions)) == ("Berlin", ["judge", "repairer"])
    assert (code, list(wrong(result))) == (1, ["verdict"])
    assert result["verdict"]["text"].startswith(f"The Selector would abstain: {pred.abstentions['judge'][:-1]}")


def test_a_judge_is_asked_a_question_as_long_as_those_of_a_pool_and_fails_where_it_is_wrong(tmp_path: Path) -> None:
    short, long = row(0), {**row(1), "question": "Which of these cities, then?"}
    pool = write_pool(tmp_path / "p.jsonl", [short, long, short | {"id": "q2"}])
    with ollama_server(parisian) as server:
        code, result = examine(server.address, "--pool", str(pool))
    assert (code, list(result)) == (0, [*GOOD, "your question"])
    assert re.fullmatch(r"\d+\.\d seconds a call and \d+ tokens read, \d+ written; .*", result["speed"]["text"])
    message = r"The longest question of p, 'Which of these cities, then\?', took .* seconds and \d+ tokens read, .*"
    assert re.fullmatch(message, result["your question"]["text"])
    with openai_server(lambda body: by_prompt(body) if "France" in json.dumps(body) else "Well,") as address:
        code, result = examine(address, "--pool", str(pool), judge=OTHER)
    assert (code, list(wrong(result))) == (1, ["your question"])
    assert "the Selector would abstain: unparsable: " in result["your question"]["text"]
    with openai_server(lambda body: by_prompt(body).replace('"preferred": 1', '"preferred": 0')) as address:
        code, result = examine(address, judge=OTHER)  # the judge prefers the wrong candidate
    assert (code, list(wrong(result))) == (1, ["verdict"])


def test_no_secret_of_an_address_or_of_a_key_is_said(monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        code, result = examine(f"http://me:s3cret@127.0.0.1:{port.getsockname()[1]}/v1", judge="openai/m")
    assert (code, list(wrong(result)), "s3cret" in str(result)) == (1, ["call"], False)
    assert "s3cret" not in "".join(eldgr("doctor", "--api-base", "http://me:s3cret@gpu-box", code=1))
    monkeypatch.setenv("OLLAMA_API_KEY", "s3cret\n")
    message = eldgr("doctor", "--api-base", "http://127.0.0.1:1", code=1).err
    assert "OLLAMA_API_KEY must be one word of ASCII" in message and "s3cret" not in message
