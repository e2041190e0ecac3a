"""Which texts are the same answer, and where an answer occurs in a passage."""
