"""What a run would ask."""

from typing_extensions import TypedDict

from eldgr_dspy.rule.named_judges import Asked
from eldgr_dspy.words import Task


class RoleForecast(TypedDict):
    """How many questions may be put to a role: in all, answered in the journal or a recording, and now.

    Attributes:
        calls: How many LM calls the latter take at most, repeated ones aside; None where the role does not say.
    """

    at_most: int
    journaled: int
    recorded: int
    to_ask: int
    calls: int | None


class PoolForecast(TypedDict):
    """What a run would ask on a pool."""

    n: int
    task: Task
    roles: dict[Asked, RoleForecast]


class Forecast(TypedDict):
    """What a run would ask; `models` is None for a role without an LM."""

    pools: dict[str, PoolForecast]
    models: dict[Asked, str | None]
