"""The paper in miniature: `python -m eldgr_dspy.training.miniature` runs from generated questions to its tables.

It runs from start to end on a processor, in minutes, without a model or data from elsewhere. Its results hold for a
tiny policy and a made-up task, and for nothing else.
"""
