"""What the tests of the engine for Ollama share: an LM at a server, and the ways to ask it."""

import asyncio
from typing import Any

import dspy
import pytest
from dspy.lm15 import Config, Message, Request

from eldgr_dspy.programs.engines.ollama import OllamaLM, ollama
from eldgr_dspy.programs.engines.strict import STRICT
from tests.ollama_server import OllamaServer

VERDICT = '{"preferred": 1}'


class Prefer(dspy.Signature):
    """Name the better candidate."""

    question: str = dspy.InputField()
    preferred: int = dspy.OutputField()


def call(lm: dspy.LM, prompt: Any) -> Any:
    return lm(prompt)


def acall(lm: dspy.LM, prompt: Any) -> Any:
    return asyncio.run(lm.acall(prompt))


each_way = pytest.mark.parametrize("ask", [call, acall])


def lm_at(server: OllamaServer, **options: Any) -> OllamaLM:
    return ollama("deepseek-r1:7b", host=server.address, **{"cache": False, "num_retries": 0, "timeout": 20, **options})


def text_of(outputs: Any) -> str:
    first = outputs[0]
    text: str = first if isinstance(first, str) else first["text"]
    return text


def request(text: str = "Which?", **config: Any) -> Request:
    return Request(model="ollama/deepseek-r1:7b", messages=(Message.user(text),), config=Config(**config))


def verdict_of(lm: dspy.LM, question: str = "Which?", **options: Any) -> Any:
    with dspy.context(lm=lm, adapter=STRICT):
        return dspy.Predict(Prefer)(question=question, **options).preferred
