"""Lines that say nothing, such as "Hmm.", apart from the lines that have steps.

The mean over the steps must not depend on them. Left in the text, they could change how it is split: sentences of one
line become one step as soon as there is a second line. So they are cut out and counted.
"""

import re
from collections.abc import Iterator

from eldgr_dspy.channels.blocks import blocks
from eldgr_dspy.channels.steps import LONGEST, Step, split_steps, unmeasurable

_LINE = re.compile(r"[^\r\n]+(?:\r\n|\r|\n)?|\r\n|\r|\n")


def without_padding(text: str) -> tuple[list[tuple[str, int]], int]:
    """Return the lines of a text without padding, each with its offset, and the number of lines of padding."""
    # Padding is a line outside of code and LaTeX that cannot be scored, having one word or none, and a marker such as
    # "Step 3:" that no line follows before the next marker or the end. Blank lines and the answer's line stay.
    answer = split_steps(text, most=len(text) + 1).answer
    at = -1 if answer is None else answer.end - len(answer.text.lstrip())
    rest, padding = list[tuple[str, int]](), 0
    introduces = False  # whether the next line, seen from the end, has something that a marker introduces
    for start, line, inside in reversed(list(_lines(text))):
        says = inside or unmeasurable(line.strip()[:LONGEST]) is None  # a longer line is split into sentences
        states = start <= at < start + len(line)
        marks = not inside and not Step(0, len(line), line).content
        if line.strip() and not states and not (introduces if marks else says):
            padding += 1
            continue
        rest.append((line, start))
        introduces = introduces if not line.strip() else says and not marks and not states
    if padding and not any(line.strip() for line, _ in rest):
        # The text has nothing else, so its first line is kept.
        return [next((line, start) for start, line, _ in _lines(text) if line.strip())], padding - 1
    return rest[::-1], padding


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield where each line starts, the line, and whether it is part of a block."""
    whole, at = blocks(text), 0
    for match in _LINE.finditer(text):
        while at < len(whole) and whole[at][1] <= match.start():
            at += 1
        yield match.start(), match.group(), at < len(whole) and whole[at][0] < match.end()
