"""Tune the two roles of a `PlanThenCheck` in turn, and keep a stage only if the score does not fall.

Source: that roles are trained by turns, one frozen while the other learns, is of SWIRL (Lu et al. 2025, arXiv
2508.20018). DSPy's optimizers instead of reinforcement learning, and the test on other questions, are ours.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.consulting import ask
from eldgr_dspy.programs.judges.checks import PlanThenCheck

Metric = Callable[[dspy.Example, dspy.Prediction], float]


def tuned_in_turn(
    judge: PlanThenCheck,
    optimizers: Sequence[Any],
    *,
    trainset: Sequence[dspy.Example],
    devset: Sequence[dspy.Example],
    metric: Metric,
) -> tuple[PlanThenCheck, list[float]]:
    """Return the judge that is kept, and the mean of the metric on `devset` before and after each stage.

    The first stage tunes the navigator, the second the interactor, and so on. The other role is frozen: it takes part,
    but DSPy shows its predictor to no optimizer. A stage starts from the judge kept so far, which is never changed.

    Args:
        judge: Where to start.
        optimizers: One a stage, each with `compile(student, trainset=...)`.
        trainset: Examples with the inputs question, evidence and candidates. devset: Other such examples.
        metric: (example, prediction) -> number. The prediction has `abstained` if a reply cannot be used.

    Raises:
        ArgumentError: There is no example to score on.
        dspy.LMError: A request failed.
    """
    if not devset:
        raise ArgumentError("devset must be at least one example; got 0. Keep some away from the trainset.")
    kept, best = judge, _mean(judge, devset, metric)
    scores = [best]
    for stage, optimizer in enumerate(optimizers):
        student: Any = kept.deepcopy()
        student._compiled = False
        student.navigator._compiled = stage % 2 == 1  # DSPy leaves alone what is compiled
        student.interactor._compiled = stage % 2 == 0
        tuned: Any = optimizer.compile(student, trainset=list(trainset))
        tuned._compiled = tuned.navigator._compiled = tuned.interactor._compiled = False
        scores.append(_mean(tuned, devset, metric))
        if scores[-1] >= best:
            kept, best = tuned, scores[-1]
    return kept, scores


def _mean(judge: dspy.Module, examples: Sequence[dspy.Example], metric: Metric) -> float:
    said = (dspy.Prediction(**ask(judge, dict(example.inputs()), "judge").content) for example in examples)
    return math.fsum(float(metric(example, one)) for example, one in zip(examples, said, strict=True)) / len(examples)
