"""The named judges of a run: how they replied, and what a run states of them. An undefined value is None, never 0."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypedDict

from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.rule.named_judges import judge_in

_OURS = "eldgr_dspy.programs."


class JudgeMarks(NamedTuple):
    """How the consultation of a named judge on a question ended; empty if it was not asked.

    Attributes:
        lacks: Why the question does not apply to it; empty if it does.
    """

    outcome: str = ""
    lacks: str = ""


def judge_marks(entry: Consultation | None, *, usable: bool) -> JudgeMarks:
    """Return the marks of a judge on a question from its consultation; `usable` says whether its reply is a verdict."""
    if entry is None or usable:
        return JudgeMarks(entry.outcome if entry else "")
    why = entry.abstention
    lacks = why.text if why is not None and why.kind == "not applicable" else ""
    return JudgeMarks("failed" if entry.outcome == "failed" else "abstained", lacks)


def judge_lacks(marks: Mapping[JudgeMarks, int]) -> str | None:
    """Return why a judge applies to no question of the pool, the most frequent reason; None if it applies to any."""
    total = sum(n for of, n in marks.items() if of.outcome)
    reasons = Counter[str]()
    for of, n in marks.items():
        reasons[of.lacks] += n if of.lacks else 0
    never = total > 0 and reasons.total() == total
    return min(filter(None, reasons), key=lambda why: (-reasons[why], why)) if never else None


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
    facts_by_judge: dict[str, JudgeFacts] = {}
    for head in heads:
        judge = judge_in(str(head["name"])) if head["kind"] == "role" else None
        facts = None if judge is None else _facts(head["details"])
        if judge is not None and facts is not None:
            facts_by_judge[judge] = facts
    return facts_by_judge


def _facts(details: Mapping[str, Any]) -> JudgeFacts | None:
    own = details.get("facts")
    calls_function = any("source" in part for part in details.get("attributes", {}).values())
    if calls_function if str(details.get("module")).startswith(_OURS) else own is None:
        return None
    gold, logprobs, positioned = (bool((own or {}).get(name)) for name in JudgeFacts.__annotations__)
    has_demos = any(prompt.get("demos") for prompt in details.get("prompts", {}).values())
    return {"gold_in_training": gold or has_demos, "logprobs": logprobs, "positioned": positioned}
