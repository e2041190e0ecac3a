"""Paired statistics over questions: how far one rule is ahead of another, and how certain that is.

They measure the uncertainty from the choice of questions; only `seed_variance` also covers that from training or
sampling seeds. Nothing here knows rules or pools. Results are in the units of the inputs, and plans are in shares of
the questions.

    >>> contrast_from_counts(500, 17, 3, unit=100).p
    0.002576828002929687
    >>> questions_needed(gain=0.02, discordant=0.06)
    1244
"""

from eldgr_dspy.statistics.families import holm
from eldgr_dspy.statistics.guarantees import (
    binomial_tail,
    passing,
    passing_on_average,
    proportion_upper_bound,
    questions_without_loss,
)
from eldgr_dspy.statistics.paired import Contrast, contrast, contrast_from_counts, contrast_of_units, mcnemar
from eldgr_dspy.statistics.power import Split, detectable_gain, least_significant, mcnemar_power, questions_needed
from eldgr_dspy.statistics.resampling import LEVEL, RESAMPLES, SEED, Interval
from eldgr_dspy.statistics.seeds import SeedVariance, seed_variance

__all__ = [
    # one rule against another
    "Contrast",
    "Interval",
    "contrast",
    "contrast_from_counts",
    "contrast_of_units",
    "mcnemar",
    "RESAMPLES",
    "LEVEL",
    "SEED",
    # one rule alone
    "proportion_upper_bound",
    # which rules lose at most so much
    "binomial_tail",
    "passing",
    "passing_on_average",
    "questions_without_loss",
    # several contrasts, several seeds
    "holm",
    "SeedVariance",
    "seed_variance",
    # before spending
    "Split",
    "least_significant",
    "mcnemar_power",
    "questions_needed",
    "detectable_gain",
]
