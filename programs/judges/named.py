"""Judges by the words of the command: a style in which an LM is asked, a formula, or an object of yours."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, cast, get_args

import dspy

from eldgr_dspy.base.named_objects import cause, is_dotted, load_object, name_of, naming_function
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.counting_judges import WEIGHINGS, OwnSelector, WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.judges.gar import SliceJudge
from eldgr_dspy.programs.judges.repeated_judges import Comparer, PairwiseJudge, PointwiseJudge, SwapConsistent
from eldgr_dspy.programs.judges.swirl import PlanThenCheck
from eldgr_dspy.programs.lms.consulting import FAILURES
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.rule.questions import require_one_of
from eldgr_dspy.words import JudgeStyle

PANEL = "panel:"
"""How the word of a panel begins; its models follow, joined by `+`."""

_ALONE: dict[str, Any] = {"pointwise": PointwiseJudge, "slices": SliceJudge, "checks": PlanThenCheck}
"""The styles that show no two candidates together."""
_WORDS = (*get_args(JudgeStyle), *WEIGHINGS, PANEL.rstrip(":"), "autodspy", "heuristic")


def judge_in_style(judge: dspy.Module, style: JudgeStyle = "listwise", orders: int = 1) -> dspy.Module:
    """Return a judge that asks in a style, and asks about several candidates in `orders` different orders."""
    require_one_of("judge_style", style, get_args(JudgeStyle))
    asks_lm = isinstance(judge, Judge)
    if style in _ALONE:
        if not asks_lm:
            raise ArgumentError(f"judge_style={style!r} needs a judge with an LM; give it a model.")
        if orders != 1:
            raise ArgumentError(f"orders must be 1 with judge_style={style!r} (it sees one at a time); got {orders!r}.")
        return cast(dspy.Module, _ALONE[style]())
    # Only the LM-backed `Judge` has a module for the smaller question; another judge is given two candidates at a time.
    whole = Comparer() if style == "pairwise" and asks_lm else judge
    inner = whole if orders == 1 else SwapConsistent(whole, orders)
    return PairwiseJudge(inner) if style == "pairwise" else inner


def style_of(word: str | None, style: JudgeStyle, model: str | None) -> tuple[JudgeStyle, str | None]:
    """Return the style and the model of a judge's word; `style` and `model` are for a word that does not state one."""
    if word is None or is_without_lm(word):  # None is a recording
        return "listwise", None
    for own in get_args(JudgeStyle):
        if word == own or word.startswith(f"{own}:"):
            return own, word.removeprefix(own)[1:] or model
    if word.startswith(PANEL):
        return "listwise", word.removeprefix(PANEL).partition("+")[0]
    if is_own(word):
        return "listwise", model
    name, colon, rest = word.partition(":")
    if near := get_close_matches(name, _WORDS, n=1, cutoff=0.75):
        remedy = f"Write {near[0]}{colon}{rest}."
        raise ArgumentError(f"A judge must be a model, style or formula; got {word!r:.80}. {remedy}")
    return style, word


def make_judge(word: str) -> dspy.Module | None:
    """Return the judge of a word: a formula, `drm`, `autodspy:FILE` or `MODULE:NAME`; None for another, as a model."""
    name, _, rest = word.partition(":")
    if name in WEIGHINGS:
        return WeightedVote(word)
    if word == DimensionalSelector.formula:
        return DimensionalSelector()
    if name == "autodspy":
        from eldgr_dspy.programs.judges.autodspy import PipelineSelector

        if not rest:
            raise ArgumentError(f"autodspy must name a training pool; got {rest!r}. Write autodspy:FILE.")
        return PipelineSelector(rest)
    return own_judge(word) if is_own(word) else None


def own_judge(judge: object) -> dspy.Module:
    """Return a judge: a module, a class of one, or a function of a ballot; each as it is or by its `module:object`."""
    value: Any = load_object(judge, "judges", "my_selectors:longest") if isinstance(judge, str) else judge
    name = judge if isinstance(judge, str) else name_of(judge)
    if isinstance(value, type) and issubclass(value, dspy.Module):
        try:
            return value()
        except Exception as error:
            raise ArgumentError(
                f"judges: {name} must be a judge's class that needs no argument; it raised {cause(error)}. Name an "
                "object that is one."
            ) from error
    if isinstance(value, type) or not callable(value):
        kind = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise ArgumentError(
            f"judges: {name} must be a dspy.Module or a function of a ballot; got {kind}. Name a function or a judge."
        )
    if isinstance(value, dspy.Module):
        return value
    function = cast("Callable[[Ballot], int | Abstention]", value)
    selector = OwnSelector(function)  # its source is the function's

    def choose(ballot: Ballot) -> int | Abstention:
        with naming_function(f"The judge {name!r} has failed", function, *FAILURES):
            return function(ballot)

    selector.choose = choose
    return selector


def is_without_lm(word: str) -> bool:
    """Return whether a word names a judge of ours that asks no LM."""
    return word in ("heuristic", DimensionalSelector.formula) or word.partition(":")[0] in (*WEIGHINGS, "autodspy")


def is_own(word: str) -> bool:
    """Return whether a word is the name of an object of yours, `module:object`."""
    return not is_without_lm(word) and is_dotted(word)
