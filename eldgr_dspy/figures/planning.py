"""What an evaluation can see, in percent of the questions: how many a gain needs, and what a finished run could see.

The figures are those of `eldgr_dspy.statistics.power`: the exact power of the exact test. What is undefined is None.
"""

from collections.abc import Mapping
from typing import Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics import detectable_gain, least_significant, mcnemar_power, questions_needed


def plan_ahead(gain: float, discordant: float, *, power: float, alpha: float) -> dict[str, Any]:
    """Return how many questions a gain needs.

    Args:
        gain: Wins minus losses, in percent of the questions. discordant: Wins plus losses, likewise.
        power: The probability wanted of seeing it. alpha: The level of the test; both from 0 to 1.

    Returns:
        The arguments; `questions`; `power_there`, what that many questions have; `wins` and `losses` to expect.

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


def what_it_saw(summary: Mapping[str, Any], *, power: float, alpha: float, gain: float | None = None) -> dict[str, Any]:
    """Return what gain each contrast of a finished run could have seen.

    Args:
        summary: The content of its `summary.json`. power, alpha: as in `plan_ahead`.
        gain: In percent of the questions; for it each contrast says how many questions another run would need.

    Returns:
        The arguments, and `pools`: for each `n`, its questions with a gold answer, and `contrasts`: each with `rule`,
        `against`, `wins`, `losses`, `delta`, `p`; `discordant`, in percent; `least_significant`, the narrowest split of
        as many discordant questions whose p is at most alpha, as [wins, losses]; `detectable_gain`, the smallest gain
        in percent that is seen with that power; `questions`, for `gain`. The last three are None where there is none,
        or where over ten million questions would be needed.
    """
    if gain is not None:
        _require_percentage("gain", gain)
    pools = {
        name: {
            "n": pool["n_scored"],
            "contrasts": [_seen(pool["n_scored"], one, power, alpha, gain) for one in pool["contrasts"]],
        }
        for name, pool in summary["pools"].items()
    }
    return {"alpha": alpha, "power": power, "gain": gain, "pools": pools}


def _seen(n: int, one: Mapping[str, Any], power: float, alpha: float, gain: float | None) -> dict[str, Any]:
    discordant = one["wins"] + one["losses"]
    share = discordant / n
    split = least_significant(discordant, alpha=alpha)
    smallest = detectable_gain(n, share, power=power, alpha=alpha)
    return {
        **{name: one[name] for name in ("rule", "against", "wins", "losses", "delta", "p")},
        "discordant": 100.0 * share,
        "least_significant": split and list(split),
        "detectable_gain": None if smallest is None else 100.0 * smallest,
        "questions": None if gain is None else _needed(gain / 100.0, share, power, alpha),
    }


def _needed(gain: float, share: float, power: float, alpha: float) -> int | None:
    """How many questions a gain needs where that share is discordant; None where none, or over ten million, do."""
    try:
        return questions_needed(gain, share, power=power, alpha=alpha) if gain <= share else None
    except ArgumentError:  # power and alpha have been found good by now
        return None
