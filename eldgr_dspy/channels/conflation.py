"""Conflation (Eq. 1): a high score although the evidence contradicts the step.

It is relative to the retrieved documents. In the paper's form, *every* retrieved document must contradict the step:
one neutral document makes the maximum 0, so that the test cannot fire. It still can over the documents that are not
neutral.
"""

from typing import Literal, get_args

import numpy as np

from eldgr_dspy.channels.grounding import Grounding
from eldgr_dspy.channels.undefined import Scores, Undefined, Values, each
from eldgr_dspy.errors import ArgumentError

ETA = -0.8
"""eta: at or below this value no document supports the step; the paper's example."""

DELTA = 0.85
"""delta: from this value on a score is high; the paper's example."""

Over = Literal["retrieved", "not_neutral"]


def conflated(
    judged: Values, grounding: Grounding, eta: float = ETA, delta: float = DELTA, over: Over = "retrieved"
) -> list[bool | Undefined]:
    """Say of each step whether it is (eta, delta)-conflated: R(s_t) >= delta and max_d f_NLI(s_t | d) <= eta.

    Args:
        judged: R, the score under test, one a step in [0, 1]: a judge's, or a channel that reads no evidence. The gated
            reward of Eq. 2 can't be conflated where delta > (1 + eta) / 2 and `fact` is gated at tau > (1 + eta) / 2.
        grounding: What the documents say of the steps.
        eta: Below 0.
        delta: In (0, 1].
        over: "retrieved" is the paper's form, the maximum over all documents; "not_neutral" (ours) over those that
            entail or contradict.

    Returns:
        One value a step. Undefined if the score or the grounding is, or if the set of documents is empty.

    Raises:
        ArgumentError: An argument is out of range, or scores and grounding differ in length.
    """
    if not eta < 0 < delta <= 1:
        raise ArgumentError(f"eta and delta must satisfy eta < 0 < delta <= 1; got eta={eta} and delta={delta}.")
    if over not in get_args(Over):
        raise ArgumentError(f"over must be {' or '.join(get_args(Over))}; got {over!r}.")
    scores = Scores.of(judged, "judged", 0, 1)
    best = _best(grounding) if over == "retrieved" else grounding.best_of_those_that_speak()
    verdicts = each(lambda score, most: (score >= delta) & (most <= eta), scores, best)
    return [verdict if isinstance(verdict, Undefined) else bool(verdict) for verdict in verdicts]


def _best(grounding: Grounding) -> Scores:
    """`grounding.best()`, but undefined without documents, which have no maximum."""
    best, empty = grounding.best(), ~grounding.retrieved.any(axis=1)
    reasons = {int(at): "no document was retrieved" for at in np.flatnonzero(empty)}
    return Scores(best.numbers, best.defined & ~empty, {**reasons, **best.reasons})
