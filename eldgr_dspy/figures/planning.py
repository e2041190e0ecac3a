"""Plan evaluations: how many questions a gain needs, and which gains a finished run could detect.

The numbers are from `eldgr_dspy.statistics.power`: the exact power of the exact test. An undefined value is None.
"""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.results.summary import RuleContrast, Summary, WinsLosses
from eldgr_dspy.named_judges import Asked
from eldgr_dspy.statistics import detectable_gain, least_significant, mcnemar_power, questions_needed
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


class ContrastSeen(WinsLosses):
    """The gains that a contrast of a finished run could have detected.

    Attributes:
        discordant: Questions, in percent. least_significant: The narrowest split of as many discordant questions whose
            p is at most alpha, as [wins, losses]; None if no split is.
        detectable_gain: The smallest gain in percent that is detected with the power; None without one.
        questions: How many another run would need for the gain; None without a gain, or above ten million.
    """

    rule: str
    against: str
    discordant: Annotated[float, Field(title="discordant %")]
    least_significant: Annotated[list[int] | None, Field(title="significant from")]
    detectable_gain: Annotated[float | None, Field(title="sees gains from")]
    questions: Annotated[int | None, Field(title="n needed")]


class PoolSeen(TypedDict):
    """The contrasts of a pool, over its `n` questions with a gold answer."""

    n: int
    contrasts: list[ContrastSeen]


class RunSeen(TypedDict):
    """The gains that a finished run could have detected."""

    alpha: float
    power: float
    gain: float | None
    pools: dict[str, PoolSeen]


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


def what_it_saw(summary: Summary, *, power: float, alpha: float, gain: float | None = None) -> RunSeen:
    """Return the gain that each contrast of a finished run could have detected.

    Args:
        summary: The content of its `summary.json`. power, alpha: as in `plan_ahead`.
        gain: In percent of the questions; for it each contrast says how many questions another run would need.
    """
    if gain is not None:
        _require_percentage("gain", gain)
    pools: dict[str, PoolSeen] = {
        name: {
            "n": pool["n_scored"],
            "contrasts": [_seen(pool["n_scored"], contrast, power, alpha, gain) for contrast in pool["contrasts"]],
        }
        for name, pool in summary["pools"].items()
    }
    return {"alpha": alpha, "power": power, "gain": gain, "pools": pools}


def _seen(n: int, contrast: RuleContrast, power: float, alpha: float, gain: float | None) -> ContrastSeen:
    discordant = contrast["wins"] + contrast["losses"]
    share = discordant / n
    split = least_significant(discordant, alpha=alpha)
    smallest = detectable_gain(n, share, power=power, alpha=alpha)
    return {
        "rule": contrast["rule"],
        "against": contrast["against"],
        "wins": contrast["wins"],
        "losses": contrast["losses"],
        "discordant": 100.0 * share,
        "least_significant": list(split) if split else None,
        "detectable_gain": None if smallest is None else 100.0 * smallest,
        "questions": None if gain is None else _needed(gain / 100.0, share, power, alpha),
    }


def _needed(gain: float, share: float, power: float, alpha: float) -> int | None:
    """How many questions a gain needs if that share is discordant; None if no number, or only over ten million, do."""
    try:
        return questions_needed(gain, share, power=power, alpha=alpha) if gain <= share else None
    except ArgumentError:  # power and alpha have been checked by now
        return None
