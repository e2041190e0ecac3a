"""How a signature is asked: the base of every module that asks one once, and asking several modules in turn or at once.

A module fences what it is given, asks, and returns plain JSON values. It checks no range and catches no error:
`eldgr_dspy.rule.replies` does the first, the driver of the rule the second. Its LM is unbound, so that
`dspy.configure`, `dspy.context` and `set_lm` all reach it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from itertools import starmap
from types import FunctionType
from typing import Any, NamedTuple

import dspy
from pydantic import BaseModel

from eldgr_dspy.programs.engines.strict import strict_parsing
from eldgr_dspy.programs.lms.consulting import RoleOutput, aask, ask
from eldgr_dspy.programs.lms.fencing import fence_fields
from eldgr_dspy.programs.service.saved_state import Saved
from eldgr_dspy.words import Role


class Request(NamedTuple):
    """A module, what it is called with, and the role that it plays, if it plays one."""

    module: dspy.Module
    inputs: Mapping[str, object]
    role: Role | None = None


_AT_ONCE = 16


class OneCall(Saved):
    """Asks its signature once. A subclass may say in `show` what the LM is shown, and in `read` what its reply becomes.

    `forward` and `aforward` take the inputs of the signature; further arguments are not read.

    Attributes:
        signature: What is asked.
        sets_lm: Whether it may set an LM when it is called, so that it needs none before.
    """

    signature: Any
    sets_lm = False

    def __init__(self, signature: Any = None) -> None:
        super().__init__()
        if signature is not None:
            self.signature = signature
        self.predict = dspy.Predict(self.signature)

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a class with a `signature` of its own methods that show its inputs, unless it has such methods."""
        super().__init_subclass__(**options)
        if "signature" not in vars(cls):
            return
        parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
        for name, field in cls.signature.input_fields.items():
            kind = str if field.annotation is str else Sequence[str]
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind))
        for name in ("forward", "aforward"):
            if name in vars(cls):
                continue
            shared: Any = getattr(OneCall, name)
            own: Any = FunctionType(shared.__code__, shared.__globals__, name, None, shared.__closure__)
            own.__doc__, own.__signature__ = shared.__doc__, Signature(parameters, return_annotation=dspy.Prediction)
            setattr(cls, name, own)

    def show(self, **inputs: Any) -> dict[str, Any]:
        """Return the inputs of the signature, each text between its marker lines."""
        return fence_fields({name: inputs[name] for name in self.signature.input_fields})

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return the outputs of the signature as plain JSON values, given a reply and the arguments of `forward`."""
        return dspy.Prediction(**{name: _plain(reply[name]) for name in self.signature.output_fields})

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Ask once.

        Raises:
            dspy.AdapterParseError: The reply cannot be read.
            dspy.LMError: The request failed.
        """
        with strict_parsing():
            return self.read(self.predict(**self.show(**inputs)), inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        with strict_parsing():
            return self.read(await self.predict.acall(**self.show(**inputs)), inputs)

    def most_calls(self, candidates: Sequence[str]) -> int:
        """Return 1: one call for any candidates."""
        return 1


def calls_of(module: dspy.Module, candidates: Sequence[str]) -> int | None:
    """Return how many LM calls a role takes at most for one question, not counting repeats, or None if it does not say.

    A module says so in a method `most_calls(candidates)`, given the candidates as a judge is shown them (an empty list
    for another role). It may depend only on how many there are, how long, which texts are equal and which answers vote
    together.
    """
    says: Any = getattr(module, "most_calls", None)
    if not callable(says):
        return None
    calls: Any = says(candidates)
    return None if calls is None else int(calls)


def ask_each(requests: Sequence[Request]) -> list[RoleOutput]:
    """Return the outcome of each, asked one after the other, whatever the earlier replies; raises what `ask` raises."""
    return list(starmap(ask, requests))


async def aask_each(requests: Sequence[Request]) -> list[RoleOutput]:
    """Return the same, asking a bounded number at once. A call that fails is raised once the others are awaited."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def asked(request: Request) -> RoleOutput:
        async with free:
            return await aask(*request)

    outcomes = await asyncio.gather(*map(asked, requests), return_exceptions=True)
    replies: list[RoleOutput] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        replies.append(outcome)
    return replies


def _plain(value: Any) -> Any:
    """A field's value without models. A hint may be any JSON, however deep."""
    if isinstance(value, list):
        return [item.model_dump(mode="json") if isinstance(item, BaseModel) else item for item in value]
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
