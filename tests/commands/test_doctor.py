"""`eldgr doctor` says what stands between a model and a verdict, and its exit code whether anything does."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from eldgr_dspy.programs.commands import main
from tests.loopback import listening
from tests.ollama_server import Body, Models, Reply, filled, obedient, ollama_server

GOOD = ["server", "model", "context", "structured output", "verdict", "thinking", "model served", "speed"]


def examined(address: str, *more: str, judge: str = "ollama/deepseek-r1:7b") -> tuple[int, dict[str, Any]]:
    """The exit code, and the findings by name."""
    from click.testing import CliRunner

    from eldgr_dspy.programs.commands.command import cli

    options = ["--judge", judge, "--api-base", address, "--timeout", "20", "--json", *more]
    done = CliRunner().invoke(cli, ["doctor", *options], catch_exceptions=False)
    said = json.loads(done.stdout)
    assert said["ok"] is (done.exit_code == 0) is all(one["ok"] for one in said["findings"])
    return done.exit_code, {one["check"]: one for one in said["findings"]}


def wrong(found: dict[str, Any]) -> dict[str, str]:
    return {name: one["text"] for name, one in found.items() if not one["ok"]}


def test_all_is_well_with_a_judge_that_can_be_asked() -> None:
    with ollama_server() as server:
        code, found = examined(server.address)
    assert (code, list(found)) == (0, GOOD)
    assert "0.12.3" in found["server"]["text"] and "8192" in found["context"]["text"]


def test_each_finding_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with ollama_server() as server:
        assert main(["doctor", "--api-base", server.address]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"ok    {name}" for name in GOOD]


def test_a_server_that_is_not_there_is_the_only_finding(capsys: pytest.CaptureFixture[str]) -> None:  # hazard 79
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        code, found = examined(address)
        assert (code, list(wrong(found))) == (1, ["server"])
        assert main(["doctor", "--api-base", address]) == 1
    assert capsys.readouterr().out.startswith("FAIL  server: ")


def test_a_model_that_is_missing_comes_with_the_command_that_gets_it() -> None:  # hazard 80
    with ollama_server(models=Models(names=[])) as server:
        code, found = examined(server.address)
        assert (code, list(found)) == (1, ["server", "model"])
        assert not server.bodies("/api/pull")
    assert "ollama pull deepseek-r1:7b" in wrong(found)["model"]


def test_a_missing_model_is_pulled_on_demand() -> None:
    with ollama_server(models=Models(names=[])) as server:
        assert examined(server.address, "--pull")[0] == 0
        assert [body["model"] for body in server.bodies("/api/pull")] == ["deepseek-r1:7b"]
        assert examined(server.address, "--pull")[0] == 0
        assert len(server.bodies("/api/pull")) == 1


def test_a_model_that_cannot_be_pulled_is_said() -> None:
    with ollama_server(models=Models(names=[], remote=())) as server:
        code, found = examined(server.address, "--pull")
    assert code == 1 and "does not exist" in wrong(found)["model"]


@pytest.mark.parametrize("stall", ["hang", "repeat"])
def test_a_pull_that_gets_no_further_is_given_up(stall: str) -> None:  # hazard 81
    """A server that has lost its own connection goes on reporting how far it is."""
    with ollama_server(models=Models(names=[], stall=stall)) as server:
        code, found = examined(server.address, "--pull", "--timeout", "0.3")
        assert server.gone.wait(20)
    assert (code, list(found)) == (1, ["server", "model"])
    assert f"{server.address} made no progress with pulling deepseek-r1:7b for 0.3 s" in wrong(found)["model"]


def test_a_pull_that_gets_on_may_take_longer_than_a_call() -> None:
    with ollama_server(models=Models(names=[], pause=0.5)) as server:
        assert examined(server.address, "--pull", "--timeout", "1.5")[0] == 0


def test_a_model_without_a_tag_is_the_latest() -> None:
    with ollama_server(models=Models(names=["tiny", "tiny:latest"])) as server:
        assert examined(server.address, "--pull", judge="ollama/tiny")[0] == 0
        assert not server.bodies("/api/pull")


def thoughtful(body: Body) -> Reply:
    return Reply(obedient(body), thinking="Which one?", written=30)


def hidden(body: Body) -> Reply:
    return Reply(obedient(body), written=900)


def berlin(body: Body) -> str:
    return json.dumps({**filled(body["format"]), "preferred": 0})


@pytest.mark.parametrize(
    ("behaviour", "checks"),
    [
        (lambda _: '{"preferred": 1}', ["structured output"]),
        (lambda _: "Paris, of course.", ["structured output"]),
        (lambda _: "", ["structured output"]),
        (lambda body: obedient(body) * 2, ["structured output"]),
        (berlin, ["verdict"]),
        (thoughtful, ["thinking"]),
        (hidden, ["thinking"]),
        (lambda body: f"<think>Hm.</think>{obedient(body)}", ["thinking"]),
        (lambda body: Reply(obedient(body), model="tinyllama"), ["model served"]),
        (lambda _: Reply("no", status=500), ["call"]),
        (lambda _: Reply("no", status=401), ["call"]),
        (lambda body: Reply(obedient(body), fault="early"), ["call"]),
        (lambda body: Reply(obedient(body), read=8192), ["call"]),
    ],
    ids="unsealed prose empty two berlin thinks hides leaks other 500 401 early cut".split(),
)
def test_what_is_wrong_is_said(behaviour: Callable[[Body], Any], checks: list[str]) -> None:
    with ollama_server(behaviour) as server:
        code, found = examined(server.address)
    assert (code, list(wrong(found))) == (1, checks)
    assert "\n" not in "".join(one["text"] for one in found.values())


def test_a_model_that_reads_less_than_is_asked_for_is_said() -> None:  # hazard 82
    with ollama_server(models=Models(context_length=4096)) as server:
        code, found = examined(server.address)
    assert code == 1 and "--num-ctx 4096" in wrong(found)["context"]


def test_the_context_that_is_asked_for_is_the_one_that_is_looked_at() -> None:
    with ollama_server(models=Models(context_length=4096)) as server:
        code, found = examined(server.address, "--num-ctx", "4096")
        assert {body["options"]["num_ctx"] for body in server.bodies()} == {4096}
    assert code == 0 and found["context"]["text"].startswith("4096 tokens are asked for")


def test_a_context_for_a_model_that_takes_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--judge", "openai/m", "--num-ctx", "4096"]) == 1
    assert "num_ctx=4096 is the context of a model of Ollama, and openai/m is given" in capsys.readouterr().err


def test_a_version_that_counts_too_little_is_said() -> None:
    with ollama_server(version="0.30.0") as server:
        code, found = examined(server.address)
    assert code == 0 and "unseen" in found["context"]["text"]


def test_a_server_that_hangs_does_not_hold_up_the_doctor() -> None:  # hazard 81
    with ollama_server(lambda _: Reply(fault="hang")) as server:
        code, found = examined(server.address, "--timeout", "0.3")
    assert code == 1 and "0.3 s" in wrong(found)["call"]


def test_a_password_in_the_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--api-base", "http://me:s3cret@gpu-box"]) == 1
    assert "s3cret" not in capsys.readouterr().err


# --- other servers ----------------------------------------------------------------------------------------------------


@contextmanager
def openai_server(answer: Callable[[Body], str]) -> Iterator[str]:
    """A server of OpenAI's format that says to each request what `answer` makes of it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = {"role": "assistant", "content": answer(body)}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            data = json.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with listening(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


def constrained(body: Body) -> str:
    return json.dumps(filled(body["response_format"]["json_schema"]["schema"]))


@pytest.mark.parametrize(
    ("answer", "checks"), [(constrained, []), (lambda _: '{"preferred": 1}', ["structured output"])], ids=["yes", "no"]
)
def test_an_openai_compatible_server_is_asked_what_can_be_asked(
    answer: Callable[[Body], str], checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with openai_server(answer) as address:
        code, found = examined(address, judge="openai/m")
    assert (code, list(wrong(found))) == (len(checks), checks)
    assert "speed" in found and "server" not in found


def test_an_openai_compatible_server_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        code, found = examined(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", judge="openai/m")
    assert (code, list(wrong(found))) == (1, ["call"])


@pytest.mark.parametrize(("judge", "key"), [("openai/m", "none"), ("ollama/m", "s3cret\n")])
def test_no_finding_quotes_a_secret(judge: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, key)
    address = "http://me:s3cret@127.0.0.1:1/v1" if judge == "openai/m" else "http://127.0.0.1:1"
    code, found = examined(address, judge=judge)
    assert code == 1 and "s3cret" not in str(found)
