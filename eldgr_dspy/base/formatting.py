"""Format numbers for people: rounded half up, as the paper does, with a dash for an undefined value."""

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

UNDEFINED = "—"


def figure(value: float | None, places: int = 2) -> str:
    """Return a number rounded half up, as `46.02`. A dash where it is undefined."""
    if value is None or not abs(value) < math.inf:
        return UNDEFINED
    if abs(value) >= 1e15:  # no measurement is this large; a damaged file may have it
        return f"{Decimal(value):.3e}"
    # Twelve digits first, so that .03125 rounds up as printed, and the noise of binary fractions does not matter.
    number = Decimal(f"{value:.12g}").quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{abs(number) if number.is_zero() else number:f}"


def with_sign(value: float | None) -> str:
    """Return a difference with its sign, as `+2.40`. A difference that rounds to 0 has no sign."""
    text = figure(value)
    return text if value is None or value <= 0 or text in (UNDEFINED, "0.00") else f"+{text}"


def interval(ends: Any) -> str:
    """Return an interval as `[0.40, 4.60]`. A dash where it is undefined."""
    cells = [figure(end) for end in ends or (None, None)]
    return UNDEFINED if UNDEFINED in cells else f"[{', '.join(cells)}]"


def probability(p: float | None) -> str:
    """Return a probability to four digits without the leading zero, as `.0357`; `<.0001` where it rounds to less."""
    text = figure(p, 4)
    return "<.0001" if text == "0.0000" else text.removeprefix("0")


def questions(n: int) -> str:
    """Return a count of questions in words, as `1 question` or `1,319 questions`."""
    return f"{n:,} question{'' if n == 1 else 's'}"


def word_list(names: Iterable[str]) -> str:
    """Return names, at least one, as a list in words, as `eldgr, near(0) and near(1)`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def count_of(value: int | None) -> str:
    """Return a count, as `1,319`. A dash where it is unknown."""
    return UNDEFINED if value is None else f"{value:,}"


def share_of(count: int | None, n: int) -> str:
    """Return a count in percent of n. A dash where it is unknown or n is 0."""
    return figure(100 * count / n if count is not None and n else None)
