"""What a run states of its named judges besides their replies: what they were made with, and what they need."""

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from eldgr_dspy.named_judges import judge_in

_OURS = "eldgr_dspy.programs."


class JudgeFacts(TypedDict):
    """What is known of a judge.

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
