"""Judges other than one call on the whole pool, and selectors without an LM that count what a pool states.

Judges ask in several orders, by pairs, one candidate or slice a call, or as a panel. Each is a module in the judge's
role, with its inputs (question, evidence, candidates) and outputs (`assessments`, `preferred`, `judge_rationale`, or
`abstained`), and can replace any judge. Most also return `orders`: what their LM was shown together, in which order,
and what it preferred.
"""

from eldgr_dspy.programs.judges.autodspy import PipelineSelector
from eldgr_dspy.programs.judges.counting_judges import WEIGHINGS, BestOf, OwnSelector, WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.judges.gar import SliceJudge
from eldgr_dspy.programs.judges.repeated_judges import (
    Assessor,
    Comparer,
    PairwiseJudge,
    Panel,
    PointwiseJudge,
    SwapConsistent,
)
from eldgr_dspy.programs.judges.swirl import PlanThenCheck

__all__ = [
    "WEIGHINGS",
    "Assessor",
    "BestOf",
    "Comparer",
    "DimensionalSelector",
    "OwnSelector",
    "PairwiseJudge",
    "Panel",
    "PipelineSelector",
    "PlanThenCheck",
    "PointwiseJudge",
    "SliceJudge",
    "SwapConsistent",
    "WeightedVote",
]
