"""Runs beside runs, and beside the paper: arms, seeds, ablations, and the paper's tables with its published numbers."""
