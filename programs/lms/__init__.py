"""How an LM is asked: which LM, for which role, and with which prompt."""
