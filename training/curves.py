"""Learning curves: the exact match of the sampled completions, step by step, and the channels.

A reward can rise while answers get worse: a policy that repeats a passage is grounded in it and answers nothing. So a
point of the curve has the exact match and every channel separately, and never only their sum.

A step in which nothing was sampled, as when completions are used twice, has null, and not the value of the step before.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.file_limits import document, parsed_json
from eldgr_dspy.files import replacing
from eldgr_dspy.system import appending
from eldgr_dspy.words import CHANNELS

if TYPE_CHECKING:
    from transformers import TrainerCallback

WINDOW: Final = 10
"""Steps of the rolling mean, as in the paper."""

FILE: Final = "learning_curve.jsonl"
"""The name of the file in the folder of a run."""

EXACT_MATCH: Final = "orm/exact_match"
"""The name under which the outcome reward logs it: over the completions of rows with gold."""


@dataclass(frozen=True, slots=True)
class Point:
    """A step of training.

    Attributes:
        step: Its number, from 1.
        exact_match: Of the completions sampled in it, in [0, 1]; None if none was sampled or scored.
        rolling: The mean of `exact_match` over this step and the nine before, of those that have one; None if none
            has.
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


class CurveRecorder:
    """The work of `learning_curve`: it appends one line a step to a file, from the trainer's log.

    A run that is resumed keeps the lines up to its checkpoint; a new run keeps none.
    """

    def __init__(self, path: str | Path | None = None, *, exact_match: str = EXACT_MATCH) -> None:
        """Make the recorder.

        Args:
            path: The file; None takes `learning_curve.jsonl` in the output folder of the run.
            exact_match: The name under which exact match is logged, if the outcome reward has another.
        """
        self._path = None if path is None else Path(path)
        self._key = exact_match
        self._matches: list[float | None] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open the curve.

        Raises:
            ArgumentError: The trainer does not log every step.
        """
        if getattr(args.logging_strategy, "value", args.logging_strategy) != "steps" or args.logging_steps != 1:
            raise ArgumentError(
                f"logging_steps must be 1, for a point a step; got logging_steps={args.logging_steps!r} with "
                f"logging_strategy={str(args.logging_strategy)!r} (GRPOConfig's default is 10). Set logging_steps=1."
            )
        if not state.is_world_process_zero:
            return
        path = self._file(args)
        kept = [point for point in read_curve(path) if point.step <= state.global_step] if path.exists() else []
        self._matches = [point.exact_match for point in kept]
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as out:
            out.writelines(map(_line, kept))

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Append a point for a logged step of training, but not for an evaluation or a summary."""
        if not state.is_world_process_zero or logs is None or "loss" not in logs:
            return
        self._matches.append(_number(logs.get(self._key)))
        rewards = {key.split("/")[1]: _number(logs[key]) for key in logs if _is_reward(key)}
        channels = {key: _number(logs[key]) for key in logs if key.rpartition("/")[2] in CHANNELS and "/" in key}
        rolling = rolling_mean(self._matches)[-1]
        reward = _number(logs.get("reward"))
        point = Point(state.global_step, self._matches[-1], rolling, reward, rewards, channels)
        with appending(self._file(args)) as file:
            file.write(_line(point))

    def _file(self, args: Any) -> Path:
        return self._path or Path(args.output_dir) / FILE


def rolling_mean(values: Sequence[float | None], window: int = WINDOW) -> list[float | None]:
    """Return for each value the mean of it and those before it within the window; None if all of them are None."""
    windows = (values[max(0, at + 1 - window) : at + 1] for at in range(len(values)))
    known = ([value for value in span if value is not None] for span in windows)
    return [math.fsum(span) / len(span) if span else None for span in known]


def read_curve(path: str | Path) -> list[Point]:
    """Return the points of a curve in order; a last line that a kill has torn is skipped.

    Raises:
        ArgumentError: There is no such file, or a line is not a point.
        PoolError: The file is longer, or a line holds more values, than the limits allow.
    """
    path = Path(path)
    try:
        *whole, _ = document(path).split(b"\n")
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read ({error.strerror}); give the file of a learning curve.") from error
    return [_point(path, number, line) for number, line in enumerate(whole, start=1)]


def _is_reward(key: str) -> bool:
    return key.startswith("rewards/") and key.endswith("/mean")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _line(point: Point) -> bytes:
    return json.dumps(asdict(point), allow_nan=False).encode("ascii") + b"\n"


def _point(path: Path, number: int, line: bytes) -> Point:
    try:
        return Point(**parsed_json(line, f"{path}, line {number}"))
    except PoolError:
        raise
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"{path}, line {number}: not a point of a learning curve; give another file.") from error


def learning_curve(path: str | Path | None = None, *, exact_match: str = EXACT_MATCH) -> "TrainerCallback":
    """Return a callback for trainers of transformers and TRL, `GRPOTrainer(callbacks=[learning_curve()])`.

    The arguments are those of `CurveRecorder`.
    """
    from transformers import TrainerCallback  # which takes seconds

    class LearningCurve(CurveRecorder, TrainerCallback):
        """The recorder as a callback."""

    return LearningCurve(path, exact_match=exact_match)
