"""The roles that a rule may ask: which of them are predictors of a selector, and who may still be asked after one."""

from collections.abc import Container, Mapping

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.words import ASKING_NOBODY, ROLES, Consulted, Role, Task

_RETRIEVAL: Mapping[str, tuple[Role, ...]] = {
    **dict.fromkeys(ASKING_NOBODY, ()),
    "judge": ("judge",),
    **dict.fromkeys(("eldgr", "eldgr_certified", "support", "near"), ("judge", "repairer")),
}
_ARITHMETIC: Mapping[str, tuple[Role, ...]] = {
    **dict.fromkeys(("eldgr", "eldgr_certified", "support"), ("deriver",)),
    "near": ("judge", "deriver"),
}
_MAY_ASK: Mapping[Task, Mapping[str, tuple[Role, ...]]] = {
    "retrieval": _RETRIEVAL,
    "arithmetic": {**_RETRIEVAL, **_ARITHMETIC},
}
"""The roles that each rule may ask in each task. A rule that is not here may ask any."""


def may_ask(parameter: str, rule: str, kind: AnswerType) -> bool:
    """Return whether a parameter of a selector belongs to a role that the rule may ask of the type, or to no role."""
    roles = roles_of(rule, kind)
    return not any(
        parameter == role or parameter.startswith((f"{role}.", f"{role}[")) for role in ROLES if role not in roles
    )


def later_roles(
    name: Consulted, rule: str, kind: AnswerType, replies: Container[str], *, certifies: bool
) -> list[Consulted]:
    """Return who may still be asked under a rule after this one, given who was heard."""
    # `near(K)` and a rule of one's own may ask a role after any other.
    roles, free = roles_of(rule, kind), rule.startswith("near(") or rule not in _MAY_ASK[kind.task]
    later = roles if free or name not in roles else roles[roles.index(name) :]
    rest: list[Consulted] = [role for role in later if role != name and role not in replies]
    # A consulted certificate is asked about a repair too.
    return [*rest, "repair_certificate"] if certifies and "repairer" in (name, *rest) else rest


def roles_of(rule: str, kind: AnswerType) -> tuple[Role, ...]:
    """Return the roles that a rule may ask in a question of this type. One of one's own may ask any."""
    return _MAY_ASK[kind.task].get(rule.partition("(")[0], ROLES)
