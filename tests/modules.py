"""Programs that do what a test says, and what watches DSPy's."""

from collections.abc import Callable
from typing import Any

import dspy
from dspy.utils import BaseCallback
from dspy.utils.callback import ACTIVE_CALL_ID


class Answers(dspy.Module):
    """A program that returns or raises what it is given, call after call."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = iter(answers)

    def forward(self, **_: Any) -> Any:
        reply = next(self.answers)
        if isinstance(reply, Exception):
            raise reply
        return reply


class Does(dspy.Module):
    """A program that does what a function of it and the inputs says; its parts are named."""

    def __init__(self, act: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.act = act
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, **inputs: Any) -> Any:
        return self.act(self, **inputs)


class Announce(dspy.streaming.StatusMessageProvider):
    """Tells in a stream which module is called."""

    def module_start_status_message(self, instance: Any, inputs: dict[str, Any]) -> str:
        return type(instance).__name__


class Spans(BaseCallback):
    """Keeps which module called which, by the names of their classes."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.parents: dict[str, str | None] = {}

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.names[call_id], self.parents[call_id] = type(instance).__name__, ACTIVE_CALL_ID.get()

    def below(self, parent: str | None = None) -> list[Any]:
        """The spans below one, each with those below itself."""
        return [[self.names[one], *self.below(one)] for one, above in self.parents.items() if above == parent]
