"""An LM's reply about steps, read into scores: each a number from 0 to 1, or undefined with the reason.

Only this module decides what is wrong with a reply, for any adapter or module. An entry that belongs to no step, a step
that has two, and a value that is not a score make the whole an abstention, as they do for a judge's verdict: an LM that
counts or scores wrongly in one place is not trusted in another. A step that is left out, and a null, are undefined for
that step alone: the LM had nothing to say about it.
"""

from collections.abc import Mapping
from typing import Any

from eldgr_dspy.channels.undefined import Score, Undefined
from eldgr_dspy.errors import brief
from eldgr_dspy.words import CHANNELS, Channel

SILENT = "the LM gave no score"
LEFT_OUT = "the LM left the step out"

_LARGEST_SHOWN = 1e9


class _Invalid(Exception):
    """A value that a reply may not have; the message becomes the abstention's reason."""


def abstained(reason: str) -> Undefined:
    """Return the score of a step about which an LM abstained."""
    return Undefined(f"the LM abstained: {reason}")


def read_steps(content: Mapping[str, Any], field: str, n: int) -> dict[Channel, list[Score]]:
    """Return the seven columns that a reply states by entries that have the number of their step.

    Args:
        content: The fields that the role returned; `{"abstained": reason}` is an abstention.
        field: The one that holds the entries.
        n: How many steps there are.
    """
    try:
        entries = _entries(content, field, n)
        return {name: [_score(entries.get(at), at, name) for at in range(n)] for name in CHANNELS}
    except _Invalid as invalid:
        return {name: [abstained(str(invalid))] * n for name in CHANNELS}


_Entry = Mapping[str, Any]


def _entries(content: Mapping[str, Any], field: str, n: int) -> dict[int, _Entry]:
    if "abstained" in content:
        reason = content["abstained"]
        raise _Invalid(brief(reason) if isinstance(reason, str) else "it gave no reason")
    listed = content.get(field)
    if not isinstance(listed, list):
        raise _Invalid(f"{field} is {_value_or_type(listed)}, not a list")
    entries: dict[int, _Entry] = {}
    for at, entry in enumerate(listed):
        if not isinstance(entry, Mapping):
            raise _Invalid(f"{field}[{at}] is {_value_or_type(entry)}, not an object")
        step = entry.get("step")
        if type(step) is not int or not 0 <= step < n:
            raise _Invalid(f"{field}[{at}].step is {_value_or_type(step)}, not a whole number from 0 to {n - 1}")
        if step in entries:
            raise _Invalid(f"{field} has two entries for step {step}")
        entries[step] = entry
    return entries


def _score(entry: _Entry | None, at: int, name: str) -> Score:
    if entry is None:
        return Undefined(LEFT_OUT)
    value = entry.get(name)
    if value is None:
        return Undefined(SILENT)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:  # NaN is outside
        raise _Invalid(f"{name} of entry {at} is {_value_or_type(value)}, not a number from 0 to 1")
    return float(value)


def _value_or_type(value: Any) -> str:
    """Return a value for a reason: a number of moderate size, else its type."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if is_number and abs(value) < _LARGEST_SHOWN else type(value).__name__
