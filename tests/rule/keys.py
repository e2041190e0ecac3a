"""The key of the class of an answer, which is what the tests of answers compare."""

from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.words import Task


def key(text: str | None, task: Task = "retrieval") -> str | None:
    found = answer_class(text, task)
    return None if found is None else found.key
