"""BM25 by rank-bm25, which is always installed: exact, without an index on disk, fit for some thousand documents.

With n documents, df of them holding a word, the weight of the word is its inverse document frequency (idf):

    lucene   log(1 + (n - df + 1/2) / (df + 1/2))    above 0 for every word
    okapi    log((n - df + 1/2) / (df + 1/2))        rank-bm25's own; if that is negative, a quarter of the mean over
                                                     all words replaces it

Under `okapi` a word of exactly half the documents weighs nothing, and a word of most documents can outweigh a rare one.
A corpus of one document finds nothing by it. k1 is 1.5 and b is 0.75, the values of rank-bm25.
"""

import math
from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np
from rank_bm25 import BM25Okapi

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.programs.scoring.searching import Index, document_words
from eldgr_dspy.questions import require_one_of

Idf = Literal["lucene", "okapi"]
IDFS: tuple[Idf, ...] = get_args(Idf)

K1 = 1.5
B = 0.75


class BM25(Index):
    """A corpus that is searched by rank-bm25; a query takes time in proportion to its words times the documents.

    Args:
        passages: The corpus, in order; may be empty.
        idf: `lucene`, or `okapi` for rank-bm25 as it is.

    Raises:
        ArgumentError: The corpus is not a list of passages, or `idf` is neither of the two.
    """

    def __init__(self, passages: Iterable[Passage], idf: Idf = "lucene") -> None:
        require_one_of("idf", idf, IDFS)
        super().__init__(passages)
        words = [document_words(passage) for passage in self.documents]
        kind = LuceneBM25 if idf == "lucene" else BM25Okapi
        self._engine = kind(words, k1=K1, b=B) if any(words) else None  # it divides by the number of words

    def scores(self, words: list[str]) -> Floats:
        """Return the BM25 score of each document; a word that occurs twice in the query counts twice."""
        if self._engine is None:
            return np.zeros(len(self.documents))
        known = [word for word in words if word in self._engine.idf]
        scores: Floats = self._engine.get_scores(known)
        return scores


class LuceneBM25(BM25Okapi):
    """rank-bm25 with the idf of Lucene instead of its own."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        n = self.corpus_size
        self.idf = {word: math.log(1 + (n - holding + 0.5) / (holding + 0.5)) for word, holding in nd.items()}
