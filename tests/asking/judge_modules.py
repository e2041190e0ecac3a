"""What the tests of judges share: modules that reply by a function of what they are shown, and both ways to ask."""

from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest

from tests.selecting import awaiting

EVIDENCE = ["Doha is the capital of Qatar."]

CALLS = {"sync": lambda judge: judge, "async": lambda judge: awaiting(judge.acall)}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


class Replies(dspy.Module):
    """Replies by a function of one of its inputs, and keeps all that it is shown."""

    def __init__(self, reply: Callable[[Any], Any], about: str = "candidates") -> None:
        super().__init__()
        self.reply, self.about, self.inputs = reply, about, list[dict[str, Any]]()

    @property
    def values(self) -> list[Any]:
        return [one[self.about] for one in self.inputs]

    def forward(self, **inputs: Any) -> Any:
        self.inputs.append(inputs)
        return dspy.Prediction(**self.reply(inputs[self.about]))

    async def aforward(self, **inputs: Any) -> Any:
        return self.forward(**inputs)


def scoring(reply: Callable[[str], Any]) -> Replies:
    """A module that gives the candidate that it is shown a scalar, or says what is given in its place."""

    def about(candidate: str) -> Any:
        result = reply(candidate)
        return result if isinstance(result, dict) else {"assessment": {"scalar": result}}

    return Replies(about, "candidate")


def assess(judge: Any, candidates: Sequence[str]) -> Any:
    return judge(question="q?", evidence=EVIDENCE, candidates=list(candidates)).toDict()


def properties_of(request: Any) -> Any:
    return request.config.response_format["schema"]["properties"]
