"""Decisions as plain JSON values, as predictions and `decisions.jsonl` have them."""

from dataclasses import fields
from typing import Any

from eldgr_dspy.decision import Decision
from eldgr_dspy.errors import ArgumentError

FIELDS = tuple(field.name for field in fields(Decision))
PREDICTION_FIELDS = frozenset((*FIELDS, "failures", "votes", "scores", "failed_samples"))
"""The fields of predictions of `Selector` and `Sampled`, which nothing else may have."""


def plain(decision: Decision) -> dict[str, Any]:
    """Return a decision as plain JSON values."""
    values = {name: list(value) if isinstance(value := getattr(decision, name), tuple) else value for name in FIELDS}
    witness = decision.witness and decision.witness.as_json()
    return {**values, "abstentions": dict(decision.abstentions), "witness": witness}


def require_answer_field(answer_field: object) -> None:
    """Refuse a name for the field of the answer that is empty, or that a prediction has for something else."""
    if type(answer_field) is not str or not answer_field.strip():
        raise ArgumentError(
            f"answer_field must be the name of the field that holds the answer; got {answer_field!r:.80}."
        )
    if answer_field in PREDICTION_FIELDS - {"answer"}:
        raise ArgumentError(
            f"answer_field={answer_field!r} is a field of the decision; use another field for the answers."
        )
