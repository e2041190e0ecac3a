"""The orders in which a judge saw the candidates, with its verdicts, as a journal or a recording has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eldgr_dspy.rule.consultations import Verdict
from eldgr_dspy.rule.replies import read_reply


@dataclass(frozen=True, slots=True)
class Showing:
    """Candidates that a judge was shown together, and its verdict on them.

    Attributes:
        order: Their pool indices, in the order shown.
        preferred: The pool index that it preferred, None without a verdict. rationale: its reason.
    """

    order: tuple[int, ...]
    preferred: int | None
    rationale: str = ""


def showings(content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> tuple[Showing, ...]:
    """Return the orders in which a judge saw the candidates, from its journaled or recorded fields.

    Under `orders` a judge reports what it showed its LM; an invalid entry is skipped. Without that field the judge saw
    the pool once, in the pool's order.
    """
    if "orders" not in content:
        return _verdict(content, answers, n_passages)
    entries = content["orders"] if isinstance(content["orders"], list) else []
    parsed = (_showing(entry, len(answers)) for entry in entries if isinstance(entry, Mapping))
    return tuple(showing for showing in parsed if showing is not None)


def _verdict(content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> tuple[Showing, ...]:
    """The verdict on the whole pool, shown once in its order; empty without a verdict."""
    reply = read_reply("judge", content, answers, n_passages)
    whole = tuple(range(len(answers)))
    return (Showing(whole, reply.preferred, reply.rationale),) if isinstance(reply, Verdict) else ()


def _showing(entry: Mapping[str, Any], n: int) -> Showing | None:
    order, preferred, rationale = entry.get("order"), entry.get("preferred"), entry.get("rationale")
    if not isinstance(order, list) or not all(type(index) is int and 0 <= index < n for index in order):
        return None
    if preferred is not None and (type(preferred) is not int or preferred not in order):
        return None
    return Showing(tuple(order), preferred, rationale if isinstance(rationale, str) else "")
