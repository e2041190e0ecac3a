"""The steps of a reasoning between marker lines, in the same fence as candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

from eldgr_dspy.programs.fencing import fence


@dataclass(frozen=True, slots=True)
class FencedSteps:
    """A question, passages and steps, each text between its marker lines; `marker` is its letters."""

    question: str
    evidence: list[str]
    steps: list[str]
    marker: str


def fence_steps(question: str, evidence: Sequence[str], steps: Sequence[str]) -> FencedSteps:
    """Return the material of one request, fenced as `fence` does; a step's label is `step` and its number, from 0."""
    fenced = fence(question, evidence, steps)
    marker = fenced.marker
    # No text contains the marker, so only marker lines are replaced.
    labelled = [
        text.replace(f"candidate {number} {marker}>", f"step {number} {marker}>")
        for number, text in enumerate(fenced.candidates)
    ]
    return FencedSteps(fenced.question, fenced.evidence, labelled, marker)
