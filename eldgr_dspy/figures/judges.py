"""The named judges of a run side by side: the accuracy of each alone and under the lock, and how it judges.

The tests, locked minus alone for each judge, are in `contrasts` of `summary.json`. Everything here is descriptive. An
undefined value is None, never 0.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypedDict

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation, Reply, Verdict
from eldgr_dspy.figures.effects import EffectMarks
from eldgr_dspy.figures.results.summary import Measured
from eldgr_dspy.named_judges import judge_in
from eldgr_dspy.statistics import contrast_of_units, proportion_upper_bound

_TAIL = 0.975
_OURS = "eldgr_dspy.programs."


class JudgeMarks(NamedTuple):
    """What the figures need of a named judge on a question; its calls and tokens are kept with those of the rules.

    Attributes:
        outcome: How the consultation ended; empty if the judge was not asked.
        lacks: Why the question does not apply to it; empty if it does.
        recovered: Whether it prefers a right answer, where consensus is wrong and a candidate is right; else None.
        tied: Whether several answers share its highest score; None without scores.
        discriminated: How often a right candidate scores above a wrong one, equal scores as half; None without pairs.
    """

    outcome: str = ""
    lacks: str = ""
    recovered: bool | None = None
    tied: bool | None = None
    discriminated: float | None = None


def judge_marks(
    case: Case, entry: Consultation | None, reply: Reply | None, right: Callable[[str | None], bool] | None
) -> JudgeMarks:
    """Return the marks of a judge on a question.

    Args:
        case: The question. entry: its consultation, None if it was not asked. reply: what it said.
        right: Whether an answer is right; None without a gold answer.
    """
    question, classes = case.question, case.vote.classes
    recoverable = right is not None and not right(case.consensus) and any(map(right, question.answers))
    verdict = reply if isinstance(reply, Verdict) else None
    recovered = right(case.stated(verdict) if verdict else None) if recoverable and right is not None else None
    if entry is None:
        return JudgeMarks(recovered=recovered)
    if verdict is None:
        outcome = "failed" if entry.outcome == "failed" else "abstained"
        why = entry.abstention
        lacks = why.text if why is not None and why.kind == "not applicable" else ""
        return JudgeMarks(outcome, lacks, recovered)
    if verdict.scores is None:
        return JudgeMarks(entry.outcome, "", recovered)
    scored = [(score, key) for score, key in zip(verdict.scores, classes, strict=True) if key is not None]
    highest = max(score for score, _ in scored)
    tied = len({key for score, key in scored if score == highest}) > 1
    rated = zip(verdict.scores, question.answers, classes, strict=True)
    judged = [(score, right(answer)) for score, answer, key in rated if key is not None] if right is not None else []
    above, below = ([score for score, holds in judged if holds is of] for of in (True, False))
    pairs = [(high > low) + (high == low) / 2 for high in above for low in below]
    return JudgeMarks(entry.outcome, "", recovered, tied, sum(pairs) / len(pairs) if pairs else None)


# -- figures ----------------------------------------------------------------------------------------------------------


def judge_lacks(marks: Mapping[JudgeMarks, int]) -> str | None:
    """Return why a judge applies to no question of the pool, the most frequent reason; None if it applies to any."""
    asked = sum(n for of, n in marks.items() if of.outcome)
    reasons = Counter[str]()
    for of, n in marks.items():
        reasons[of.lacks] += n if of.lacks else 0
    never = asked > 0 and reasons.total() == asked
    return min(filter(None, reasons), key=lambda why: (-reasons[why], why)) if never else None


def judge_counts(marks: Mapping[JudgeMarks, int], effects: Mapping[EffectMarks, int]) -> dict[str, Any]:
    """Return how a judge judged, as `judges` of a pool has it, from its marks and those of its biases."""

    def measured(of: Iterable[tuple[Sequence[bool], int]]) -> Measured | None:
        known = [*of]
        return _share(sum(sum(one) * n for one, n in known), sum(len(one) * n for one, n in known))

    outcomes = Counter[str]()
    for one, n in marks.items():
        outcomes[one.outcome] += n
    return {
        "abstained": outcomes["abstained"],
        "failed": outcomes["failed"],
        "recovery": measured(((one.recovered,), n) for one, n in marks.items() if one.recovered is not None),
        "discrimination": _discrimination(marks),
        "score_ties": measured(((one.tied,), n) for one, n in marks.items() if one.tied is not None),
        "order_effect": measured((one.flips, n) for one, n in effects.items()),
    }


def _share(count: int, of: int) -> Measured | None:
    """The share in percent with its exact interval of 95 %; None if there is nothing to count."""
    if not of:
        return None
    most = proportion_upper_bound(of, count, level=_TAIL)
    least = 1.0 - proportion_upper_bound(of, of - count, level=_TAIL)
    return {"value": 100.0 * count / of, "ci": [100.0 * least, 100.0 * most], "of": of}


def _discrimination(marks: Mapping[JudgeMarks, int]) -> Measured | None:
    """The mean over questions with its bootstrap interval of 95 %."""
    shares = Counter[float]()
    for one, n in marks.items():
        if one.discriminated is not None:
            shares[one.discriminated] += n
    if not shares:
        return None
    interval = contrast_of_units({((share, 0.0),): n for share, n in shares.items()}).interval
    total = sum(Fraction(share) * n for share, n in shares.items())
    return {"value": float(total / shares.total()), "ci": list(interval), "of": shares.total()}


# -- what a run states of its judges ----------------------------------------------------------------------------------


class JudgeFacts(TypedDict):
    """What is known of a judge besides its replies.

    Attributes:
        gold_in_training: Whether it was made with right answers: trained, or given demonstrations.
        logprobs: Whether it needs log-probabilities.
        positioned: Whether it imitates a published system that was not rerun; such a judge is not tested.
    """

    gold_in_training: bool
    logprobs: bool
    positioned: bool


def judge_facts(heads: Iterable[Mapping[str, Any]]) -> dict[str, JudgeFacts]:
    """Return the facts of each named judge that was asked, from the lines of a journal that state its roles.

    A recording states none, nor does a module of a user's own without an attribute `facts`, nor a judge of ours that
    calls a user's function.
    """
    known: dict[str, JudgeFacts] = {}
    for head in heads:
        judge = judge_in(str(head["name"])) if head["kind"] == "role" else None
        facts = None if judge is None else _facts(head["details"])
        if judge is not None and facts is not None:
            known[judge] = facts
    return known


def _facts(details: Mapping[str, Any]) -> JudgeFacts | None:
    stated = details.get("facts")
    calls_function = any("source" in part for part in details.get("attributes", {}).values())
    if calls_function if str(details.get("module")).startswith(_OURS) else stated is None:
        return None
    gold, logprobs, positioned = (bool((stated or {}).get(name)) for name in JudgeFacts.__annotations__)
    shown = any(prompt.get("demos") for prompt in details.get("prompts", {}).values())
    return {"gold_in_training": gold or shown, "logprobs": logprobs, "positioned": positioned}
