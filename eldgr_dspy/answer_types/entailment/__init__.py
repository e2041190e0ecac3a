"""What an NLI model reads of answers, claims and passages; see `eldgr_dspy.answer_types.free_text`."""
