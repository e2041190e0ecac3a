"""Conflation (Eq. 1) and the rate of unsupported steps: a high score although the evidence contradicts the step.

Both are relative to the retrieved documents. In the paper's form, *every* retrieved document must contradict the step:
one neutral document makes the maximum 0, so that the test cannot fire. It still can over the documents that are not
neutral.
"""

from typing import Literal, get_args

import numpy as np

from eldgr_dspy.channels.grounding import Grounding
from eldgr_dspy.channels.undefined import Score, Scores, Undefined, Values, each
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.questions import require_one_of

ETA = -0.8  # eta: at or below this value no document supports the step; the paper's example
DELTA = 0.85  # delta: from this value on a score is high; the paper's example

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
    require_one_of("over", over, get_args(Over))
    scores = Scores.of(judged, "judged", 0, 1)
    if over == "retrieved":
        best, empty = grounding.best(), ~grounding.retrieved.any(axis=1)  # without documents there is no maximum
        reasons = {int(at): "no document was retrieved" for at in np.flatnonzero(empty)}
        best = Scores(best.numbers, best.defined & ~empty, {**reasons, **best.reasons})
    else:
        best = grounding.best_of_those_that_speak()
    verdicts = each(lambda score, most: (score >= delta) & (most <= eta), scores, best)
    return [verdict if isinstance(verdict, Undefined) else bool(verdict) for verdict in verdicts]


def unsupported_rate(grounding: Grounding, eta: float = ETA) -> Score:
    """E[U_t], U_t = 1[max_d f_NLI(s_t | d) <= eta]: the share of steps that no document supports.

    Steps without a corpus are left out; a step without retrieved documents is neutral, as in `fact`.

    Args:
        grounding: What the documents say of the steps.
        eta: In [-1, 1]; Eq. 1 has it below 0.

    Returns:
        A share in [0, 1]; undefined if no step is measured.

    Raises:
        ArgumentError: `eta` is out of range.
    """
    if not -1 <= eta <= 1:
        raise ArgumentError(f"eta must be a number from -1 to 1, as f_NLI is; got {eta}.")
    best = grounding.best()
    return Scores((best.numbers <= eta).astype(np.float64), best.defined, best.reasons).mean()
