"""The three roles that an LM may play, each a small named Module around one signature.

A role fences its inputs, asks once, and returns plain JSON values under the names that journals and replays use. It
checks no range and catches no error: `eldgr_dspy.replies` does the first, the driver of the rule the second. Each
role's LM is unbound, so that `dspy.configure`, `dspy.context` and `set_lm` all reach it.
"""

from collections.abc import Sequence
from typing import Any

import dspy
from pydantic import BaseModel

from eldgr_dspy.programs.engines.strict import strict_parsing
from eldgr_dspy.programs.fencing import fence, restore
from eldgr_dspy.signatures import DeriveAnswer, JudgeCandidates, RepairAnswer, read_scores


class Judge(dspy.Module):
    """Scores every candidate and prefers one: `assessments`, `preferred` (counted from 0), `judge_rationale`."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(JudgeCandidates)

    def forward(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dspy.Prediction:
        """Ask once.

        Raises:
            dspy.AdapterParseError: The reply cannot be read.
            dspy.LMError: The request failed.
        """
        with strict_parsing():
            return _verdict(self.predict(**_judged(question, evidence, candidates)))

    async def aforward(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        with strict_parsing():
            return _verdict(await self.predict.acall(**_judged(question, evidence, candidates)))

    def most_calls(self, candidates: Sequence[str]) -> int:
        """Return 1: one call for any candidates."""
        return 1


class Deriver(dspy.Module):
    """Solves a question by executable steps: `derivation_steps`, `derived_answer`, `consistency_check`."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(DeriveAnswer)

    def forward(self, *, question: str) -> dspy.Prediction:
        """Ask once.

        Raises:
            dspy.AdapterParseError: The reply cannot be read.
            dspy.LMError: The request failed.
        """
        with strict_parsing():
            return _content(DeriveAnswer, self.predict(question=fence(question).question))

    async def aforward(self, *, question: str) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        with strict_parsing():
            return _content(DeriveAnswer, await self.predict.acall(question=fence(question).question))

    def most_calls(self, candidates: Sequence[str]) -> int:
        """Return 1: one call for any candidates."""
        return 1


class Repairer(dspy.Module):
    """Copies the shortest answering span: `repaired_answer`, `repair_passage` (counted from 0; -1 if there is none)."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(RepairAnswer)

    def forward(self, *, question: str, evidence: Sequence[str]) -> dspy.Prediction:
        """Ask once; a field marker that fencing defused is returned as it is in the evidence.

        Raises:
            dspy.AdapterParseError: The reply cannot be read.
            dspy.LMError: The request failed.
        """
        with strict_parsing():
            return _repair(self.predict(**_repaired(question, evidence)))

    async def aforward(self, *, question: str, evidence: Sequence[str]) -> dspy.Prediction:
        """Do the same as `forward`, without blocking."""
        with strict_parsing():
            return _repair(await self.predict.acall(**_repaired(question, evidence)))

    def most_calls(self, candidates: Sequence[str]) -> int:
        """Return 1: one call for any candidates."""
        return 1


def _judged(question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dict[str, Any]:
    fenced = fence(question, evidence, candidates)
    return {"question": fenced.question, "evidence": fenced.evidence, "candidates": fenced.candidates}


def _verdict(prediction: dspy.Prediction) -> dspy.Prediction:
    content = _content(JudgeCandidates, prediction)
    if isinstance(content.assessments, list):
        content.assessments = [read_scores(row) for row in content.assessments]
    return content


def _repaired(question: str, evidence: Sequence[str]) -> dict[str, Any]:
    fenced = fence(question, evidence)
    return {"question": fenced.question, "evidence": fenced.evidence}


def _repair(prediction: dspy.Prediction) -> dspy.Prediction:
    content = _content(RepairAnswer, prediction)
    if isinstance(content.repaired_answer, str):
        content.repaired_answer = restore(content.repaired_answer)
    return content


def _content(signature: Any, prediction: dspy.Prediction) -> dspy.Prediction:
    """Return the signature's outputs alone, as plain JSON values."""
    return dspy.Prediction(**{name: _plain(prediction[name]) for name in signature.output_fields})


def _plain(value: Any) -> Any:
    """A field's value without models; a hint may be any JSON, however deep."""
    if isinstance(value, list):
        return [item.model_dump(mode="json") if isinstance(item, BaseModel) else item for item in value]
    return value
