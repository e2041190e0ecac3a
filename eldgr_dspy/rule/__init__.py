"""What the rule in `decision.py` goes by: questions, votes, consultations, replies, cases and certificates."""
