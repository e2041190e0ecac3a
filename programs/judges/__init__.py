"""Judges other than one call on the whole pool: in several orders, by pairs, one candidate or slice a call, as a panel.

Each is a module in the judge's role, with its inputs (question, evidence, candidates) and outputs (`assessments`,
`preferred`, `judge_rationale`, or `abstained`), and can replace any judge. Most also return `orders`: what their LM was
shown together, in which order, and what it preferred. `eldgr_dspy.figures.effects` measures from that.
"""

from eldgr_dspy.programs.judges.alternating import tuned_in_turn
from eldgr_dspy.programs.judges.checks import Interactor, Navigator, PlanThenCheck
from eldgr_dspy.programs.judges.derived import DerivedJudge
from eldgr_dspy.programs.judges.pairwise import Comparer, PairwiseJudge
from eldgr_dspy.programs.judges.panel import Panel
from eldgr_dspy.programs.judges.pointwise import Assessor, PointwiseJudge
from eldgr_dspy.programs.judges.slices import SliceJudge, SliceReader
from eldgr_dspy.programs.judges.slicing import slices_of
from eldgr_dspy.programs.judges.swapped import SwapConsistent
from eldgr_dspy.programs.judges.universal import UniversalConsistency

__all__ = [
    "Assessor",
    "Comparer",
    "DerivedJudge",
    "Interactor",
    "Navigator",
    "PairwiseJudge",
    "Panel",
    "PlanThenCheck",
    "PointwiseJudge",
    "SliceJudge",
    "SliceReader",
    "SwapConsistent",
    "UniversalConsistency",
    "slices_of",
    "tuned_in_turn",
]
