"""What is asked of an LM: one typed signature a role, each class used by that role alone.

A signature's docstring is its prompt and a field's description is part of it: both are data, pinned by the files in
`tests/golden`. Nothing is checked here; ranges and membership are the business of `eldgr_dspy.rule.replies`.
"""

from eldgr_dspy.signatures.channels import ScoreSteps, StepAspects
from eldgr_dspy.signatures.checks import CheckCandidate, PlanChecks
from eldgr_dspy.signatures.deriver import DerivationStep, DeriveAnswer
from eldgr_dspy.signatures.judge import (
    ASPECTS,
    AssessCandidate,
    CompareCandidates,
    JudgeCandidates,
    JudgeSlice,
    Scores,
    read_scores,
)
from eldgr_dspy.signatures.repairer import RepairAnswer

__all__ = [
    "ASPECTS",
    "Scores",
    "read_scores",
    "AssessCandidate",
    "CheckCandidate",
    "CompareCandidates",
    "DerivationStep",
    "DeriveAnswer",
    "JudgeCandidates",
    "JudgeSlice",
    "PlanChecks",
    "RepairAnswer",
    "ScoreSteps",
    "StepAspects",
]
