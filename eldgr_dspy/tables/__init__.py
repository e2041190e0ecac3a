"""Figures as tables of plain text: cells without colour, markup or layout, for the terminal and the report alike."""
