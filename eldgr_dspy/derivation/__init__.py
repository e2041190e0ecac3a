"""Exact arithmetic: amounts, traced calculations, and whether one is independent of its answer."""
