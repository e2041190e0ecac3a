"""Match the questions of two arms by id: a question that one of them lacks is an error or is dropped and listed."""

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
        rule: a score for each question id; None if it could not be scored, as without a gold answer.
        against: the same for the other arm.
        missing: what to do with a question that is absent or unscored in an arm: `raise`, or `drop` it from both.

    Raises:
        ArgumentError: there is such a question and `missing="raise"`; or no question is left.
    """
    if missing not in ("raise", "drop"):
        raise ArgumentError(f"missing must be one of 'raise', 'drop'; got {missing!r}.")
    every = dict.fromkeys([*rule, *against])
    if missing == "raise":
        _require_all("rule", rule, every)
        _require_all("against", against, every)
    scored = {
        id_: (mine, other)
        for id_ in every
        if (mine := rule.get(id_)) is not None and (other := against.get(id_)) is not None
    }
    if not scored:
        raise ArgumentError(
            "No question has a score in both rule and against; a paired statistic needs at least one. "
            "Do their ids have the same spelling?"
        )
    dropped = tuple(id_ for id_ in every if id_ not in scored)
    return Aligned(tuple(scored), tuple(a for a, _ in scored.values()), tuple(b for _, b in scored.values()), dropped)


def _require_all(name: str, arm: Mapping[str, float | None], every: Mapping[str, None]) -> None:
    without = [id_ for id_ in every if arm.get(id_) is None]
    if without:
        named = ", ".join(map(repr, without[:_NAMED])) + (", ..." if len(without) > _NAMED else "")
        raise ArgumentError(
            f"{name} has no score for {len(without)} of {len(every)} questions: {named}; score them, count them as "
            "wrong, or give missing='drop' to leave them out of both arms."
        )
