"""Ballots for judges that ask no LM: which candidates vote together, and what is stated of each."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.programs.judges.counting_judges import WEIGHINGS
from eldgr_dspy.rule.ballots import Ballot, Logprobs, Statement

READS: Mapping[str, str] = {name: f"{name}:s" if of.column == "scores" else name for name, of in WEIGHINGS.items()}
"""A formula for each name, with `s` as the name of the score."""


def ballot(
    classes: str, statements: Sequence[Statement] = (), question: str = "Which?", texts: Sequence[str] | None = None
) -> Ballot:
    """A ballot with a letter for each candidate's class, `-` for one that does not vote."""
    keys = tuple(None if letter == "-" else letter for letter in classes)
    replies = tuple(texts) if texts is not None else tuple(f"I say {key}" for key in keys)
    result = tuple(statements) or (Statement(),) * len(keys)
    return Ballot(question, (Passage("T", "Some text."),), replies, keys, keys, result)


def stating(formula: str, value: Any) -> Statement:
    if value is None:
        return Statement()
    column = WEIGHINGS[formula.partition(":")[0]].column
    if column == "logprobs":
        return Statement(logprobs=Logprobs(probability=value))
    return Statement(confidence=value) if column == "confidence" else Statement(scores={"s": value})


def stated_by(formula: str, classes: str, values: Sequence[Any]) -> Ballot:
    return ballot(classes, [stating(formula, value) for value in values])


def majority(pool: Ballot) -> str | None:
    """The class with most votes, the earliest of several."""
    votes = [key for key in pool.classes if key is not None]
    return max(dict.fromkeys(votes), key=votes.count, default=None)


@st.composite
def classes(draw: st.DrawFn, least: int = 0, letters: str = "aaabbc-") -> str:
    return "".join(draw(st.lists(st.sampled_from(letters), min_size=least, max_size=6)))


def shuffle(n: int, seed: int) -> list[int]:
    order = [*range(n)]
    random.Random(seed).shuffle(order)
    return order
