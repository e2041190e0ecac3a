"""What a run comes to, as numbers: scores, contrasts, the decision audit, authority bounds, the judge's record.

Nothing here asks an LM or writes for people; `eldgr_dspy.report` shows these figures, `eldgr_dspy.comparisons` sets
those of several runs side by side.
"""
