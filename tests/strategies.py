"""The public strategies of `eldgr_dspy.testing`, and what they are made of, by the names that the tests use."""

from eldgr_dspy.strategies import FIELDS, answers, json_values, questions
from eldgr_dspy.strategies import lm_contents as raw_contents

__all__ = ["FIELDS", "answers", "json_values", "questions", "raw_contents"]
