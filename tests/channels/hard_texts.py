"""Pieces of texts that are hard to take apart, to draw from."""

PIECES = (
    "Step 1: ", "**Step 2:** ", "1. ", "2) ", "(3) ", "\n", "\n\n", "\r\n", "\r", " ", "#### 18", "A: 18", "It is 5.",
    "```", "~~~", "```python\nx = 1\n```", "\\[", "\\]", "$$", "\\begin{a}", "\\end{a}", "\\(", "\\)", "Dr. Who", "3.5",
    "Paris is old.", "Is it? Yes!", "北京。", "\u200b", "\x00", "\ud800", "Finish[x]", "\\boxed{3}",
)  # fmt: skip
