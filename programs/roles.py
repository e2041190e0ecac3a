"""The three roles that an LM may play, each asking one signature. Their outputs have the names of the journal."""

from collections.abc import Mapping
from typing import Any

import dspy

from eldgr_dspy.programs.lms.fencing import restore
from eldgr_dspy.programs.lms.one_call import OneCall
from eldgr_dspy.signatures import DeriveAnswer, JudgeCandidates, RepairAnswer, read_scores


class Judge(OneCall):
    """Scores every candidate and prefers one: `assessments`, `preferred` (counted from 0), `judge_rationale`."""

    signature = JudgeCandidates

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return the verdict, with the scores of each assessment by aspect."""
        content = super().read(reply, inputs)
        if isinstance(content.assessments, list):
            content.assessments = [read_scores(row) for row in content.assessments]
        return content


class Deriver(OneCall):
    """Solves a question by executable steps: `derivation_steps`, `derived_answer`, `consistency_check`."""

    signature = DeriveAnswer


class Repairer(OneCall):
    """Copies the shortest answering span: `repaired_answer`, `repair_passage` (counted from 0; -1 if there is none)."""

    signature = RepairAnswer

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return the span as it is in the evidence, without what fencing defused."""
        content = super().read(reply, inputs)
        if isinstance(content.repaired_answer, str):
            content.repaired_answer = restore(content.repaired_answer)
        return content
