"""Cut a reasoning into slices of similar length."""

import re


def slices_of(text: str, size: int) -> list[str]:
    """Cut a text into slices of at most `size` tokens, at line ends where possible.

    A token is a run of characters without white space, not one of a model's tokens. Joined, the slices are the text,
    and each has a token. A slice takes as many whole lines as fit. A line with more than `size` tokens begins a slice
    and is cut between words. A text without tokens has no slices. Source: ours.
    """
    slices: list[list[str]] = []
    count = size
    for line in re.findall(r"[^\n]*\n|[^\n]+", text) if text.strip() else ():
        for piece, tokens in _pieces(line, size):
            if not slices or count + tokens > size:
                slices.append([])
                count = 0
            slices[-1].append(piece)
            count += tokens
    return ["".join(pieces) for pieces in slices]


def _pieces(line: str, size: int) -> list[tuple[str, int]]:
    """Return a line, or parts of it if it is too long, each with its number of tokens."""
    words = re.findall(r"\s*\S+(?:\s+\Z)?", line)
    if len(words) <= size:
        return [(line, len(words))]
    parts = [words[start : start + size] for start in range(0, len(words), size)]
    return [("".join(part), len(part)) for part in parts]
