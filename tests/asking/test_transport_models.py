"""A model's name says what becomes of it: what the page on models shows, and other names, against a local server."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pytest

from eldgr_dspy.figures.record import is_same_model
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.engines.ollama import OllamaLM
from eldgr_dspy.programs.lms.models import make_lm
from eldgr_dspy.programs.roles import Judge
from tests.asking.transport import GOOD
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.house.doc_blocks import ROOT, blocks
from tests.lm_server import Answer, Request, obliging, serving

PAGE = ROOT / "docs" / "how-to" / "choose-models.md"
EXAMPLES = [block for block in blocks(PAGE) if block.language == "py"]
COMMANDS = [
    line.partition("  #")[0].split()
    for block in blocks(PAGE)
    if block.language == "sh"
    for line in block.text.splitlines()
    if line.startswith("eldgr evaluate") and "ollama/" not in line and "local:" not in line
]
HERE = "http://localhost:8000/v1"
LITELLM = {"hosted_vllm", "mistral", "together_ai", "openrouter"}
"""Providers that DSPy reaches by LiteLLM, which takes seconds to import."""


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("OPENAI", "DEEPSEEK", "GROQ", "MISTRAL", "TOGETHERAI", "OPENROUTER"):
        monkeypatch.setenv(f"{provider}_API_KEY", "none")


def closing(request: Request) -> Answer:
    """LiteLLM keeps connections open beyond the test."""
    return replace(GOOD if request.role == "judge" else obliging(request), closes=True)


def models(command: list[str]) -> dict[str, str]:
    """The model that each role of retrieval is to be asked of, by the options of a command."""
    options = {option.removeprefix("--"): value for option, value in pairwise(command)}
    result = {role: options.get(role) or options.get("lm") for role in ("judge", "repairer")}
    return {role: model.partition("/")[2] for role, model in result.items() if model}


def mark(command: list[str]) -> Any:
    slow = LITELLM & {word.split("/")[0] for word in command}
    name = " ".join(word for word in command[3:] if word not in ("--api-base", HERE))
    return pytest.param(command, marks=[pytest.mark.slow] if slow else [], id=name)


@pytest.mark.parametrize("command", [*map(mark, COMMANDS)])
def test_each_command_of_the_page_asks_the_models_that_it_names(command: list[str], tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "pool.jsonl", [row(0), row(1, answers=("Nice", "Nice", "Oslo"))])
    with serving(closing) as server:
        words = [{"pool.jsonl": str(pool), HERE: server.address}.get(word, word) for word in command[1:]]
        assert main([*words, "--api-base", server.address, "--out", str(tmp_path / "run"), "--quiet"]) == 0
        roles = {entry.role: entry.model for entry in server.log}
    assert roles == models(command)


def test_each_example_of_the_page_asks_the_model_that_it_names() -> None:
    expected = ["gpt-4o-mini", "Qwen/Qwen3-8B", "deepseek-chat"]
    assert len(EXAMPLES) == len(expected)
    with serving(closing) as server:

        def lm(model: str, **options: Any) -> Any:
            return dspy.LM(model, **{**options, "api_base": server.address, "cache": False})

        names = {"dspy": SimpleNamespace(LM=lm, configure=dspy.configure, context=dspy.context)}
        for block, model in zip(EXAMPLES, expected, strict=True):
            server.log.clear()
            text = re.sub(r"^import dspy$", "", block.text, flags=re.MULTILINE)
            try:
                exec(compile(text, block.place, "exec"), names)  # noqa: S102 -- the page's own example
            finally:
                dspy.configure(lm=None)
            assert [(entry.role, entry.model) for entry in server.log] == [("judge", model)]


@each_case("asking", "models served")
def test_a_dated_model_is_the_one_asked(model: str | None, reply: str | None, same: bool | None) -> None:  # hazard 83
    assert is_same_model(model, reply) is same


@pytest.mark.parametrize("name", ["ollama/deepseek-r1:7b", "ollama_chat/deepseek-r1:7b", " ollama/deepseek-r1:7b "])
@pytest.mark.parametrize("api_base", ["http://127.0.0.1:7", "http://127.0.0.1:7/v1", "127.0.0.1:7"])
def test_names_of_ollama_go_to_our_engine(name: str, api_base: str) -> None:
    lm: Any = make_lm(name, api_base, temperature=0.0, num_ctx=4096, timeout=9)
    assert (type(lm), lm.model, lm.engine.timeout) == (OllamaLM, "ollama/deepseek-r1:7b", 9)
    metadata = {"host": api_base.removesuffix("/v1"), "num_ctx": 4096, "think": False}
    assert (lm.kwargs["metadata"], lm.kwargs["temperature"]) == (metadata, 0.0)
    assert make_lm("ollama/hf.co/b/Llama-3.2-3B-GGUF:Q4_K_M").model.endswith("b/Llama-3.2-3B-GGUF:Q4_K_M")


@pytest.mark.parametrize("name", ["openai/gpt-4o-mini", "gemini/gemini-2.5-flash", "hosted_vllm/ollama/x"])
def test_other_names_go_to_dspy(name: str) -> None:
    lm = make_lm(name, "http://127.0.0.1:7/v1", cache=False)
    assert type(lm) is dspy.LM
    assert (lm.model, lm.kwargs["api_base"], lm.cache) == (name, "http://127.0.0.1:7/v1", False)
    assert "api_base" not in make_lm(name).kwargs


def test_a_model_of_vllm_is_on_a_server_and_a_placeholder_is_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(lambda _: GOOD) as server:
        with dspy.context(lm=make_lm(" vllm/Qwen/Qwen3-8B", server.address, cache=False)):
            Judge()(question="Who?", evidence=["A\nIt was A."], candidates=["A", "B", "C"])
        (entry,) = server.log
    assert (entry.model, entry.token) == ("Qwen/Qwen3-8B", "EMPTY")
    assert make_lm("vllm/Qwen/Qwen3-8B").model == make_lm("hosted_vllm/Qwen/Qwen3-8B").model
