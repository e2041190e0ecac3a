"""Results by hand: a whole pool of `summary.json` of which a test says the part that it is about."""

from typing import Any

NOBODY = {"judge": 0, "deriver": 0, "repairer": 0}


def rule_figures(em: float | None, f1: float | None = None, *, seconds: float = 1.5, **counts: int) -> Any:
    """A rule's figures, with one call a question that it asks."""
    calls = {**NOBODY, **counts}
    return {
        "em": em, "f1": f1, "official": None, "calls": calls, "asked": calls, "tokens": {**NOBODY},
        "seconds": seconds,
    }  # fmt: skip


def contrast_figures(rule: str, against: str, **figures: Any) -> Any:
    """One rule against another; with no difference, where nothing else is said."""
    replies = {"delta": 0.0, "ci": [0.0, 0.0], "p": 1.0, "wins": 0, "losses": 0, "notes": [], "f1": None}
    return {"rule": rule, "against": against, **replies, "p_holm": 1.0, **figures}


def pool_figures(**figures: Any) -> Any:
    """The figures of a pool, all of whose questions are scored; without rules, where nothing else is said."""
    n = figures.get("n", 0)
    return {
        "n": n, "n_scored": n, "n_distinct": n, "n_failed": 0, "task": "retrieval", "ties": 0,
        "candidates": {"fewest": None, "most": 0, "without_answer": 0}, "conflicts": 0, "rules": {}, "withheld": {},
        "contrasts": [], "bounds": {}, "bounds_any_span": {}, "price": {}, "audit": None, "decided": None,
        "baselines": {"scores": {"best_source": {"em": None, "sources": [], "reason": None}}, "judges": {}},
        "shipping": {}, "remarks": [], **figures,
    }  # fmt: skip


def summary_figures(pools: dict[str, Any]) -> Any:
    """The content of `summary.json`, of a run that asked nobody."""
    return {"pools": pools, "consultations": {}, "remarks": [], "confirmation": None}


AUDIT: Any = {"outcomes": [], "flips": {}}
"""The audit in full of no questions."""
