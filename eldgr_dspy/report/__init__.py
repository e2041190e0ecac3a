"""Results for people: plots, and the two HTML pages of a run.

Every number comes from the run's results; all text of pools and LMs is data.
"""
