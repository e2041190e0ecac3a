"""The aspects that a judge stated of each candidate, in the record of the channels: one step, the whole text.

A judge's aspects are an opinion on a whole candidate. They are not means over its steps.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from eldgr_dspy.channels.table import StepTable, score_steps
from eldgr_dspy.channels.undefined import Score, Undefined
from eldgr_dspy.programs.scoring.step_replies import SILENT, read_ordered, reason_to_abstain
from eldgr_dspy.words import CHANNELS, Channel


def judged_aspects(content: Mapping[str, Any], candidates: Sequence[str]) -> list[StepTable]:
    """Return the table of each candidate, in pool order, from its judge's reply.

    Args:
        content: The judge's output, as a journal or `eldgr_dspy.programs.consulting.ask` has it: `assessments` with
            the seven aspects, or `{"abstained": reason}`.
        candidates: The candidates as the judge was shown them.

    Returns:
        Tables of one step each. Every aspect is undefined if the judge abstained, gave no assessments, did not give one
        for each candidate, or gave one that is not from 0 to 1; a single one if it is null or missing.
    """
    n = len(candidates)
    if reason_to_abstain(content) is None and content.get("assessments") in (None, []):
        columns: Mapping[Channel, Sequence[Score]] = {name: [Undefined(SILENT)] * n for name in CHANNELS}
    else:
        columns = read_ordered(content, "assessments", n, {name: name for name in CHANNELS})
    scored = zip(candidates, score_steps(columns), strict=True)
    return [StepTable(text, ((0, len(text)),), (scores,)) for text, scores in scored]
