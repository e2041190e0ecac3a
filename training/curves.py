"""Learning curves: the exact match of the sampled completions, step by step, and the channels.

A reward can rise while answers get worse: a policy that repeats a passage is grounded in it and answers nothing. So a
point of the curve has the exact match and every channel separately, and never only their sum.

The curve is in the log that a trainer of transformers keeps: `trainer.state.log_history`, and `trainer_state.json` in
each checkpoint. With `logging_steps=1` it has a point a step. A step in which nothing was sampled, as when completions
are used twice, has null, and not the value of the step before.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.base.file_limits import MAX_DOCUMENT_VALUES, document, parsed_json
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.words import CHANNELS

WINDOW: Final = 10
"""Steps of the rolling mean, as in the paper."""

FILE: Final = "trainer_state.json"
"""The file of a run and of its checkpoints that has the log."""

EXACT_MATCH: Final = "orm/exact_match"
"""The name under which the outcome reward logs it: over the completions of rows with gold."""
_CHANNEL: Final = re.compile(rf"(?!sampling/).+/(?:{'|'.join(CHANNELS)})").fullmatch  # TRL logs sampling/.../min


@dataclass(frozen=True, slots=True)
class Point:
    """A logged step of training.

    Attributes:
        step: Its number, from 1.
        exact_match: Of the completions sampled in it, in [0, 1]; None if none was sampled or scored.
        rolling: The mean of `exact_match` over those of this point and the nine before that have one, or None.
        reward: The mean weighted reward; None if nothing was sampled.
        rewards: The mean of each reward, unweighted, by name.
        channels: The mean of each channel, by reward and channel, as `ra_msd/fact`; one that is never defined is left
            out.
    """

    step: int
    exact_match: float | None
    rolling: float | None
    reward: float | None
    rewards: Mapping[str, float | None]
    channels: Mapping[str, float | None]


def read_curve(run: str | Path, *, exact_match: str = EXACT_MATCH) -> list[Point]:
    """Return the learning curve of a run: of one that has not ended, up to its last checkpoint that is whole.

    Args:
        run: The output folder of a trainer.
        exact_match: The name under which exact match is logged, if the outcome reward has another.

    Raises:
        ArgumentError: The folder has no log, or it is not one of a trainer.
        PoolError: The log is longer, or holds more values, than the limits allow.
    """
    checkpoints = sorted(Path(run).glob(f"checkpoint-*/{FILE}"), key=_number_of, reverse=True)
    curves, refusals = list[list[Point]](), list[ArgumentError]()
    for paths in ([Path(run) / FILE], checkpoints):
        for path in filter(Path.is_file, paths):
            try:
                curves.append(_curve(path, exact_match))
                break
            except ArgumentError as error:  # a kill tears a file that is written; the checkpoint before is whole
                refusals.append(error)
    if curves:
        return max(curves, key=len)
    if refusals:
        raise refusals[0]
    raise ArgumentError(f"{run}: has no {FILE}; give the output folder of a run that has a checkpoint or ended.")


def _curve(path: Path, exact_match: str) -> list[Point]:
    try:
        state = parsed_json(document(path), str(path), MAX_DOCUMENT_VALUES)
        return learning_curve(state["log_history"], exact_match=exact_match)
    except PoolError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ArgumentError(f"{path}: not the log of a trainer; give the output folder of a run.") from error


def learning_curve(logs: Iterable[Mapping[str, Any]], *, exact_match: str = EXACT_MATCH) -> list[Point]:
    """Return the points of a log, `trainer.state.log_history`; evaluations and the summary have none."""
    steps = [log for log in logs if "loss" in log]
    matches = [_number(log.get(exact_match)) for log in steps]
    return [
        Point(
            step=log["step"],
            exact_match=match,
            rolling=rolling,
            reward=_number(log.get("reward")),
            rewards={key.split("/")[1]: _number(log[key]) for key in log if re.fullmatch("rewards/.+/mean", key)},
            channels={key: _number(log[key]) for key in log if _CHANNEL(key)},
        )
        for log, match, rolling in zip(steps, matches, rolling_mean(matches), strict=True)
    ]


def rolling_mean(values: Sequence[float | None], window: int = WINDOW) -> list[float | None]:
    """Return for each value the mean of it and those before it within the window; None if all of them are None."""
    windows = (values[max(0, at + 1 - window) : at + 1] for at in range(len(values)))
    numbers = ([value for value in span if value is not None] for span in windows)
    return [math.fsum(span) / len(span) if span else None for span in numbers]


def _number_of(path: Path) -> int:
    number = path.parent.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
