"""A judge that names the candidate most consistent with the others: universal self-consistency.

Source: Chen et al. 2023, "Universal Self-Consistency for Large Language Model Generation" (arXiv 2311.17311). The LM
does the counting, so answers need not be comparable as text. As in the paper it is not shown the evidence.
"""

from collections.abc import Mapping
from typing import Any

import dspy

from eldgr_dspy.programs.one_call import OneCall
from eldgr_dspy.signatures import MostConsistent


class UniversalConsistency(OneCall):
    """Prefers the candidate that the LM finds most consistent with the others, with one LM call and without scores.

        selector.judge = UniversalConsistency()

    It judges agreement and not support: it is a majority vote by meaning. The whole pool is shown at once, in its
    order, and that order may matter; `SwapConsistent(UniversalConsistency())` asks in several. An index outside the
    pool is an abstention.
    """

    signature = MostConsistent

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return `preferred` and `judge_rationale`."""
        return dspy.Prediction(preferred=reply.most_consistent, judge_rationale=reply.consistency_rationale)
