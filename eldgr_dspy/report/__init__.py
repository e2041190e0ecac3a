"""Figures as people read them: tables for terminal, Markdown and LaTeX, plots, and the two pages of a run in HTML.

Nothing is computed here that is not in the figures; all text of pools and LMs is data.
"""
