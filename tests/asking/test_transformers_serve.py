"""An unmodified `dspy.LM` judges through `transformers serve` and a real model that knows a few replies by heart."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.selector import Selector
from tests.selecting import ASPECTS, each_way, saying, verdict

pytest.importorskip("torch", reason="torch is not installed; the extra test has it")
pytest.importorskip("transformers", reason="transformers is not installed; the extra test has it")

from tests.tiny_lm import Exchange, remembering

EVIDENCE = ["The Louvre is a museum in Paris."]
POOL = {"question": "In which city is the Louvre?", "candidates": ["Lyon", "Lyon", "Paris"], "evidence": EVIDENCE}
PARIS_FIRST = {**POOL, "candidates": ["Paris", "Lyon", "Lyon"]}
FOR_LYON = {**POOL, "question": "In which city did he work?"}
VAGUE = {**POOL, "question": "Which city is it?"}
ASSESSMENTS = [dict.fromkeys(ASPECTS, score) for score in (0.0, 1.0, 0.5)]
REPLIES = [
    (inputs, json.dumps({**verdict(preferred), "assessments": ASSESSMENTS}))
    for inputs, preferred in ((POOL, 2), (PARIS_FIRST, 0), (FOR_LYON, 1))
]
REPLIES += [(VAGUE, "I would rather not choose between these cities.")]
_STARTS_WITHIN = 120.0

pytestmark = pytest.mark.slow


def exchange(inputs: Mapping[str, Any], reply: str) -> Exchange:
    """What the judge is sent over these inputs, as a server receives it, with what it shall reply."""
    with dspy.context(lm=(script := saying(judge=verdict(0)))):
        Selector()(**inputs)
    request = script.requests[0]
    system = {"role": "system", "content": str(request.system)}
    messages = [{"role": message.role, "content": message.text or ""} for message in request.messages]
    return Exchange([system, *messages], reply)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return remembering([exchange(*one) for one in REPLIES], tmp_path_factory.mktemp("model"))


@contextmanager
def serving(folder: Path, log: Path) -> Iterator[str]:
    """`transformers serve` on a free port of loopback, until the block is left; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(folder)]
    options = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    settings = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(log.parent), "OMP_NUM_THREADS": "1"}
    with log.open("wb") as out, subprocess.Popen([*command, *options], stdout=out, stderr=out, env=settings) as server:
        try:
            await_health(f"http://127.0.0.1:{port}/health", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def await_health(address: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    pytest.fail(f"The server did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def lm(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dspy.LM]:
    with serving(folder, tmp_path_factory.mktemp("server") / "log.txt") as address:
        yield dspy.LM(f"openai/{folder}", api_base=address, api_key="none", temperature=0.0, cache=False)


@each_way
def test_the_verdict_of_a_served_model_arrives_and_follows_the_prompt(call: Any, lm: dspy.LM) -> None:
    select = Selector()
    select.set_lm(lm)
    for inputs, preferred in ((POOL, 2), (PARIS_FIRST, 0)):
        pred = call(select, inputs)
        assert (pred.answer, pred.branch, pred.preference) == ("Paris", "judge", preferred)


@pytest.mark.parametrize(("inputs", "preferred"), [(FOR_LYON, 1), (VAGUE, None)])
def test_an_uncertified_preference_and_prose_ship_consensus(inputs: Any, preferred: int | None, lm: dspy.LM) -> None:
    select = Selector()
    select.judge.set_lm(lm)
    with dspy.context(lm=saying()):
        pred = select(**inputs)
    assert (pred.answer, pred.branch, pred.preference) == ("Lyon", "consensus", preferred)
    assert pred.consulted == ["judge", "repairer"]
    assert ("judge" in pred.abstentions) is (preferred is None)
