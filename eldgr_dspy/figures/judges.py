"""The named judges of a run: to which a pool applies, and what a run states of them. An undefined value is None."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from eldgr_dspy.figures.decided_rows import ReplyMarks
from eldgr_dspy.figures.distinct import counts_by
from eldgr_dspy.rule.named_judges import judge_in

_OURS = "eldgr_dspy.programs."


def judge_lacks(marks: Counter[ReplyMarks]) -> str | None:
    """Return why a judge applies to no question of the pool, the most frequent reason; None if it applies to any."""
    reasons = counts_by(marks, lambda of: of.lacks)
    return None if "" in reasons else min(reasons, key=lambda why: (-reasons[why], why), default=None)


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
    details = {judge: of["details"] for of in heads if of["kind"] == "role" and (judge := judge_in(str(of["name"])))}
    return {judge: facts for judge, of in details.items() if (facts := _facts(of)) is not None}


def _facts(details: Mapping[str, Any]) -> JudgeFacts | None:
    own = details.get("facts")
    calls_function = any("source" in part for part in details.get("attributes", {}).values())
    if calls_function if str(details.get("module")).startswith(_OURS) else own is None:
        return None
    gold, logprobs, positioned = (bool((own or {}).get(name)) for name in JudgeFacts.__annotations__)
    has_demos = any(prompt.get("demos") for prompt in details.get("prompts", {}).values())
    return {"gold_in_training": gold or has_demos, "logprobs": logprobs, "positioned": positioned}
