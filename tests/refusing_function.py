"""Functions that a user may give as `refusals`, found by name."""


def hedges(answer: str) -> bool:
    """Say whether an answer tells that it does not know, anywhere in it."""
    return "don't know" in answer
