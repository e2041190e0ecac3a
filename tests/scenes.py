"""Questions with their candidates, and what the roles reply to them."""

from collections.abc import Callable
from functools import partial
from typing import Any

ASPECTS = ("logic", "fact", "epist", "info", "triang", "adv", "min", "scalar")
SCORES = dict.fromkeys(ASPECTS, 0.5)
DERIVATION = {
    "derivation_steps": [{"expression": "3 * 12", "value": "36"}],
    "derived_answer": "36",
    "consistency_check": "36 / 12 = 3",
}
SILENT = {"repair_passage": -1, "repaired_answer": ""}
ABSTAINS = {"abstained": "?"}

# Consensus (Dubai) is uncertified and Doha is certified, so that judge and repairer both matter.
CONTESTED: dict[str, Any] = {
    "question": "What is the capital of the country that lies on the Qatar peninsula?",
    "candidates": ["Dubai", "Dubai", "Doha"],
    "evidence": ["Doha is the capital of Qatar.", "Qatar lies on the Persian Gulf."],
}
SETTLED: dict[str, Any] = {**CONTESTED, "candidates": ["Doha", "Doha", "Dubai"]}
PENS: dict[str, Any] = {
    "question": "Tom has 3 boxes of 12 pens. How many pens has he?",
    "candidates": ["35", "35", "36"],
    "answer": "number",
}


def verdict(preferred: Any, n: int = 3) -> dict[str, Any]:
    return {"judge_rationale": "Passage 0.", "assessments": [SCORES] * n, "preferred": preferred}


def repair(span: str, passage: int = 0) -> dict[str, Any]:
    return {"repair_passage": passage, "repaired_answer": span}


def in_style(request: Any, index: int, scalar: float, n: int = 0, span: str = "") -> dict[str, Any]:
    """A reply in whatever way a role is asked: this candidate, this score or this span; n candidates have scores."""
    properties = request.config.response_format["schema"]["properties"]
    if "better" in properties:
        return {"comparison_rationale": "", "better": index % 2}
    if "assessment" in properties:
        return {"candidate_rationale": "", "assessment": [5] * 7 + [round(10 * scalar)]}
    replies: dict[str, dict[str, Any]] = {
        "sound": {"slice_rationale": "", "sound": scalar >= 0.5},
        "checks": {"checks": ["It is a city."]},
        "passed": {"check_rationale": "", "passed": [scalar >= 0.5], "consistent": True},
    }
    if fitting := [reply for name, reply in replies.items() if name in properties]:
        return fitting[0]
    return verdict(index, n) if "preferred" in properties else repair(span, -1)


# What a table of cases says by these words: `{"PENS": {"candidates": []}}` is PENS with other candidates.
WORDS: dict[str, Callable[..., Any]] = {"verdict": verdict, "repair": repair, "DERIVATION": partial(dict, DERIVATION)}
WORDS |= {"CONTESTED": partial(dict, CONTESTED), "SETTLED": partial(dict, SETTLED), "PENS": partial(dict, PENS)}

# What is consulted of whom, on which inputs: a branch each.
SCRIPTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "judge": (CONTESTED, {"judge": verdict(2)}),
    "repair": (CONTESTED, {"judge": verdict(0), "repairer": repair("Persian Gulf", 1)}),
    "consensus": (CONTESTED, {"judge": "no verdict", "repairer": repair("Manama")}),
    "nobody": (SETTLED, {}),
    "derivation": (PENS, {}),
}
