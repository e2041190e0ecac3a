"""What DSPy saves and optimizes of a selector: the roles that can be asked, and its choices as a DSPy parameter.

A parameter is kept by `save` even if the selector is nested in a user's program. `Sampled` saves its own likewise.
"""

import json
from collections.abc import Callable, Container, Mapping
from typing import Any

from dspy.predict.parameter import Parameter

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.saved_state import Saved
from eldgr_dspy.questions import require_hashes
from eldgr_dspy.words import ASKING_NOBODY, ROLES, Consulted, Role, Task

CHOICES = "choices"
"""The name under which choices are saved."""

_RETRIEVAL: Mapping[str, tuple[Role, ...]] = {
    **dict.fromkeys(ASKING_NOBODY, ()),
    "judge": ("judge",),
    **dict.fromkeys(("eldgr", "eldgr_certified", "support", "near"), ("judge", "repairer")),
}
_ARITHMETIC: Mapping[str, tuple[Role, ...]] = {
    **dict.fromkeys(("eldgr", "eldgr_certified", "support"), ("deriver",)),
    "near": ("judge", "deriver"),
}
_ASKED: Mapping[Task, Mapping[str, tuple[Role, ...]]] = {
    "retrieval": _RETRIEVAL,
    "arithmetic": {**_RETRIEVAL, **_ARITHMETIC},
}
"""The roles that each rule may ask in each task; a rule that is not here may ask any."""


def is_asked(parameter: str, rule: str, kind: AnswerType) -> bool:
    """Return whether a parameter of a selector belongs to a role that the rule may ask of the type, or to no role."""
    asked = roles_of(rule, kind)
    return not any(
        parameter == role or parameter.startswith((f"{role}.", f"{role}[")) for role in ROLES if role not in asked
    )


def asked_after(
    name: Consulted, rule: str, kind: AnswerType, heard: Container[str], *, certifies: bool
) -> list[Consulted]:
    """Return who may still be asked under a rule after this one, given who was heard.

    EL-DGR asks in the order of the table; `near(K)` and a rule of one's own may ask a role after any other. Where a
    consulted certificate `certifies`, a repair is put to it.
    """
    roles, free = roles_of(rule, kind), rule.startswith("near(") or rule not in _ASKED[kind.task]
    later = roles if free or name not in roles else roles[roles.index(name) :]
    left: list[Consulted] = [role for role in later if role != name and role not in heard]
    return [*left, "repair_certificate"] if certifies and "repairer" in (name, *left) else left


def roles_of(rule: str, kind: AnswerType) -> tuple[Role, ...]:
    """Return the roles that a rule may ask in a question of this type; one of one's own may ask any."""
    return _ASKED[kind.task].get(rule.partition("(")[0], ROLES)


class SavedChoices(Parameter):
    """Choices by name: stated when a program is saved, and compared when it is loaded. Loading changes none.

    Attributes:
        of: Whose choices they are: `Selector` or `Sampled`.
    """

    def __init__(self, of: str, choices: Callable[[], Mapping[str, Any]]) -> None:
        self.of, self._choices = of, choices

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
            raise ArgumentError(f"The saved choices of a {self.of} must be a mapping; got {state!r:.80}. Save it anew.")
        require_hashes(state)
        changed = differences(state, self.dump_state())
        if changed:
            listed = "\n".join(f"  {line}" for line in changed)
            raise ArgumentError(
                f"This program was saved with other choices of its {self.of} (saved -> present):\n{listed}\n"
                f"Make the {self.of} with the saved choices, or compile and save it anew."
            )


class SavesChoices(Saved):
    """A module whose choices are saved with its prompts, and which loads no file that lacks them."""

    def load_state(self, state: Mapping[str, Any], **options: Any) -> None:
        """Load a state, once it has the choices of this module and of those within it.

        Raises:
            ArgumentError: It lacks choices, and the message names their key; or it has other ones.
        """
        for name, one in self.named_parameters():
            if isinstance(one, SavedChoices) and name not in state:
                raise ArgumentError(
                    f"The file must have the key {name!r} with the choices of a {one.of}; the key is missing. It was "
                    "saved by an earlier version, or from another program. Give the program its settings, compile it "
                    "and save it anew."
                )
        super().load_state(state, **options)
