"""Options of an LM on Ollama: in its cache, its copies and what is saved of it; and which are refused."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

import eldgr_dspy
from eldgr_dspy.programs.engines.ollama import OllamaLM, ollama
from tests.asking_ollama import each_way, lm_at, request, text_of
from tests.caching import cached_by_dspy
from tests.ollama_server import Behaviour, ollama_server
from tests.refusing import refuses

OTHERS: list[Any] = [{"num_ctx": 4096}, {"think": True}, {"keep_alive": "1m"}, {"repeat_penalty": 1.5}]
OTHERS += [{"temperature": 0.7}, {"max_tokens": 7}, {"seed": 5}]


@pytest.fixture
def caching() -> Iterator[None]:
    with cached_by_dspy():
        yield


def counter() -> Behaviour:
    count = iter(range(1000))
    return lambda _: f'{{"preferred": {next(count)}}}'


@each_way
@pytest.mark.parametrize("prompt", ["Which?", request()], ids=["text", "request"])
@pytest.mark.parametrize("other", OTHERS[:4], ids=lambda other: next(iter(other)))
def test_the_cache_minds_options(caching: None, ask: Callable[..., Any], prompt: Any, other: dict[str, Any]) -> None:
    with ollama_server(counter()) as server:
        answers = [str(ask(lm_at(server, cache=True, **options), prompt)) for options in ({}, other, {}, other)]
    assert answers[0] == answers[2] != answers[1] == answers[3]
    assert len(server.log) == 2


@pytest.mark.parametrize("other", OTHERS[4:], ids=lambda other: next(iter(other)))
def test_a_copy_and_a_call_take_the_options_of_dspy_as_a_new_lm_does(caching: None, other: dict[str, Any]) -> None:
    with ollama_server(counter()) as server:
        lm = lm_at(server, cache=True)
        first = text_of(lm("Which?"))
        new = text_of(lm_at(server, cache=True, **other)("Which?"))
        assert text_of(lm.copy(**other)("Which?")) == text_of(lm("Which?", **other)) == new != first
        assert text_of(lm("Which?")) == first
        body, other_body = server.bodies()
    assert body != other_body


def test_the_cache_keeps_two_servers_apart_and_does_not_mind_the_deadline(caching: None) -> None:
    with ollama_server(lambda _: "here") as one, ollama_server(lambda _: "there") as other:
        assert text_of(lm_at(one, cache=True)("Which?")) == "here"
        assert text_of(lm_at(other, cache=True)("Which?")) == "there"
        assert text_of(lm_at(one, cache=True, timeout=7)("Which?")) == "here"
        assert len(one.log) == 1


def dump(lm: OllamaLM) -> Any:
    return dspy.BaseLM.load_state(json.loads(json.dumps(lm.dump_state())), allow_custom_lm_class=True)


@each_way
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps, dump, OllamaLM.copy])
def test_a_copied_or_saved_lm_asks_as_before(again: Callable[[OllamaLM], Any], ask: Callable[..., Any]) -> None:
    with ollama_server() as server:
        (lm := lm_at(server, num_ctx=2048, timeout=9, temperature=0.3, keep_alive="1m"))("Which?")
        twin: Any = again(lm)
        twin = pickle.loads(twin) if again is pickle.dumps else twin  # noqa: S301 -- our own
        ask(twin, "Which?")
        assert server.bodies()[0] == server.bodies()[1]
    assert (type(twin), twin.engine.timeout) == (OllamaLM, 9)


def test_a_saved_program_asks_the_same_server_once_its_user_trusts_the_file(tmp_path: Path) -> None:
    with ollama_server() as server:
        select = eldgr_dspy.Selector()
        select.judge.set_lm(lm_at(server, num_ctx=2048))
        select.save(str(tmp_path / "select.json"))
        again: Any = eldgr_dspy.Selector()
        again.load(str(tmp_path / "select.json"), allow_unsafe_lm_state=True)
        again.judge.predict.lm("Which?")
        assert server.bodies()[0]["options"]["num_ctx"] == 2048


def test_many_threads_share_one_lm() -> None:
    with ollama_server(lambda body: str(body["messages"][-1]["content"])) as server:
        lm = lm_at(server)
        parallel: Any = dspy.Parallel(num_threads=8, disable_progress_bar=True)
        result = parallel([(lambda number: text_of(lm(number)), {"number": f"number {n}"}) for n in range(24)])
    assert result == [f"number {n}" for n in range(24)]


def test_the_environment_may_name_the_address_and_a_bad_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = ollama("m", host="http://gpu-box:99999", cache=False, num_retries=0)
    refuses(dspy.LMError, "ollama serve", lm, "Which?")
    monkeypatch.setenv("OLLAMA_HOST", "gpu-box:7000")
    assert ollama("m").kwargs["metadata"]["host"] == "gpu-box:7000"
    monkeypatch.delenv("OLLAMA_HOST")
    assert ollama("m").kwargs["metadata"]["host"] == "http://127.0.0.1:11434"
