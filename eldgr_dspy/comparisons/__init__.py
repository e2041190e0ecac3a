"""Compare finished runs with each other: two runs, several, and seeds."""
