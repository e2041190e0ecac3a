"""An LM that scores steps as it is asked to, by the schema of the request: what the tests of the LM's way share."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import dspy
from dspy.lm15 import Request

from eldgr_dspy.certificates import Passage
from eldgr_dspy.programs.scoring.channel_scorer import ChannelScorer
from eldgr_dspy.programs.testing import ScriptedLM, scripted_lm
from eldgr_dspy.words import CHANNELS
from tests.selecting import awaiting

QUESTION = "What is the capital of Qatar?"
TEXT = "Qatar lies on the Persian Gulf. Its capital is Doha. So the answer is Doha.\n#### Doha"
PASSAGES = [{"title": "Qatar", "text": "Doha is the capital of Qatar."}]
INPUTS: dict[str, Any] = {"question": QUESTION, "reasoning": TEXT, "evidence": PASSAGES}
DOCUMENTS = (Passage("Qatar", "Doha is the capital of Qatar."),)

_STEP = re.compile(r"<step (\d+) [b-z]{8,}>")


def shown_steps(request: Request) -> list[int]:
    return [int(number) for number in _STEP.findall(request.messages[-1].text or "")]


def fields(entries: Any) -> dict[str, Any]:
    return {"step_rationale": "So it stands.", "step_scores": entries}


def entry(step: Any, score: Any) -> dict[str, Any]:
    """One entry: a score, or by channel."""
    scores: Mapping[Any, Any] = score if isinstance(score, Mapping) else dict.fromkeys(CHANNELS, score)
    return {"step": step, **scores}


def obliging(score: Callable[[int], Any] = lambda step: step / 10, **options: Any) -> ScriptedLM:
    """An LM that gives each step its score, or its scores by channel."""

    def reply(request: Request) -> str:
        return json.dumps(fields([entry(step, score(step)) for step in shown_steps(request)]))

    return scripted_lm(reply, **options)


def scores_of(lm: Any, scorer: ChannelScorer | None = None, **inputs: Any) -> dict[str, Any]:
    """The prediction's fields, which sync and async agree on."""
    scorer = scorer or ChannelScorer()
    with dspy.context(lm=lm):
        result: dict[str, Any] = scorer(**{**INPUTS, **inputs}).toDict()
        assert awaiting(scorer.acall)(**{**INPUTS, **inputs}).toDict() == result
    return result


def channels_of(result: dict[str, Any], step: int = 0) -> Any:
    return result["steps"][step]["channels"]


def reasons_of(result: dict[str, Any], step: int = 0) -> dict[str, str]:
    return {name: why for name, why in result["steps"][step]["undefined"].items() if name in CHANNELS}
