"""BM25 by bm25s, an extra: the same documents, order and scores as `BM25`, for corpora too large for it."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.bm25 import K1, B
from eldgr_dspy.programs.scoring.searching import Index, document_words


class BM25s(Index):
    """A corpus that is searched by bm25s with Lucene's idf; a query takes time by how often its words occur.

    Args:
        passages: The corpus, in order; may be empty.

    Raises:
        ArgumentError: The corpus is not a list of passages, or bm25s is not installed.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        super().__init__(passages)
        # ATIRE's term weight has the factor k1 + 1, as rank-bm25's has and Lucene's has not.
        self._engine = _bm25s().BM25(k1=K1, b=B, method="atire", idf_method="lucene", dtype="float64")
        self._numbers: dict[str, int] = {}
        number = self._numbers.setdefault
        corpus = [[number(word, len(self._numbers)) for word in document_words(passage)] for passage in self.documents]
        if self._numbers:  # it cannot index a corpus without words
            self._engine.index((corpus, self._numbers), create_empty_token=False, show_progress=False)

    def scores(self, words: list[str]) -> Floats:
        """Return the BM25 score of each document; a word that occurs twice in the query counts twice."""
        if not self._numbers:
            return np.zeros(len(self.documents))
        known = [self._numbers[word] for word in words if word in self._numbers]
        scores: Floats = self._engine.get_scores_from_ids(known)
        return scores


def _bm25s() -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise ArgumentError(
            "BM25s, which searches large corpora, needs bm25s; run: pip install 'eldgr_dspy[bm25s]', or use BM25, "
            "which finds the same but takes longer."
        ) from error
    return bm25s
