"""Mathematical expressions, compared in a process with limits; see `eldgr_dspy.answer_types.math`."""
