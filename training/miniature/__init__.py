"""The paper in miniature: `python -m eldgr_dspy.training.miniature` goes from generated questions to its tables.

It is made so that the whole way can be gone on a processor, in minutes, with no model or data from elsewhere. What it
shows holds for a tiny policy and a made-up task, and for nothing else.
"""
