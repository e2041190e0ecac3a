"""The ten-thousandth call costs what the first does: nothing that is called looks through what DSPy remembers."""

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.lms.credentials import remember_credentials
from eldgr_dspy.programs.lms.lms import holds_lm, with_lms
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.run.role_calls import role_call
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.programs.typed_answers import outputs

REPLY = "[[ ## answer ## ]]\nDoha\n\n[[ ## completed ## ]]"


class Desk(dspy.Module):  # a program that retrieves its own passages
    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.Predict("context: list[str], question -> answer")

    def forward(self, question: str) -> Any:
        return self.respond(context=["Doha is the capital of Qatar."], question=question)

    async def aforward(self, question: str) -> Any:
        return await self.respond.acall(context=["Doha is the capital of Qatar."], question=question)


def function_calls(work: Callable[[], Any]) -> int:
    """How many functions are called meanwhile, in this thread and in those that it starts."""
    counted = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counted


@pytest.mark.parametrize("is_async", [False, True])
def test_a_later_call_of_a_sampled_program_calls_as_many_functions_as_an_early_one(is_async: bool) -> None:
    sampled = Sampled(Desk(), n=3, num_threads=1)

    def call() -> Any:
        return asyncio.run(sampled.acall(question="Which?")) if is_async else sampled(question="Which?")

    with dspy.context(lm=scripted_lm(lambda _: REPLY)):
        for _ in range(3):
            call()
        early = function_calls(call)
        for _ in range(20):
            call()
        assert len(sampled.history) == 3 * 24
        assert function_calls(call) < 1.1 * early  # a walk through the history makes it twice as many


class Sealed(list[Any]):  # a record that nobody may read
    def __iter__(self) -> Any:
        raise AssertionError("The record was read.")


@pytest.mark.parametrize(
    "look",
    [lambda program: with_lms(program, lambda lm: lm), remember_credentials, holds_lm, outputs, describe, role_call],
    ids=["with_lms", "remember_credentials", "holds_lm", "outputs", "describe", "role_call"],
)
def test_who_looks_for_modules_and_lms_does_not_read_what_they_remember(look: Callable[[Any], Any]) -> None:
    lm = scripted_lm(lambda _: REPLY)
    program: Any = Sampled(Desk(), select=Selector())
    program.program.set_lm(lm)
    several: list[Any] = [lm, program, program.program, program.program.respond, program.select, program.select.judge]
    for one in several:
        one.history = Sealed([{"messages": [{"content": "Which?"}]}])
    look(program)
