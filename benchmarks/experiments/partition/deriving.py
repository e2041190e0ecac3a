"""A policy's solution of a word problem as a derivation, for its certificate and for recordings of a deriver."""

from typing import Any, Final

from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.rule.consultations import Derivation, Step

CHECK: Final = "Check: "


def derivation_in(text: str) -> Derivation | None:
    """Return the derivation in a text: each equation a step, the line marked as one the check.

    Returns:
        None if the text has no equation, or no answer in the requested form.
    """
    extraction = extract_answer(text, "arithmetic")
    lines = [step.content for step in split_steps(text).steps if "=" in step.content]
    checks = [line.removeprefix(CHECK) for line in lines if line.startswith(CHECK)]
    parts = [line.rpartition("=") for line in lines if not line.startswith(CHECK)]
    if extraction is None or extraction.form != "hashes" or not parts:
        return None
    steps = tuple(Step(left.strip(), value.strip()) for left, _, value in parts)
    return Derivation(steps, extraction.answer, checks[-1] if checks else "")


def content_of(derivation: Derivation) -> dict[str, Any]:
    return {
        "derivation_steps": [{"expression": step.expression, "value": step.value} for step in derivation.steps],
        "derived_answer": derivation.answer,
        "consistency_check": derivation.check,
    }
