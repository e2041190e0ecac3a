"""Compare finished runs with each other and with the paper: two runs, seeds, ablations, and the paper's tables."""
