"""Results for people: the two HTML pages of a run."""
