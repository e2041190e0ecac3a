"""A judge that scores one candidate a call, so that neither order nor the other candidates can sway a score.

The price is the comparison: it sees no rival, and coarse scores tie.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from eldgr_dspy.programs.judges.frames import RepeatedCalls, Rounds, about_each, answers_of, preferring, read_verdict
from eldgr_dspy.programs.lms.one_call import OneCall, Request
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.signatures import AssessCandidate, Scores, read_scores


class Assessor(OneCall):
    """Scores one candidate with one LM call: `assessment`, `candidate_rationale`."""

    signature = AssessCandidate

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return the scores of the assessment by aspect."""
        assessment: Any = reply.assessment
        scores = assessment.root if isinstance(assessment, Scores) else assessment
        return dspy.Prediction(assessment=read_scores(scores), candidate_rationale=reply.candidate_rationale)


class PointwiseJudge(RepeatedCalls):
    """Prefers the candidate with the highest scalar, each scored by itself.

        selector.judge = PointwiseJudge()

    Identical texts are asked once and share the score. If several have the highest scalar, the answer with more votes
    is preferred; with equal votes, the one given first: a tie leaves the default. Answers that vote together in either
    task are one. A candidate whose score is missing or out of range makes the whole an abstention, because it may have
    been the best. A reply that cannot be parsed is treated like a plain judge's.

    Attributes:
        assessor: (question, evidence, candidate) -> assessment (with `scalar`, from 0 to 1), candidate_rationale.
    """

    def __init__(self, assessor: dspy.Module | None = None) -> None:
        super().__init__()
        self.assessor: dspy.Module = Assessor() if assessor is None else assessor

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Ask for each distinct candidate."""
        about = {"question": question, "evidence": evidence}
        replies = yield from about_each(candidates, lambda one: [Request(self.assessor, {**about, "candidate": one})])
        contents = [content for (content,) in replies]
        return preferring(
            [_scalar(content, answer) for content, answer in zip(contents, answers_of(candidates), strict=True)],
            candidates,
            lambda index: contents[index].get("candidate_rationale"),
            assessments=[content.get("assessment") for content in contents],
        )


def _scalar(content: Mapping[str, Any], answer: str) -> float | Abstention:
    """Return the scalar of one candidate's assessment, or why there is none; checked like any judge's score."""
    alone = {"preferred": 0, "assessments": [content.get("assessment")]}
    reply = read_verdict(content if "abstained" in content else alone, [answer or "-"], 0)
    if isinstance(reply, Abstention):
        return reply
    if reply.scores is None:
        return Abstention(reply.remark, "invalid") if reply.remark else Abstention("there is no scalar")
    return reply.scores[0]
