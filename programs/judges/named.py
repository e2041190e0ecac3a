"""Judges without an LM by the words of the command, and judges of your own by their names."""

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.named_objects import is_dotted
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.judges.own import own_judge
from eldgr_dspy.programs.judges.weighted_votes import WEIGHINGS, WeightedVote

PANEL = "panel:"
"""How the word of a panel begins; its models follow, joined by `+`."""


def judge_named(given: str) -> dspy.Module | None:
    """Return the judge of a word: a formula, `drm`, `autodspy:FILE` or `MODULE:NAME`; None for others, such as a model.

    Raises:
        ArgumentError: The formula lacks something, or the module has no such object. PoolError: The training pool of
            `autodspy` cannot be read.
    """
    name, _, rest = given.partition(":")
    if name in WEIGHINGS:
        return WeightedVote(given)
    if given == DimensionalSelector.formula:
        return DimensionalSelector()
    if name == "autodspy":
        from eldgr_dspy.programs.judges.autodspy import PipelineSelector

        if not rest:
            raise ArgumentError(f"autodspy must name a training pool; got {rest!r}. Write autodspy:FILE.")
        return PipelineSelector(rest)
    return own_judge(given) if is_own(given) else None


def is_without_lm(given: str) -> bool:
    """Return whether a word names a judge of ours that asks no LM."""
    return given in ("heuristic", DimensionalSelector.formula) or given.partition(":")[0] in (*WEIGHINGS, "autodspy")


def is_own(given: str) -> bool:
    """Return whether a word is the name of an object of yours, `module:object`."""
    return not is_without_lm(given) and is_dotted(given)
