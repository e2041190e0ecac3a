"""Judges that are fairer than one call on the whole pool: in several orders, two candidates at a time, one, or none.

Each is a module in the judge's role, with its inputs (question, evidence, candidates) and outputs (`assessments`,
`preferred`, `judge_rationale`, or `abstained`), and can replace any judge. It also returns `orders`: what its LM was
shown, in which order, and what it preferred. `eldgr_dspy.figures.effects` measures from that.
"""

from eldgr_dspy.programs.judges.derived import DerivedJudge
from eldgr_dspy.programs.judges.pairwise import Comparer, PairwiseJudge
from eldgr_dspy.programs.judges.pointwise import Assessor, PointwiseJudge
from eldgr_dspy.programs.judges.swapped import SwapConsistent

__all__ = ["Assessor", "Comparer", "DerivedJudge", "PairwiseJudge", "PointwiseJudge", "SwapConsistent"]
