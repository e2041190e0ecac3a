"""The results of a run as numbers: scores, contrasts, the decision audit, authority bounds, the judge's record."""
