"""What DSPy saves and optimizes of a selector: the roles that can be asked, and its choices as a DSPy parameter.

A parameter is kept by `save` even if the selector is nested in a user's program.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from dspy.predict.parameter import Parameter

from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import ROLES, Role, Task

CHOICES = "choices"
"""The name under which a selector's choices are saved."""

_RETRIEVAL: Mapping[str, tuple[Role, ...]] = {
    **dict.fromkeys(("first", "majority", "certified"), ()),
    "judge": ("judge",),
    **dict.fromkeys(("eldgr", "eldgr_certified", "near"), ("judge", "repairer")),
}
_ARITHMETIC: Mapping[str, tuple[Role, ...]] = {
    **dict.fromkeys(("eldgr", "eldgr_certified"), ("deriver",)),
    "near": ("judge", "deriver"),
}
_ASKED: Mapping[Task, Mapping[str, tuple[Role, ...]]] = {
    "retrieval": _RETRIEVAL,
    "arithmetic": {**_RETRIEVAL, **_ARITHMETIC},
}
"""The roles that each rule may ask in each task; a rule that is not here may ask any."""


def is_asked(parameter: str, rule: str, task: Task) -> bool:
    """Return whether a parameter of a selector belongs to a role that the rule may ask in the task, or to no role."""
    asked = _ASKED[task].get(rule.partition("(")[0], ROLES)
    return not any(
        parameter == role or parameter.startswith((f"{role}.", f"{role}[")) for role in ROLES if role not in asked
    )


class SavedChoices(Parameter):
    """Choices by name: stated when a program is saved, and compared when it is loaded. Loading changes none."""

    def __init__(self, choices: Callable[[], Mapping[str, Any]]) -> None:
        self._choices = choices

    def reset(self) -> None:
        """Do nothing: an optimizer starts from the same choices."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Return the choices as plain JSON values."""
        stated: dict[str, Any] = json.loads(json.dumps(self._choices()))
        return stated

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Compare the choices with saved ones.

        Raises:
            ArgumentError: They differ; the message says in what.
        """
        if not isinstance(state, Mapping):
            raise ArgumentError(f"The saved choices of a Selector must be a mapping; got {state!r:.80}. Save it anew.")
        changed = differences(state, self.dump_state())
        if changed:
            listed = "\n".join(f"  {line}" for line in changed)
            raise ArgumentError(
                f"This program was saved with other choices of its Selector (saved -> present):\n{listed}\n"
                "Make the Selector with the saved choices, or compile and save it anew."
            )


def require_choices(state: Mapping[str, Any]) -> None:
    """Refuse the state of a selector that was saved without choices.

    Raises:
        ArgumentError: There are no choices.
    """
    if CHOICES not in state:
        raise ArgumentError(
            f"The file has no {CHOICES!r} of a Selector: it was saved by an earlier version, or is of another program. "
            "Give the Selector its settings, compile it and save it anew."
        )
