"""A judge that names the candidate most consistent with the others: universal self-consistency.

Source: Chen et al. 2023, "Universal Self-Consistency for Large Language Model Generation" (arXiv 2311.17311). The LM
does the counting, so answers need not be comparable as text. As in the paper it is not shown the evidence.
"""

from collections.abc import Sequence

import dspy

from eldgr_dspy.programs.engines.strict import strict_parsing
from eldgr_dspy.programs.fencing import fence
from eldgr_dspy.signatures import MostConsistent


class UniversalConsistency(dspy.Module):
    """Prefers the candidate that the LM finds most consistent with the others, with one LM call and without scores.

        selector.judge = UniversalConsistency()

    It judges agreement and not support: it is a majority vote by meaning. The whole pool is shown at once, in its
    order, and that order may matter; `SwapConsistent(UniversalConsistency())` asks in several. An index outside the
    pool is an abstention.
    """

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(MostConsistent)

    def forward(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dspy.Prediction:
        """Ask once, without the evidence.

        Returns:
            `preferred` and `judge_rationale`, or `abstained` with the reason.

        Raises:
            dspy.AdapterParseError: The reply cannot be read.
            dspy.LMError: The request failed.
        """
        if not candidates:
            return _nothing()
        fenced = fence(question, (), candidates)
        with strict_parsing():
            return _named(self.predict(question=fenced.question, candidates=fenced.candidates))

    async def aforward(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        if not candidates:
            return _nothing()
        fenced = fence(question, (), candidates)
        with strict_parsing():
            return _named(await self.predict.acall(question=fenced.question, candidates=fenced.candidates))

    def most_calls(self, candidates: Sequence[str]) -> int:
        """Return 1, or 0 if there are no candidates."""
        return min(1, len(candidates))


def _nothing() -> dspy.Prediction:
    return dspy.Prediction(abstained="there is no candidate to judge", orders=[])


def _named(prediction: dspy.Prediction) -> dspy.Prediction:
    return dspy.Prediction(preferred=prediction.most_consistent, judge_rationale=prediction.consistency_rationale)
