"""NLI models and retrievers that do what a test says."""

from collections.abc import Callable, Sequence
from typing import Literal
from zlib import crc32

import numpy as np

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Hit
from eldgr_dspy.channels.undefined import Floats

Says = Literal["contradiction", "neutral", "entailment", "nothing"]

PROBABILITIES: dict[Says, tuple[float, float, float]] = {
    "contradiction": (0.98, 0.01, 0.01),
    "neutral": (0.02, 0.96, 0.02),
    "entailment": (0.01, 0.01, 0.98),
    "nothing": (np.nan, np.nan, np.nan),
}


def always_neutral(premise: str, hypothesis: str) -> Says:
    return "neutral"


class Reader:  # an NLI model that says of each pair what a function says, and keeps what it was asked
    name = "reader"

    def __init__(self, says: Callable[[str, str], Says] = always_neutral) -> None:
        self.says = says
        self.calls: list[list[tuple[str, str]]] = []

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [pair for call in self.calls for pair in call]

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        self.calls.append(list(pairs))
        return np.array([PROBABILITIES[self.says(*pair)] for pair in pairs]).reshape(-1, 3)


def by_chance(*kinds: Says) -> Callable[[str, str], Says]:
    """Something of its own for every pair, and always the same."""
    return lambda premise, hypothesis: kinds[crc32(f"{premise}\0{hypothesis}".encode("utf-8", "replace")) % len(kinds)]


class Everything:  # a retriever that finds every document for every query, in order, and keeps what it was asked
    def __init__(self, *documents: Passage) -> None:
        self.documents = documents
        self.queries: list[str] = []

    def search(self, queries: Sequence[str], k: int = 5) -> list[list[Hit]]:
        self.queries += queries
        return [[Hit(at, 1.0) for at in range(len(self.documents))][:k] for _ in queries]
