"""Plan evaluations: how many questions a gain needs, by the exact power of the exact test, and what a run would ask."""

from typing_extensions import TypedDict

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.named_judges import Asked
from eldgr_dspy.statistics import mcnemar_power, questions_needed
from eldgr_dspy.words import Task


class QuestionsNeeded(TypedDict):
    """How many questions a gain needs, the power of that many, and the expected wins and losses."""

    gain: float
    discordant: float
    alpha: float
    power: float
    questions: int
    power_there: float
    wins: float
    losses: float


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


def plan_ahead(gain: float, discordant: float, *, power: float, alpha: float) -> QuestionsNeeded:
    """Return how many questions a gain needs.

    Args:
        gain: Wins minus losses, in percent of the questions. discordant: Wins plus losses, also in percent.
        power: The probability wanted of seeing it. alpha: The level of the test; both from 0 to 1.

    Raises:
        ArgumentError: a gain that is more than all discordant questions, or that would need over ten million questions.
    """
    _require_percentage("gain", gain)
    _require_percentage("discordant", discordant)
    if gain > discordant:
        raise ArgumentError(
            f"gain={gain:g} is more than discordant={discordant:g}: wins minus losses can't be more than wins and "
            "losses together. Give both in percent of all questions."
        )
    shares = gain / 100.0, discordant / 100.0
    n = questions_needed(*shares, power=power, alpha=alpha)
    return {
        "gain": gain,
        "discordant": discordant,
        "alpha": alpha,
        "power": power,
        "questions": n,
        "power_there": mcnemar_power(n, *shares, alpha=alpha),
        "wins": n * (shares[1] + shares[0]) / 2.0,
        "losses": n * (shares[1] - shares[0]) / 2.0,
    }


def _require_percentage(name: str, value: float) -> None:
    if not 0.0 < value <= 100.0:
        raise ArgumentError(f"{name}={value!r} must be above 0 and at most 100, in percent of the questions.")
