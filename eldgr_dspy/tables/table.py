"""A table as data, and the cells that several tables have."""

from collections.abc import Mapping
from dataclasses import dataclass

from eldgr_dspy.figures.record import total_of
from eldgr_dspy.figures.results.summary import Delta, RuleFigures, WinsLosses
from eldgr_dspy.formatting import UNDEFINED, count_of, figure, interval, signed
from eldgr_dspy.words import Consulted


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


def difference(contrast: Delta) -> str:
    """Return a contrast's difference and interval, as `+2.40 [0.40, 4.60]`."""
    delta, ends = signed(contrast["delta"]), interval(contrast["ci"])
    return delta if ends == UNDEFINED else f"{delta} {ends}"


def record(contrast: WinsLosses) -> str:
    """Return wins and losses, as `20–8`."""
    return f"{count_of(contrast['wins'])}–{count_of(contrast['losses'])}"


def per_question(calls: Mapping[Consulted, int], n: int) -> str:
    """Return calls a question over all roles, as `0.31`; a dash without questions."""
    return figure(sum(calls.values()) / n if n else None)


def tokens_of(figures: RuleFigures) -> int | None:
    """Return the tokens that a rule took, read and written, over all roles; None where unknown for any."""
    return total_of([*figures["tokens"].values()])
