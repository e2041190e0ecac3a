"""The one way of a request to an LM: a limit admits it, a meter counts it, and it is sent again where that may help.

`retrying` has the loop that every such LM runs, whether a call of a `Selector` has a deadline (`with_limit`) or a run
meters it (`metered_lms`). `limits` says what a run may still send, and `metering` what a consultation took.
"""
