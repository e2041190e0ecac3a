"""The closed vocabularies of the package: tasks, roles, branches, policies and levels.

Every other module imports these names instead of repeating the strings.
"""

from collections.abc import Container
from typing import Literal, TypeGuard, get_args

Task = str
"""The name of an answer type, or its name in files, see `eldgr_dspy.answer_types`. A rule knows those of `TASKS`."""
Role = Literal["judge", "deriver", "repairer"]
Consulted = Literal["judge", "deriver", "repairer", "certificate", "repair_certificate"]
"""Whom a run may ask: a role that a rule asks for, or a certificate of the user's own, of the pool or of a repair."""
Branch = Literal["first", "consensus", "certified", "judge", "repair"]
Policy = Literal["substring", "token", "folded"]
Strictness = Literal["stated", "chained", "traced", "executed", "bounded", "agreed"]
Consult = Literal["lazy", "always"]
Homogeneous = Literal["repair", "skip"]
Preference = Literal["global", "stratum"]
Refusal = Literal["inapplicable", "no_answer"]
Replies = Literal["strict", "lenient"]
SchemaUse = Literal["on", "off", "auto"]
JudgeStyle = Literal["listwise", "pairwise", "pointwise", "slices", "checks"]
Channel = Literal["logic", "fact", "epist", "info", "triang", "adv", "min"]
Reading = Literal["label", "expected", "settled"]
Mark = Literal["hashes", "a_line", "boxed", "phrase", "finish", "tagged"]
Form = Literal[Mark, "last_number", "whole"]
AbstentionKind = Literal[
    "unreadable",
    "invalid",
    "cut off",
    "withheld",
    "several answers",
    "prompt too long",
    "inconsistent",
    "not applicable",
    "nothing to say",
]
"""Kinds of abstention: a reply that is not exactly the expected JSON; an invalid value; a reply that ended at its limit
of tokens, or was stopped by a filter; several replies instead of one; a prompt beyond the model's window; orders that
prefer different answers; a pool that lacks what a judge needs; and a reason that the role states itself."""

TASKS: tuple[Task, ...] = ("retrieval", "arithmetic")
ROLES: tuple[Role, ...] = get_args(Role)
CONSULTED: tuple[Consulted, ...] = get_args(Consulted)
POLICIES: tuple[Policy, ...] = get_args(Policy)
STRICTNESS: tuple[Strictness, ...] = get_args(Strictness)
CONSULT: tuple[Consult, ...] = get_args(Consult)
HOMOGENEOUS: tuple[Homogeneous, ...] = get_args(Homogeneous)
PREFERENCE: tuple[Preference, ...] = get_args(Preference)
REFUSAL: tuple[Refusal, ...] = get_args(Refusal)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
READINGS: tuple[Reading, ...] = get_args(Reading)
ABSTENTION_KINDS: tuple[AbstentionKind, ...] = get_args(AbstentionKind)
DECLARED_KINDS = ABSTENTION_KINDS[-3:]
"""The kinds that a role states itself; every other abstention is a reply that cannot be used."""
NOTHING_TO_SAY = ABSTENTION_KINDS[-1]
ASKING_NOBODY = ("first", "majority", "certified")  # rules that ask no role


def is_role(name: object) -> TypeGuard[Role]:
    return name in ROLES


def roles_and(names: Container[object]) -> tuple[Consulted, ...]:
    """Return the roles, and the certificates if they were asked."""
    return tuple(name for name in CONSULTED if name in ROLES or name in names)
