"""Judges other than one call on the whole pool, and selectors without an LM that count what a pool states.

Judges ask in several orders, by pairs, one candidate or slice a call, or as a panel. Each is a module in the judge's
role, with its inputs (question, evidence, candidates) and outputs (`assessments`, `preferred`, `judge_rationale`, or
`abstained`), and can replace any judge. Most also return `orders`: what their LM was shown together, in which order,
and what it preferred.
"""

from eldgr_dspy.programs.judges.autodspy import PipelineSelector
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.judges.gar import SliceJudge
from eldgr_dspy.programs.judges.own import BestOf, OwnSelector
from eldgr_dspy.programs.judges.pairwise import Comparer, PairwiseJudge
from eldgr_dspy.programs.judges.panel import Panel
from eldgr_dspy.programs.judges.pointwise import Assessor, PointwiseJudge
from eldgr_dspy.programs.judges.swapped import SwapConsistent
from eldgr_dspy.programs.judges.swirl import PlanThenCheck
from eldgr_dspy.programs.judges.weighted_votes import WEIGHINGS, WeightedVote

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
