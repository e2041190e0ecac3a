"""A selector in the style of DRM (2510.11457): confidence, relevance and coherence of a reasoning, added.

Kept: three dimensions, standardised within the pool and added with weights of a third; confidence is the mean
log-probability of the reasoning plus the summed one of the answer. Lost: DRM trains a policy on this sum, and its
relevance and coherence come from models of its own. Here they are scores that a pool states, or rewards.
"""

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, localcontext
from typing import Any

import dspy

from eldgr_dspy.programs.judges.frames import CountingJudge, abstained
from eldgr_dspy.programs.judges.weighted_votes import values_of
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention

DIMENSIONS: tuple[str, ...] = ("confidence", "relevance", "coherence")
_EXACT, _LAST_DIGIT = Context(prec=2_000), Decimal("1e-1000")


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
        found = [_confidences(ballot), *(_scores(ballot, name) for name in DIMENSIONS[1:])]
        lacking = [values for values in found if isinstance(values, Abstention)]
        if lacking:
            return abstained(next((why for why in lacking if why.kind == "not applicable"), lacking[0]))
        means = dict(zip(ballot.voters, _mean_of_standardised(found), strict=True))
        preferred = ballot.first(means)
        above = float(means[preferred]) + 0.0  # which is never -0
        rationale = f"{above:.3g} standard deviations above the mean of the pool"
        return dspy.Prediction(preferred=preferred, judge_rationale=rationale, orders=[])


def _mean_of_standardised(dimensions: Sequence[Any]) -> list[Decimal]:
    """Return the mean of each candidate's standardised values, to 1,000 digits: exact ties are equal.

    Sums of three roots of ordinary numbers are equal, or differ long before the last digit.
    """
    with localcontext(_EXACT):
        sums = [Decimal()] * len(dimensions[0])
        for values in dimensions:
            mean = sum(values, Decimal()) / len(values)
            if variance := sum(((value - mean) ** 2 for value in values), Decimal()) / len(values):
                sums = [total + (value - mean) / variance.sqrt() for total, value in zip(sums, values, strict=True)]
        return [(total / len(dimensions)).quantize(_LAST_DIGIT) for total in sums]


def _exact(value: float) -> Decimal:
    """Return a number as the decimal that it is written as, so that .1 + .2 is .3."""
    return Decimal(repr(float(value)))


def _scores(ballot: Ballot, name: str) -> list[Decimal] | Abstention:
    values = values_of(ballot, "scores", name)
    return values if isinstance(values, Abstention) else [*map(_exact, values.values())]


def _confidences(ballot: Ballot) -> list[Decimal] | Abstention:
    """Return the mean log-probability of each reasoning plus the sum of its answer's; or why one is missing."""
    known = [stated.logprobs for stated in ballot.stated]
    if not any(known):
        return Abstention.of("not applicable", "the pool states no log-probabilities")
    if all(one is None or one.answer is None for one in known):
        return Abstention.of("not applicable", "the pool states no log-probabilities of answers")
    sums = list[Decimal]()
    for index in ballot.voters:
        one = known[index]
        if one is None or one.reasoning is None or one.answer is None:
            return Abstention(f"no log-probabilities of reasoning and answer are stated of candidate {index}")
        sums.append(_EXACT.add(_exact(one.reasoning), _exact(one.answer)))
    return sums
