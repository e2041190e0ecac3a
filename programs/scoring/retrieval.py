"""Any DSPy retriever as a source of documents."""

import math
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from threading import Lock
from typing import Any

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.overlap import units
from eldgr_dspy.channels.protocols import Hit
from eldgr_dspy.errors import ArgumentError, result_of
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.programs.scoring.bm25 import require_search

_NUMBERING = Lock()  # of all retrievers, because a lock of their own could not be copied


class DSPyRetriever:
    """Any DSPy retriever as a `Retriever`: one call a query, and a corpus that is known only as far as it was found.

    Its order is kept. If its prediction has `scores`, as that of `dspy.retrievers.EmbeddingsWithScores`, they are the
    scores, and documents with a score of 0 or less are dropped as everywhere. Otherwise the documents score 1, 1/2, 1/3
    and so on, which says nothing but their order. Leave out scores that are distances.

    Args:
        search: Takes a query and returns a prediction with `passages`, or a list of strings, mappings or objects with a
            text (`text`, `long_text`) and perhaps a `title`. How many it returns is its own setting, as in
            `dspy.Retrieve(k=5)`; any beyond the number asked for are dropped.

    Attributes:
        documents: Those found so far, each once; the list grows with every search, and no number changes.

    Raises:
        ArgumentError: `search` cannot be called.
    """

    def __init__(self, search: Callable[[str], Any]) -> None:
        if not callable(search):
            raise ArgumentError(f"search must be a function or module of the query; got {search!r:.80}.")
        self._search = search
        self.documents: list[Passage] = []
        self._numbers: dict[Passage, int] = {}

    def search(self, queries: Sequence[str], k: int = 5) -> list[list[Hit]]:
        """Return at most k documents for each query, best first; a query without a word is not asked and finds nothing.

        Raises:
            ArgumentError: `queries` is not a list of strings, k not a whole number from 1, or what the retriever
                returned is not documents, best first. What the retriever itself raises comes through.
        """
        require_search(queries, k)
        return [self._find(query, k) if units(query) else [] for query in queries]

    def _find(self, query: str, k: int) -> list[Hit]:
        result = result_of(self._search(query), "search", "give one that is not")
        try:
            if result is None:
                raise ArgumentError("it is None; return an empty list if nothing was found.")
            passages = to_passages(result)
            scores = _scores(result, len(passages))
        except ArgumentError as error:
            raise ArgumentError(f"The retriever's result for {query!r:.80} cannot be used: {error}") from None
        matching: dict[Passage, float] = {}
        for passage, score in zip(passages, scores, strict=True):
            if score > 0 and (passage.text.strip() or passage.title.strip()):
                matching.setdefault(passage, score)
        return [Hit(self._number(passage), score) for passage, score in islice(matching.items(), k)]

    def _number(self, passage: Passage) -> int:
        with _NUMBERING:
            number = self._numbers.setdefault(passage, len(self.documents))
            if number == len(self.documents):
                self.documents.append(passage)
        return number


def _scores(result: Any, n: int) -> list[float]:
    """Return the scores of a prediction; without scores, the reciprocal of each document's place."""
    values = result.get("scores") if isinstance(result, dspy.Prediction) else None
    if values is None:
        return [1 / place for place in range(1, n + 1)]
    try:
        scores = [float(score) for score in values]
    except (TypeError, ValueError):
        scores = [math.nan]
    if len(scores) != n or not all(map(math.isfinite, scores)) or any(a < b for a, b in pairwise(scores)):
        raise ArgumentError(f"scores must be a finite number for each of {n} passages, best first; got {values!r:.80}.")
    return scores
