"""A table as data, and the cells that several tables have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eldgr_dspy.formatting import UNDEFINED, count_of, figure, interval, signed


@dataclass(frozen=True, slots=True)
class Table:
    """A table as data: every row has one cell a header, and the first cell of a row names it.

    Attributes:
        lead: A sentence between title and table; empty for none. notes: sentences below.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    lead: str = ""


def difference(contrast: Mapping[str, Any]) -> str:
    """Return a contrast's difference and interval, as `+2.40 [0.40, 4.60]`."""
    delta, ends = signed(contrast["delta"]), interval(contrast["ci"])
    return delta if ends == UNDEFINED else f"{delta} {ends}"


def record(contrast: Mapping[str, Any]) -> str:
    """Return wins and losses, as `20–8`."""
    return f"{count_of(contrast['wins'])}–{count_of(contrast['losses'])}"


def per_question(calls: Mapping[str, int] | None, n: int) -> str:
    """Return calls a question over all roles, as `0.31`; a dash without questions or where calls are unknown."""
    return figure(sum(calls.values()) / n if calls is not None and n else None)


def tokens_of(figures: Mapping[str, Any]) -> int | None:
    """Return the tokens that a rule took, read and written, over all roles; None where unknown for any."""
    tokens: Mapping[str, int | None] = figures.get("tokens") or {"": None}
    known = [one for one in tokens.values() if one is not None]
    return sum(known) if len(known) == len(tokens) else None


def scored(pool: Mapping[str, Any]) -> int:
    """Return how many questions of a pool have a gold answer, hence a score."""
    if "n_scored" in pool:
        return int(pool["n_scored"])
    return 0 if any(figures.get("em") is None for figures in pool["rules"].values()) else int(pool["n"])
