"""How an LM is asked: which LM, for which role, with which prompt, and what a call costs."""
