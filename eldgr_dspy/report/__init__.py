"""Results for people: the two HTML pages of a run.

Every number comes from the run's results; all text of pools and LMs is data.
"""
