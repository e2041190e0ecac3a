"""Any LM that DSPy reaches plays a role, in one line: what the page on models shows, against a server on loopback."""

import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pytest

from eldgr_dspy.figures.record import is_same_model
from eldgr_dspy.programs.commands import main
from tests.asking.transport import verdict
from tests.capitals import row, write_pool
from tests.house.doc_blocks import ROOT, blocks
from tests.lm_server import Answer, Asked, LMServer, obliging, serving

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


def closing(request: Asked) -> Answer:
    """LiteLLM keeps connections open beyond the test."""
    return Answer(verdict(2), closes=True) if request.role == "judge" else Answer(obliging(request).text, closes=True)


def models(command: list[str]) -> dict[str, str]:
    """The model that each role of retrieval is to be asked of, by the options of a command."""
    given = {option.removeprefix("--"): value for option, value in pairwise(command)}
    result = {role: given.get(role) or given.get("lm") for role in ("judge", "repairer")}
    return {role: model.partition("/")[2] for role, model in result.items() if model}


def named(command: list[str]) -> str:
    return " ".join(word for word in command[3:] if word not in ("--api-base", HERE))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            one, marks=[pytest.mark.slow] if LITELLM & {word.split("/")[0] for word in one} else [], id=named(one)
        )
        for one in COMMANDS
    ],
)
def test_each_command_of_the_page_asks_the_models_that_it_names(command: list[str], tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "pool.jsonl", [row(0), row(1, answers=("Nice", "Nice", "Oslo"))])
    with serving(closing) as server:
        words = [
            str(pool) if word == "pool.jsonl" else word for word in command[1:] if word not in ("--api-base", HERE)
        ]
        assert main([*words, "--api-base", server.address, "--out", str(tmp_path / "run"), "--quiet"]) == 0
        roles = {entry.role: entry.model for entry in server.log}
    assert roles == models(command)


def on(server: LMServer) -> SimpleNamespace:
    """DSPy, whose LMs are all on one server."""

    def lm(model: str, **options: Any) -> Any:
        return dspy.LM(model, **{**options, "api_base": server.address, "cache": False})

    return SimpleNamespace(LM=lm, configure=dspy.configure, context=dspy.context)


def test_each_example_of_the_page_asks_the_model_that_it_names() -> None:
    expected = ["gpt-4o-mini", "Qwen/Qwen3-8B", "deepseek-chat"]
    assert len(EXAMPLES) == len(expected)
    with serving(closing) as server:
        names: dict[str, Any] = {"dspy": on(server)}
        for block, model in zip(EXAMPLES, expected, strict=True):
            server.log.clear()
            text = re.sub(r"^import dspy$", "", block.text, flags=re.MULTILINE)
            try:
                exec(compile(text, block.place, "exec"), names)  # noqa: S102 -- the page's own example
            finally:
                dspy.configure(lm=None)
            assert [(entry.role, entry.model) for entry in server.log] == [("judge", model)]


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("openai/gpt-4o", "gpt-4o-2024-08-06", True), ("openai/gpt-4o", "gpt-4o-mini", False),
        ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18", True), ("openai/gpt-4", "gpt-4-0613", True),
        ("openai/gpt-4", "gpt-4o", False), ("anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("gemini/gemini-2.5-flash", "models/gemini-2.5-flash-001", True),
        ("gemini/gemini-2.5-flash", "gemini-2.5-pro", False),
        ("together_ai/meta-llama/Llama-3-8b", "meta-llama/Llama-3-8b", True),
        ("openrouter/openai/gpt-4o-mini", "openai/gpt-4o-mini", True),
        ("ollama/deepseek-r1:7b#think=0,ctx=8192", "deepseek-r1:7b", True),
        ("ollama/deepseek-r1", "deepseek-r1:latest", True), ("ollama/deepseek-r1:7b", "deepseek-r1:70b", False),
        ("openai/gpt-4o+openai/o3", "o3-2025-04-16", True), ("OPENAI/GPT-4o", "gpt-4O", True), (None, "gpt-4o", None),
        ("openai/gpt-4o", None, None),
    ],
)  # fmt: skip
def test_a_model_is_the_one_that_was_asked_dates_and_providers_aside(  # hazard 83
    asked: str | None, served: str | None, same: bool | None
) -> None:
    assert is_same_model(asked, served) is same
