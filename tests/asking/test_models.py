"""A model's name says what becomes of it."""

from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.engines.ollama import OllamaLM
from eldgr_dspy.programs.lms.models import lm_named
from eldgr_dspy.programs.roles import Judge
from tests.asking.transport import GOOD
from tests.lm_server import serving


@pytest.mark.parametrize("name", ["ollama/deepseek-r1:7b", "ollama_chat/deepseek-r1:7b", " ollama/deepseek-r1:7b "])
@pytest.mark.parametrize("api_base", ["http://127.0.0.1:7", "http://127.0.0.1:7/v1", "127.0.0.1:7"])
def test_names_of_ollama_go_to_our_engine(name: str, api_base: str) -> None:
    lm: Any = lm_named(name, api_base, temperature=0.0, num_ctx=4096, timeout=9)
    assert type(lm) is OllamaLM
    assert (lm.model, getattr(lm.engine, "timeout", None)) == ("ollama/deepseek-r1:7b", 9)
    assert lm.kwargs["metadata"] == {"host": api_base.removesuffix("/v1"), "num_ctx": 4096, "think": False}
    assert lm.kwargs["temperature"] == 0.0


def test_a_name_of_ollama_may_have_a_path() -> None:
    assert lm_named("ollama/hf.co/b/Llama-3.2-3B-GGUF:Q4_K_M").model.endswith("b/Llama-3.2-3B-GGUF:Q4_K_M")


@pytest.mark.parametrize("name", ["openai/gpt-4o-mini", "gemini/gemini-2.5-flash", "hosted_vllm/ollama/x"])
def test_other_names_go_to_dspy(name: str) -> None:
    lm = lm_named(name, "http://127.0.0.1:7/v1", cache=False)
    assert type(lm) is dspy.LM
    assert (lm.model, lm.kwargs["api_base"], lm.cache) == (name, "http://127.0.0.1:7/v1", False)
    assert "api_base" not in lm_named(name).kwargs


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *((name, {}, "PROVIDER/MODEL") for name in ("", "ollama", "ollama/", "gpt-4o-mini", "/x", "ollama_chat/ ")),
        ("openai/m", {"num_ctx": 4096}, r"got .*openai/m\. Name the model ollama/MODEL, or leave the context"),
        ("ollama/m", {"api_base": "http://"}, "must be an address"),
        (
            "local:m.gguf",
            {"api_base": "http://127.0.0.1:1/v1"},
            r"'local:m\.gguf' runs in this process and takes no api_b",
        ),
    ],
)
def test_what_is_no_name_of_a_model_or_does_not_go_with_it_is_refused(name: str, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        lm_named(name, **options)


def test_a_model_of_vllm_is_on_a_server_and_a_placeholder_is_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(lambda _: GOOD) as server:
        with dspy.context(lm=lm_named(" vllm/Qwen/Qwen3-8B", server.address, cache=False)):
            Judge()(question="Who?", evidence=["A\nIt was A."], candidates=["A", "B", "C"])
        (entry,) = server.log
    assert (entry.model, entry.token) == ("Qwen/Qwen3-8B", "EMPTY")
    assert lm_named("vllm/Qwen/Qwen3-8B").model == lm_named("hosted_vllm/Qwen/Qwen3-8B").model
