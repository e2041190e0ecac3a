"""A selector in the style of DRM (2510.11457): confidence, relevance and coherence of a reasoning, added.

Kept: three dimensions, standardised within the pool and added with weights of a third; confidence is the mean
log-probability of the reasoning plus the summed one of the answer. Lost: DRM trains a policy on this sum, and its
relevance and coherence come from models of its own. Here they are scores that a pool states, or rewards.
"""

from collections.abc import Mapping

import dspy
import numpy as np

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.consultations import Abstention
from eldgr_dspy.programs.judges.counting import CountingJudge, abstained
from eldgr_dspy.programs.judges.weighted_votes import values_of

DIMENSIONS: tuple[str, ...] = ("confidence", "relevance", "coherence")
_DIGITS, _ROUNDING = 9, 1e-12  # sums that differ after these digits are equal; a spread below this share is none


class DimensionalSelector(CountingJudge):
    """Prefers the candidate with the highest sum of three standardised dimensions; a judge without an LM.

    `confidence` comes from the log-probabilities `reasoning` and `answer`; `relevance` and `coherence` are scores of
    those names. A dimension that is the same for all candidates adds nothing. Sums are compared to nine digits; ties go
    to the answer with more votes, then to the earliest candidate. If a candidate that votes lacks a dimension, it
    abstains.
    """

    formula = "drm"
    facts: Mapping[str, bool] = {"gold_in_training": False, "logprobs": True, "positioned": True}

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Count a ballot; returns `preferred` and `judge_rationale`, or `abstained` with the reason."""
        found = [_confidences(ballot), *(values_of(ballot, "scores", name) for name in DIMENSIONS[1:])]
        lacking = [values for values in found if isinstance(values, Abstention)]
        if lacking:
            return abstained(next((why for why in lacking if why.kind == "not applicable"), lacking[0]))
        if not ballot.voters:
            return abstained("there is no candidate to judge")
        numbers = [values for values in found if not isinstance(values, Abstention)]
        known = np.array([[values[i] for i in ballot.voters] for values in numbers], float)
        deviations = known - known.mean(axis=1, keepdims=True)
        spreads = known.std(axis=1, keepdims=True)
        differ = spreads > _ROUNDING * np.abs(known).max(axis=1, keepdims=True)
        sums = np.divide(deviations, spreads, out=np.zeros_like(known), where=differ).mean(axis=0).round(_DIGITS)
        weights = np.zeros(len(ballot.classes))
        weights[[*ballot.voters]] = sums
        preferred = ballot.first(weights.tolist())
        rationale = f"{weights[preferred]:.3g} standard deviations above the mean of the pool"
        return dspy.Prediction(preferred=preferred, judge_rationale=rationale, orders=[])


def _confidences(ballot: Ballot) -> list[float | None] | Abstention:
    """Return the mean log-probability of each reasoning plus the sum of its answer's; or why one is missing."""
    known = [stated.logprobs for stated in ballot.stated]
    if ballot.voters and all(one is None for one in known):
        return Abstention.of("not applicable", "the pool states no log-probabilities")
    if all(one is None or one.answer is None for one in known) and ballot.voters:
        return Abstention.of("not applicable", "the pool states no log-probabilities of answers")
    sums: list[float | None] = [None] * len(known)
    for index in ballot.voters:
        one = known[index]
        if one is None or one.reasoning is None or one.answer is None:
            return Abstention(f"no log-probabilities of reasoning and answer are stated of candidate {index}")
        sums[index] = one.reasoning + one.answer
    return sums
