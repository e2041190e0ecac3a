"""A judge by the words of the command: what a call shows (pool, pair or one candidate), and in how many orders."""

from collections.abc import Callable
from typing import Literal, get_args

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.derived import DerivedJudge
from eldgr_dspy.programs.judges.gar import SliceJudge
from eldgr_dspy.programs.judges.named import PANEL, is_own, is_without_lm
from eldgr_dspy.programs.judges.pairwise import Comparer, PairwiseJudge
from eldgr_dspy.programs.judges.pointwise import PointwiseJudge
from eldgr_dspy.programs.judges.swapped import SwapConsistent
from eldgr_dspy.programs.judges.swirl import PlanThenCheck
from eldgr_dspy.programs.judges.universal import UniversalConsistency
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.questions import require_one_of

JudgeStyle = Literal["listwise", "pairwise", "pointwise", "derive", "universal", "slices", "checks"]

_ALONE: dict[str, Callable[[], dspy.Module]] = {
    "pointwise": PointwiseJudge,
    "derive": DerivedJudge,
    "slices": SliceJudge,
    "checks": PlanThenCheck,
}
"""The styles that show no two candidates together."""
_TOGETHER: dict[str, Callable[[], dspy.Module]] = {"pairwise": Comparer, "universal": UniversalConsistency}


def judge_in_style(judge: dspy.Module, style: JudgeStyle = "listwise", orders: int = 1) -> dspy.Module:
    """Return a judge that is asked in a style.

    Args:
        judge: The judge of a whole pool. The styles other than `listwise` replace the LM-backed `Judge` with the module
            for the smaller question; any other judge is given two candidates at a time.
        style: `listwise`, the whole pool a call; `pairwise`; `pointwise`; `derive`, the question without any candidate;
            `universal`, the most consistent one; `slices` of reasoning; `checks` that are planned first.
        orders: In how many orders candidates that are shown together are shown.

    Raises:
        ArgumentError: the style is not known, or does not fit the judge or the orders.
    """
    require_one_of("judge_style", style, get_args(JudgeStyle))
    if style in _ALONE or (style == "universal" and not isinstance(judge, Judge)):
        return _alone(judge, style, orders)
    shown = _TOGETHER[style]() if style in _TOGETHER and isinstance(judge, Judge) else judge
    asked = shown if orders == 1 else SwapConsistent(shown, orders)
    return PairwiseJudge(asked) if style == "pairwise" else asked


def styled(given: str | None, style: JudgeStyle, model: str | None) -> tuple[JudgeStyle, str | None]:
    """Return the style and the model of a judge that is given as a model, a style, STYLE:MODEL, or in another way.

    Args:
        given: What is given; None for a recording. style, model: for a judge that does not state one.
    """
    for known in get_args(JudgeStyle):
        if given == known:
            return known, model
        if given is not None and given.startswith(f"{known}:"):
            return known, given.removeprefix(f"{known}:")
    if given is not None and given.startswith(PANEL):
        return "listwise", given.removeprefix(PANEL).partition("+")[0]
    if given is not None and is_own(given):
        return "listwise", model
    return ("listwise", None) if given is None or is_without_lm(given) else (style, given)


def _alone(judge: dspy.Module, style: JudgeStyle, orders: int) -> dspy.Module:
    if not isinstance(judge, Judge):
        raise ArgumentError(f"judge_style={style!r} needs a judge with an LM; give it a model.")
    if orders != 1:
        shown = "no candidate" if style == "derive" else "one candidate"
        raise ArgumentError(f"orders must be 1 with judge_style={style!r} ({shown} a call); got {orders!r}.")
    return _ALONE[style]()
