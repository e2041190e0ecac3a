"""The public strategies of `eldgr_dspy.testing`, and what they are made of, by the names that the tests use."""

from dataclasses import replace

from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.testing import FIELDS, answers, json_values, questions
from eldgr_dspy.testing import lm_contents as raw_contents

__all__ = ["FIELDS", "answers", "json_values", "questions", "quoting_questions", "raw_contents"]


@st.composite
def quoting_questions(draw: st.DrawFn) -> Question:
    """Questions whose passages hold the answers, or are nothing but a candidate's own text.

    The text "None" of a missing answer would be a refusal, of which the naive selectors know nothing.
    """
    question = draw(questions())
    names = [answer or "nobody" for answer in question.answers]
    texts = tuple(
        draw(st.sampled_from((f"So: {name}", answer or "", f" {name}")))
        for answer, name in zip(question.answers, names, strict=True)
    )
    sources = [Passage("", f"It was {name}, they say.") for name in names]
    sources += [Passage(draw(st.sampled_from(("", "T"))), text) for text in texts]
    passages = draw(st.lists(st.sampled_from(sources), max_size=3)) if sources else []
    return replace(question, texts=texts, passages=(*question.passages, *passages))
