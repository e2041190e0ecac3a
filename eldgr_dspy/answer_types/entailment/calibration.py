"""The calibration of free text: the threshold from which a claim counts as entailed, and how often that is right.

`eldgr calibrate` makes one, see `eldgr_dspy.programs.scoring.calibrating`. It belongs to one NLI model.
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from eldgr_dspy.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold, with what was measured when it was chosen.

    Attributes:
        model: The name of the NLI model, and of what else its readings depend on.
        threshold: From this probability on, a window entails a claim.
        wanted: The precision of "certified" that was asked for.
        precision: Among the pairs of the second half that the threshold certifies, the share that is supported.
        lower: The exact one-sided lower bound of that precision, at `level`.
        level: The confidence of the bound.
        recall: Among the supported pairs of the second half, the share that is certified.
        chosen_on: How many pairs the threshold was chosen on.
        measured_on: How many pairs the second half has.
        certified: How many of these are certified.
        sha256: The hash of the file of pairs.
    """

    model: str
    threshold: float
    wanted: float
    precision: float
    lower: float
    level: float
    recall: float
    chosen_on: int
    measured_on: int
    certified: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def load_calibration(path: Path | str) -> Calibration:
    """Return the calibration that a file holds.

    Raises:
        ArgumentError: It cannot be read, or is not a calibration.
    """
    try:
        found = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ArgumentError(f"calibration={str(path)!r} must be a file of eldgr calibrate; it has {error}.") from error
    names = [one.name for one in fields(Calibration)]
    if not isinstance(found, dict) or set(found) != set(names):
        raise ArgumentError(f"calibration={str(path)!r} must have exactly {', '.join(names)}. Run eldgr calibrate.")
    texts, numbers = [found["model"], found["sha256"]], [found[name] for name in names[1:-1]]
    if not all(isinstance(one, str) for one in texts) or not all(type(one) in (int, float) for one in numbers):
        raise ArgumentError(f"calibration={str(path)!r} must have numbers and texts. Run eldgr calibrate.")
    return Calibration(**found)
