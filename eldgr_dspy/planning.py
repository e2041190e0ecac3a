"""What an evaluation can see, in percent of the questions: how many a gain needs, and what a finished run could see.

The figures are those of `eldgr_dspy.statistics.power`: the exact power of the exact test. What is undefined is None.
"""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError, model_validator

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics import detectable_gain, least_significant, mcnemar_power, questions_needed


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class Lead(_Frozen):
    """A contrast of a finished run, as far as it is needed here."""

    rule: str
    against: str
    wins: NonNegativeInt
    losses: NonNegativeInt
    delta: float
    p: float


class FinishedPool(_Frozen):
    """A pool of a finished run: how many questions were scored, and its contrasts."""

    n_scored: NonNegativeInt
    contrasts: list[Lead]

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        most = max((one.wins + one.losses for one in self.contrasts), default=0)
        if self.contrasts and self.n_scored < max(1, most):
            raise ValueError(f"{most} discordant questions of {self.n_scored} in a contrast")
        return self


class Finished(_Frozen):
    """What is read of a `summary.json`."""

    pools: dict[str, FinishedPool]


def read_finished(run: Path) -> Finished:
    """Return the contrasts of a finished run from its directory.

    Raises:
        ArgumentError: there is no summary in it, or it is none.
    """
    path = run / "summary.json"
    try:
        return Finished.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ArgumentError(f"{run} holds no summary.json; give the directory of a finished run.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its content"
        raise ArgumentError(
            f"{path} is no summary of a run: {where}: {first['msg']}. Give the directory of a run that this version "
            "has finished; the same evaluation makes its summary again."
        ) from error


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


def what_it_saw(run: Finished, *, power: float, alpha: float, gain: float | None = None) -> dict[str, Any]:
    """Return what gain each contrast of a finished run could have seen.

    Args:
        run: What was read of it. power, alpha: as in `plan_ahead`.
        gain: In percent of the questions; for it each contrast says how many questions another run would need.

    Returns:
        The arguments, and `pools`: for each `n`, its questions with a gold answer, and `contrasts`: each with `rule`,
        `against`, `wins`, `losses`, `delta`, `p`; `discordant`, in percent; `least_significant`, the narrowest split of
        as many discordant questions whose p is at most alpha, as [wins, losses]; `detectable_gain`, the smallest gain
        in percent that is seen with that power; `questions`, for `gain`. The last three are None where there is none.
    """
    if gain is not None:
        _require_percentage("gain", gain)
    pools = {
        name: {"n": pool.n_scored, "contrasts": [_seen(pool, one, power, alpha, gain) for one in pool.contrasts]}
        for name, pool in run.pools.items()
    }
    return {"alpha": alpha, "power": power, "gain": gain, "pools": pools}


def _seen(pool: FinishedPool, one: Lead, power: float, alpha: float, gain: float | None) -> dict[str, Any]:
    n, discordant = pool.n_scored, one.wins + one.losses
    share = discordant / n
    split = least_significant(discordant, alpha=alpha)
    smallest = detectable_gain(n, share, power=power, alpha=alpha)
    reachable = gain is not None and gain / 100.0 <= share
    return {
        **one.model_dump(),
        "discordant": 100.0 * share,
        "least_significant": split and list(split),
        "detectable_gain": None if smallest is None else 100.0 * smallest,
        "questions": questions_needed(gain / 100.0, share, power=power, alpha=alpha) if gain and reachable else None,
    }
