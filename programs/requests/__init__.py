"""Every request to an LM takes one way: a limit admits it, a meter counts it, and it is resent where that may help."""
