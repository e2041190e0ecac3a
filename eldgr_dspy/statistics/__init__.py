"""Paired statistics over questions: how far one rule is ahead of another, and how certain that is.

They measure the uncertainty from the choice of questions; only `seed_variance` also covers that from training or
sampling seeds. Nothing here knows rules or pools. Results are in the units of the inputs, and plans are in shares of
the questions.

    >>> contrast_of_units({((100, 0),): 17, ((0, 100),): 3, ((0, 0),): 480}).p
    0.002576828002929687
    >>> questions_needed(gain=0.02, discordant=0.06)
    1244
"""

from eldgr_dspy.statistics.guarantees import holm, passing, proportion_upper_bound, questions_without_loss
from eldgr_dspy.statistics.paired import Contrast, contrast, contrast_of_units, mcnemar
from eldgr_dspy.statistics.power import mcnemar_power, questions_needed
from eldgr_dspy.statistics.resampling import Interval
from eldgr_dspy.statistics.seeds import SeedVariance, seed_variance

__all__ = [
    "Contrast",
    "Interval",
    "contrast",
    "contrast_of_units",
    "mcnemar",
    "holm",
    "proportion_upper_bound",
    "passing",
    "questions_without_loss",
    "SeedVariance",
    "seed_variance",
    "mcnemar_power",
    "questions_needed",
]
