"""The engine for Ollama, through the unmodified client, against a server that speaks Ollama's wire format."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.lm15 import Message, Request
from hypothesis import assume, given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.engines.ollama import MOST_MIB, is_cut, ollama
from eldgr_dspy.programs.lms.consulting import is_fatal
from tests.asking_ollama import VERDICT, Prefer, each_way, lm_at, request, text_of, verdict_of
from tests.case_tables import each_case
from tests.ollama_server import Models, Reply, ollama_server
from tests.refusing import refuses


@each_way
def test_the_schema_the_options_and_thinking_off_are_on_the_wire(ask: Callable[..., Any]) -> None:
    schema = {"type": "object", "properties": {"preferred": {"type": "integer"}}}
    own = {"num_ctx": 4096, "keep_alive": "5m", "repeat_penalty": 1.1}
    with ollama_server() as server:
        lm = lm_at(server, **own, temperature=0.0, max_tokens=99, seed=7, top_p=0.9)
        ask(lm, request(response_format={"type": "json_schema", "schema": schema}, stop=("END",), temperature=0.5))
        ask(lm, "Which?")
        ask(lm_at(server), "Which?")
        full, plain, least = server.bodies()
    assert (full["model"], full["think"], full["format"], full["keep_alive"]) == ("deepseek-r1:7b", False, schema, "5m")
    assert full["options"] == {"num_ctx": 4096, "repeat_penalty": 1.1, "temperature": 0.5, "stop": ["END"]}
    of_dspy = {"temperature": 0.0, "num_predict": 99, "seed": 7, "top_p": 0.9}
    assert plain["options"] == {"num_ctx": 4096, "repeat_penalty": 1.1, **of_dspy}
    assert least["options"]["num_ctx"] == 8192


def test_json_is_asked_for_without_a_schema_too_and_dspy_asks_again_where_the_engine_does_not() -> None:  # hazard 87
    with ollama_server() as server:
        lm_at(server)(request(response_format={"type": "json_object"}))
        assert server.bodies()[0]["format"] == "json"
    replies = iter([Reply(VERDICT * 9, fault="torn"), Reply(VERDICT)])
    with ollama_server(lambda _: next(replies)) as server:
        assert text_of(lm_at(server, num_retries=1)("Which?")) == VERDICT
        assert len(server.log) == 2


def test_what_ollama_has_no_word_for_is_refused_and_not_dropped() -> None:
    image = Message.user([lm15.TextPart("What is it?"), lm15.ImagePart(url="http://127.0.0.1/i.png")])
    with ollama_server() as server:
        for query in (request(reasoning=lm15.Reasoning(effort="low")), request(logprobs=2)):
            refuses(dspy.LMUnsupportedFeatureError, "text alone", lm_at(server), query)
        query = Request(model="ollama/deepseek-r1:7b", messages=(image,))
        refuses(dspy.LMUnsupportedFeatureError, "image", lm_at(server), query)
        refuses(dspy.LMUnsupportedFeatureError, "num_ctx", lm_at(server), "Which?", num_ctx=4096)
        refuses(dspy.LMUnsupportedFeatureError, "num_ctx", lm_at(server).copy(num_ctx=4096), "Which?")
        assert not server.log


def test_a_key_comes_from_the_environment_and_is_written_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "s3cret")
    with ollama_server() as server:
        lm = lm_at(server)
        lm("Which?")
        assert server.log[0][3]["authorization"] == "Bearer s3cret"
        assert "s3cret" not in json.dumps([lm.dump_state(), repr(lm.history)])
        server.behaviour = lambda _: Reply("no", status=401)
        with pytest.raises(dspy.LMAuthError) as info:
            lm("Which?")
    assert "s3cret" not in str(info.value) and "OLLAMA_API_KEY" in str(info.value)


@each_way
@each_case("asking", "verdicts of Ollama")
def test_a_verdict_comes_without_what_was_thought(reply: dict[str, Any], ask: Callable[..., Any]) -> None:  # hazard 60
    with ollama_server(lambda _: Reply(**reply)) as server:
        assert text_of(ask(lm_at(server), "Which?")) == VERDICT


@each_case("asking", "no verdicts of Ollama")
def test_no_draft_and_no_half_reply_wins(reply: dict[str, Any]) -> None:  # hazards 57, 58, 59, 60, 61, 62
    with ollama_server(lambda _: Reply(**reply)) as server, pytest.raises(dspy.AdapterParseError):
        verdict_of(lm_at(server))


@pytest.mark.parametrize("adapter", [dspy.JSONAdapter(), dspy.ChatAdapter(use_json_adapter_fallback=False)])
def test_an_adapter_of_the_user_sees_no_unclosed_draft(adapter: Any) -> None:
    draft = '<think>{"preferred": 0} [[ ## preferred ## ]]\n0\n'
    with ollama_server(lambda _: draft) as server, dspy.context(lm=lm_at(server), adapter=adapter):
        refuses(dspy.AdapterParseError, "empty", dspy.Predict(Prefer), question="Which?")


def test_a_reply_that_was_cut_off_says_so_and_another_model_than_asked_is_visible() -> None:  # hazard 83
    with ollama_server(lambda _: Reply('{"pre', reason="length")) as server:
        assert lm_at(server)(request()).finish_reason == "length"
    with ollama_server(lambda _: Reply(VERDICT, model="tinyllama:latest")) as server:
        (lm := lm_at(server))("Which?")
    (entry,) = lm.history
    assert (entry["model"], entry["response_model"]) == ("ollama/deepseek-r1:7b", "tinyllama:latest")


@pytest.mark.parametrize(("read", "output"), [(31, 9), (None, None), (0, None), (-1, -1)])
def test_tokens_are_counted_as_the_server_says_and_unknown_otherwise(read: Any, output: Any) -> None:  # hazard 84
    with ollama_server(lambda _: Reply(VERDICT, read=read, output=output)) as server:
        usage = lm_at(server)(request()).usage
    counts = (31, 9, 40) if read == 31 else (None, None, None)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == counts


def test_a_stream_of_dspys_shows_the_answer_and_nothing_thought() -> None:
    async def stream(lm: dspy.LM) -> list[Any]:
        listeners = [dspy.streaming.StreamListener("preferred")]
        program: Any = dspy.streamify(dspy.Predict(Prefer), stream_listeners=listeners)
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            return [piece async for piece in program(question="Which?")]

    with ollama_server(lambda _: f'<think>{{"preferred": 0}}</think>{VERDICT}') as server:
        pieces = asyncio.run(stream(lm_at(server)))
    assert pieces[-1].preferred == 1
    assert "0" not in "".join(getattr(piece, "chunk", "") for piece in pieces)


@each_way
@pytest.mark.parametrize(("words", "counts"), [(900, (1024, 9)), (900, (514, 9)), (1200, (None, None))], ids=str)
def test_a_prompt_that_was_cut_gives_no_verdict(ask: Callable[..., Any], words: int, counts: Any) -> None:  # hazard 82
    reply, read_in_part = Reply(VERDICT, read=counts[0], output=counts[1]), dspy.ContextWindowExceededError
    with ollama_server(lambda _: reply) as server, pytest.raises(read_in_part, match="num_ctx=") as info:
        ask(lm_at(server, num_ctx=1024), "word " * words)
    assert not dspy.is_retryable_lm_error(info.value)
    assert not is_fatal(info.value)  # another question may be shorter


@each_case("asking", "prompts that were cut")
def test_a_prompt_that_was_cut_is_told_from_one_that_may_have_been_read(arguments: Any, cut: bool) -> None:  # hazard 82
    assert is_cut(*arguments) is cut


@given(st.integers(0, 9000), st.floats(1, 4), st.integers(1, 40).map(lambda n: n * 256), st.integers(0, 500))
def test_a_prompt_that_fits_is_never_called_cut(words: int, per_word: float, num_ctx: int, output: int) -> None:
    tokens = int(words * per_word) + 8  # a template adds some
    assume(tokens + output <= num_ctx and tokens < num_ctx - 1)
    assert not is_cut(words, num_ctx, tokens, output)
    assert not is_cut(words, num_ctx, None, output)


def test_an_error_about_the_context_is_one_of_the_context_and_an_address_that_is_not_ollamas_is_fatal() -> None:
    reply = Reply("the input length exceeds the context length", status=400)
    with ollama_server(lambda _: reply) as server, pytest.raises(dspy.ContextWindowExceededError):
        lm_at(server)("Which?")
    with ollama_server() as server, pytest.raises(dspy.LMInvalidRequestError, match="check the address") as info:
        ollama("deepseek-r1:7b", host=f"{server.address}/elsewhere", cache=False, num_retries=0)("Which?")
    assert is_fatal(info.value)


@each_way
@pytest.mark.parametrize("fault", ["hang", "drip", "headers"])
def test_a_call_ends_at_its_deadline_and_hangs_up(fault: str, ask: Callable[..., Any]) -> None:  # hazards 79, 81
    with ollama_server(lambda _: Reply(VERDICT, fault=fault)) as server:
        start = time.monotonic()
        with pytest.raises(dspy.LMTimeoutError, match="timeout=") as info:
            ask(lm_at(server, timeout=0.2), "Which?")
        assert time.monotonic() - start < 10 and server.hangup.wait(10)
        assert dspy.is_retryable_lm_error(info.value)


@each_way
@pytest.mark.parametrize("fault", ["reset", "torn", "junk", "packed"])
def test_a_broken_reply_is_retryable(fault: str, ask: Callable[..., Any]) -> None:  # hazard 79
    """What is compressed although nobody asked is not expanded."""
    failures, reply = (dspy.LMTransportError, dspy.LMServerError), Reply(VERDICT * 9, fault=fault)
    with ollama_server(lambda _: reply) as server, pytest.raises(failures) as info:
        ask(lm_at(server), "Which?")
    assert dspy.is_retryable_lm_error(info.value)
    assert fault != "packed" or (info.type is dspy.LMTransportError and "ollama serve" in str(info.value))


@each_way
def test_a_response_without_end_ends_at_its_deadline_or_before_it_fills_the_memory(ask: Callable[..., Any]) -> None:
    on_the_way = 16 * 2**20  # in the buffers of the system
    with ollama_server(lambda _: Reply(VERDICT, fault="flood")) as server:
        message = "more than 32 MiB in one response"
        refuses(dspy.LMTransportError, message, ask, lm_at(server, timeout=600), "Which?")
    assert server.size <= MOST_MIB * 2**20 + on_the_way
    with ollama_server(lambda _: Reply(VERDICT, fault="flood")) as server:
        refuses(dspy.LMTimeoutError, "timeout=", ask, lm_at(server, timeout=0.01), "Which?")


@each_case("asking", "errors of Ollama by status")
def test_an_http_error_is_dspy_s(status: int, kind: str, fatal: bool, passes: bool) -> None:  # hazards 79, 80
    with ollama_server(lambda _: Reply("no", status=status)) as server, pytest.raises(dspy.LMError) as info:
        lm_at(server)("Which?")
    assert (info.type, getattr(info.value, "status", None)) == (getattr(dspy, kind), status)
    assert (is_fatal(info.value), dspy.is_retryable_lm_error(info.value)) == (fatal, passes)


@each_way
def test_a_missing_model_is_fatal_and_a_refused_connection_may_pass(ask: Callable[..., Any]) -> None:  # hazards 79, 80
    with ollama_server(models=Models(names=[])) as server:
        with pytest.raises(dspy.LMUnsupportedModelError, match="ollama pull deepseek-r1:7b") as info:
            ask(lm_at(server, num_retries=3), "Which?")
        assert len(server.log) == 1
    assert is_fatal(info.value)
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))  # and does not listen
        lm = ollama("m", host=f"127.0.0.1:{port.getsockname()[1]}", cache=False, num_retries=0)
        with pytest.raises(dspy.LMTransportError, match="ollama serve") as info:
            ask(lm, "Which?")
    assert dspy.is_retryable_lm_error(info.value)


@pytest.mark.parametrize("key", ["s3cret\n", "s3cr\u00e9t", "s3 cret"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_quoted(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", key)
    refuses(ArgumentError, "OLLAMA_API_KEY must be one word of ASCII; got '\\*\\*\\*'", ollama, "m")
