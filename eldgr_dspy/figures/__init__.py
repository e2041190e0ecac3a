"""The results of a run as numbers: scores, contrasts, the decision audit, authority bounds, the judge's record.

Nothing here asks an LM or writes for people; `eldgr_dspy.report` shows these results, and `eldgr_dspy.comparisons`
compares those of several runs.
"""
