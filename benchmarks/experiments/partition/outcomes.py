"""The outcomes of the experiment as its file states them, which is fixed before the first run."""

import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

FILE: Final = Path(__file__).with_name("outcomes.toml")

Direction = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A contrast of two arms.

    Attributes:
        name: In words.
        arm: The arm.
        against: The arm that it is compared with.
        measure: Of `replies.MEASURES`.
        task: One of the two; None for the mean of both.
        expected: The direction that a control must have; None for a question.
    """

    name: str
    arm: str
    against: str
    measure: str
    task: str | None = None
    expected: Direction | None = None


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A contrast of two rules, on each pool and at each error rate."""

    name: str
    rule: str
    against: str


@dataclass(frozen=True, slots=True)
class Outcomes:
    """All that the experiment asks; see the file.

    Attributes:
        sha256: Of the file, by which results show that it was not changed.
    """

    alpha: float
    level: float
    error_rates: tuple[float, ...]
    pools: tuple[str, ...]
    controls: tuple[Outcome, ...]
    contrasts: tuple[Outcome, ...]
    rules: tuple[RuleOutcome, ...]
    sha256: str


def outcomes() -> Outcomes:
    content = FILE.read_bytes()
    table: dict[str, Any] = tomllib.loads(content.decode("utf-8"))
    return Outcomes(
        alpha=table["alpha"],
        level=table["level"],
        error_rates=tuple(table["error_rates"]),
        pools=tuple(table["pools"]),
        controls=tuple(Outcome(**control) for control in table["control"]),
        contrasts=tuple(Outcome(**contrast) for contrast in table["contrast"]),
        rules=tuple(RuleOutcome(**rule) for rule in table["rule"]),
        sha256=sha256(content).hexdigest(),
    )
