"""Two arms brought to the same questions by id: a question that one of them lacks is an error or is dropped by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from eldgr_dspy.errors import ArgumentError

_NAMED = 3  # ids that a message names

Missing = Literal["raise", "drop"]


@dataclass(frozen=True, slots=True)
class Aligned:
    """The scores of two arms on the same questions.

    Attributes:
        ids: the questions that both have a score for, in the order of the rule's.
        rule: its score on each. against: the other's.
        dropped: the questions that were left out, in the order in which they were met.
    """

    ids: tuple[str, ...]
    rule: tuple[float, ...]
    against: tuple[float, ...]
    dropped: tuple[str, ...]


def align(
    rule: Mapping[str, float | None], against: Mapping[str, float | None], *, missing: Missing = "raise"
) -> Aligned:
    """Return the scores of two arms on the questions that both have, matched by id and never by position.

    Args:
        rule: a score a question id; None where it could not be scored, as without a gold answer.
        against: the same for the other arm.
        missing: what becomes of a question that is absent or unscored in an arm: `raise`, or `drop` it from both.

    Raises:
        ArgumentError: such a question and `missing="raise"`; or none is left.
    """
    if missing not in ("raise", "drop"):
        raise ArgumentError(f"missing={missing!r} is not known; use one of 'raise', 'drop'.")
    every = dict.fromkeys([*rule, *against])
    if missing == "raise":
        _require_all("rule", rule, every)
        _require_all("against", against, every)
    scored = {
        one: (mine, other)
        for one in every
        if (mine := rule.get(one)) is not None and (other := against.get(one)) is not None
    }
    if not scored:
        raise ArgumentError(
            "No question has a score in both rule and against; a paired statistic needs at least one. "
            "Are their ids spelled alike?"
        )
    dropped = tuple(one for one in every if one not in scored)
    return Aligned(tuple(scored), tuple(a for a, _ in scored.values()), tuple(b for _, b in scored.values()), dropped)


def _require_all(name: str, arm: Mapping[str, float | None], every: Mapping[str, None]) -> None:
    without = [one for one in every if arm.get(one) is None]
    if without:
        named = ", ".join(map(repr, without[:_NAMED])) + (", ..." if len(without) > _NAMED else "")
        raise ArgumentError(
            f"{name} has no score for {len(without)} of {len(every)} questions: {named}; score them, count them as "
            "wrong, or give missing='drop' to leave them out of both arms."
        )
