"""A judge that answers the question alone, and prefers the candidate that its answer contains: derive, then match.

It sees neither candidates nor evidence, so no candidate can sway it. It abstains if no candidate matches.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from eldgr_dspy.answers import class_key
from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.programs.fencing import fence
from eldgr_dspy.programs.judges.counting import abstained
from eldgr_dspy.programs.judges.repeated_calls import answers_of
from eldgr_dspy.programs.one_call import OneCall
from eldgr_dspy.signatures import AnswerQuestion
from eldgr_dspy.words import TASKS


class DerivedJudge(OneCall):
    """Answers the question, then prefers the candidate that this answer contains: the longest, then the earliest.

    A candidate's answer is contained if it occurs as an answer must occur in evidence (as whole words, folded), or if
    both answers are of one class.
    """

    signature = AnswerQuestion

    def show(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dict[str, Any]:
        """Return the question alone."""
        return {"question": fence(question).question}

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return `preferred` and `judge_rationale`, or `abstained` with the reason."""
        return _matched(reply.own_answer, inputs["candidates"])


def _matched(own: str, candidates: Sequence[str]) -> dspy.Prediction:
    if not own.strip():
        return abstained("it knows no answer")
    answers = answers_of(candidates)
    contained = [index for index, answer in enumerate(answers) if _contains(own, answer)]
    if not contained:
        return dspy.Prediction(
            abstained="its own answer contains none of the candidates' answers", own_answer=own, orders=[]
        )
    # Of several longest ones this is the earliest.
    longest = max(contained, key=lambda index: len(class_key(answers[index], "retrieval") or ""))
    return dspy.Prediction(preferred=longest, judge_rationale=f"its own answer is: {own}", orders=[])


def _contains(own: str, answer: str) -> bool:
    alike = any((key := class_key(answer, task)) is not None and key == class_key(own, task) for task in TASKS)
    return alike or certify(answer, [Passage("", own)]).certified is True
