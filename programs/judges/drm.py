"""A selector in the style of DRM (2510.11457): confidence, relevance and coherence of a reasoning, added.

Kept: three dimensions, standardised within the pool and added with weights of a third; confidence is the mean
log-probability of the reasoning plus the summed one of the answer. Lost: DRM trains a policy on this sum, and its
relevance and coherence come from models of its own. Here they are scores that a pool states, or rewards.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from operator import truediv

import dspy

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.consultations import Abstention
from eldgr_dspy.programs.judges.counting import CountingJudge, abstained
from eldgr_dspy.programs.judges.weighted_votes import values_of

DIMENSIONS: tuple[str, ...] = ("confidence", "relevance", "coherence")


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
        found = [_confidences(ballot), *(values_of(ballot, "scores", name) for name in DIMENSIONS[1:])]
        lacking = [values for values in found if isinstance(values, Abstention)]
        if lacking:
            return abstained(next((why for why in lacking if why.kind == "not applicable"), lacking[0]))
        known = [values for values in found if not isinstance(values, Abstention)]
        sums = _sums(len(ballot.voters), [[_exact(values[i] or 0) for i in ballot.voters] for values in known])
        ranks, weights = sorted({*sums}), [0.0] * len(ballot.classes)
        for index, total in zip(ballot.voters, sums, strict=True):
            weights[index] = ranks.index(total)
        preferred = ballot.first(weights)
        if preferred is None:
            return abstained("there is no candidate to judge")
        rationale = f"{float(ranks[int(weights[preferred])]):.3g} standard deviations above the mean of the pool"
        return dspy.Prediction(preferred=preferred, judge_rationale=rationale, orders=[])


def _sums(n: int, dimensions: Iterable[Sequence[Fraction]]) -> list[Decimal]:
    """Return a third of each candidate's sum of standardised values: equal where it is, to 60 digits where it is not.

    A sum is rational but for the roots of the variances. Roots whose ratio is rational are counted in one of them, so
    that what cancels is nothing; roots that have no such ratio never cancel.
    """
    roots: list[Fraction] = []  # variances
    parts: list[list[Fraction]] = [[Fraction()] * len(DIMENSIONS) for _ in range(n)]  # of each candidate, by root
    for values in dimensions:
        mean = sum(values, Fraction()) / (n or 1)
        variance = sum(((value - mean) ** 2 for value in values), Fraction()) / (n or 1)
        if not variance:
            continue
        ratios = [_root(variance / root) for root in roots] + [Fraction(1)]
        place = next(place for place, ratio in enumerate(ratios) if ratio)
        roots += [variance] if place == len(roots) else []
        for part, value in zip(parts, values, strict=True):
            part[place] += _exact(1 / 3) * (value - mean) / (ratios[place] or 1)
    with localcontext(prec=60):
        scales = [_decimal(root).sqrt() for root in roots]
        return [sum(map(truediv, map(_decimal, part), scales), Decimal()) for part in parts]


def _exact(value: float | Fraction) -> Fraction:
    """Return a number as the decimal that it is written as, so that .1 + .2 is .3."""
    return value if isinstance(value, Fraction) else Fraction(repr(float(value)))


def _root(ratio: Fraction) -> Fraction | None:
    """Return the root of a positive fraction, None if it is not rational."""
    root = Fraction(math.isqrt(ratio.numerator), math.isqrt(ratio.denominator))
    return root if root * root == ratio else None


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


def _confidences(ballot: Ballot) -> Sequence[float | Fraction | None] | Abstention:
    """Return the mean log-probability of each reasoning plus the sum of its answer's; or why one is missing."""
    known = [stated.logprobs for stated in ballot.stated]
    if ballot.voters and all(one is None for one in known):
        return Abstention.of("not applicable", "the pool states no log-probabilities")
    if all(one is None or one.answer is None for one in known) and ballot.voters:
        return Abstention.of("not applicable", "the pool states no log-probabilities of answers")
    sums: list[float | Fraction | None] = [None] * len(known)
    for index in ballot.voters:
        one = known[index]
        if one is None or one.reasoning is None or one.answer is None:
            return Abstention(f"no log-probabilities of reasoning and answer are stated of candidate {index}")
        sums[index] = _exact(one.reasoning) + _exact(one.answer)
    return sums
