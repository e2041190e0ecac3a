"""The closed vocabularies of the package: tasks, roles, branches, policies and levels.

Nothing else is spelled here; every other module imports these names rather than repeating the strings.
"""

from typing import Literal, get_args

Task = Literal["retrieval", "arithmetic"]
Role = Literal["judge", "deriver", "repairer"]
Branch = Literal["first", "consensus", "judge", "repair"]
Policy = Literal["substring", "token", "folded"]
Strictness = Literal["stated", "chained", "traced", "executed", "bounded"]
Consult = Literal["lazy", "always"]
Homogeneous = Literal["repair", "skip"]
Preference = Literal["global", "stratum"]
Channel = Literal["logic", "fact", "epist", "info", "triang", "adv", "min"]
Reading = Literal["label", "expected", "settled"]

TASKS: tuple[Task, ...] = get_args(Task)
ROLES: tuple[Role, ...] = get_args(Role)
POLICIES: tuple[Policy, ...] = get_args(Policy)
STRICTNESS: tuple[Strictness, ...] = get_args(Strictness)
CONSULT: tuple[Consult, ...] = get_args(Consult)
HOMOGENEOUS: tuple[Homogeneous, ...] = get_args(Homogeneous)
PREFERENCE: tuple[Preference, ...] = get_args(Preference)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
READINGS: tuple[Reading, ...] = get_args(Reading)
