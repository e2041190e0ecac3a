"""A selector in the style of DRM (2510.11457): confidence, relevance and coherence of a reasoning, added.

Kept: three dimensions, standardised within the pool and added with weights of a third; confidence is the mean
log-probability of the reasoning plus the summed one of the answer. Lost: DRM trains a policy on this sum, and its
relevance and coherence come from models of its own. Here they are scores that a pool states, or rewards.
"""

from collections.abc import Mapping
from fractions import Fraction
from statistics import fmean, mean, pstdev

import dspy

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.consultations import Abstention
from eldgr_dspy.programs.judges.frames import CountingJudge, abstained
from eldgr_dspy.programs.judges.weighted_votes import values_of

_DIGITS = 12
"""Sums that agree to so many digits behind the point are a tie."""


class DimensionalSelector(CountingJudge):
    """Prefers the candidate with the highest sum of three standardised dimensions; a judge without an LM.

    `confidence` comes from the log-probabilities `reasoning` and `answer`; `relevance` and `coherence` are scores of
    those names. A dimension that is the same for all candidates adds nothing. Ties go to the answer with more votes,
    then to the earliest candidate. If a candidate that votes lacks a dimension, it abstains.
    """

    formula = "drm"
    facts: Mapping[str, bool] = {"gold_in_training": False, "logprobs": True, "positioned": True}

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Count a ballot; returns `preferred` and `judge_rationale`, or `abstained` with the reason."""
        found = [_confidences(ballot), *(values_of(ballot, "scores", name) for name in ("relevance", "coherence"))]
        lacking = [values for values in found if isinstance(values, Abstention)]
        if lacking:
            return abstained(next((why for why in lacking if why.kind == "not applicable"), lacking[0]))
        dimensions = [_standardised(values) for values in found if not isinstance(values, Abstention)]
        means = {index: round(fmean(of[index] for of in dimensions), _DIGITS) + 0.0 for index in ballot.voters}
        preferred = ballot.first(means)
        rationale = f"{means[preferred]:.3g} standard deviations above the mean of the pool"
        return dspy.Prediction(preferred=preferred, judge_rationale=rationale, orders=[])


def _standardised(values: Mapping[int, float]) -> dict[int, float]:
    exact = {index: Fraction(repr(float(value))) for index, value in values.items()}
    center, deviation = mean(exact.values()), Fraction(pstdev(exact.values())) or 1
    return {index: float((value - center) / deviation) for index, value in exact.items()}


def _confidences(ballot: Ballot) -> dict[int, float] | Abstention:
    """Return the mean log-probability of each reasoning plus the sum of its answer's; or why one is missing."""
    known = [stated.logprobs for stated in ballot.stated]
    if not any(known):
        return Abstention.of("not applicable", "the pool states no log-probabilities")
    if all(one is None or one.answer is None for one in known):
        return Abstention.of("not applicable", "the pool states no log-probabilities of answers")
    sums: dict[int, float] = {}
    for index in ballot.voters:
        one = known[index]
        if one is None or one.reasoning is None or one.answer is None:
            return Abstention(f"no log-probabilities of reasoning and answer are stated of candidate {index}")
        sums[index] = one.reasoning + one.answer
    return sums
