"""A selector in the style of DRM (2510.11457): confidence, relevance and coherence of a reasoning, added.

`docs/reference/selectors.md` has the formula, and what of DRM is lost.
"""

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, localcontext

import dspy

from eldgr_dspy.programs.judges.counting_judges import values_of
from eldgr_dspy.programs.judges.frames import CountingJudge, abstain
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention

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
        """Add the dimensions; the rationale states the sum."""
        columns = [
            *(values_of(ballot, "logprobs", fold=part) for part in ("reasoning", "answer")),
            *(values_of(ballot, "scores", name) for name in ("relevance", "coherence")),
        ]
        if lacking := [values for values in columns if isinstance(values, Abstention)]:
            return abstain(next((why for why in lacking if why.kind == "not applicable"), lacking[0]))
        reasoning, answer, *scores = [[*map(_exact, values.values())] for values in columns if isinstance(values, dict)]
        sums = _mean_of_standardised([[*map(_EXACT.add, reasoning, answer)], *scores])
        means = dict(zip(ballot.voters, sums, strict=True))
        preferred = ballot.first(means)
        above = float(means[preferred]) + 0.0  # which is never -0
        rationale = f"{above:.3g} standard deviations above the mean of the pool"
        return dspy.Prediction(preferred=preferred, judge_rationale=rationale, orders=[])


def _mean_of_standardised(dimensions: Sequence[Sequence[Decimal]]) -> list[Decimal]:
    """Return the mean of each candidate's standardised values, to 1,000 digits: exact ties are equal."""
    # Sums of three roots of ordinary numbers are equal, or differ long before the last digit.
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
