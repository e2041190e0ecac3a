"""Search a corpus by the words that queries and documents share: BM25 by rank-bm25, exact and without a file.

With n documents, df of them holding a word, the weight of the word is Lucene's, which is above 0 for every word:
log(1 + (n - df + 1/2) / (df + 1/2)). rank-bm25's own weight is 0 for a word of half the documents, so that a corpus of
one document finds nothing. k1 is 1.5 and b is 0.75, the values of rank-bm25.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.overlap import units
from eldgr_dspy.channels.protocols import Hit
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.matching.occurrences import STOP_WORDS
from eldgr_dspy.rule.consultations import show_passage


class BM25:
    """A corpus that is searched; a query takes time in proportion to its words times the documents.

    Attributes:
        documents: The corpus, in order; may be empty.

    Raises:
        ArgumentError: The corpus is not a list of passages.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        corpus: object = passages
        self.documents: Sequence[Any] = tuple(corpus) if isinstance(corpus, Iterable) else (corpus,)
        for index, passage in enumerate(self.documents):
            if not isinstance(passage, Passage):
                raise ArgumentError(
                    f"passages[{index}] is {passage!r:.80} ({type(passage).__name__}); give Passage(title, text)."
                )
        words = [document_words(passage) for passage in self.documents]
        self._engine = _Lucene(words) if any(words) else None  # it divides by the number of words

    def search(self, queries: Sequence[str], k: int = 5) -> list[list[Hit]]:
        """Return at most k documents for each query, best first, ties to the earliest; only those that match.

        A word that is twice in a query counts twice. A query without a word to look for finds nothing, and so does
        every query in an empty corpus.

        Raises:
            ArgumentError: `queries` is not a list of strings, or k not a whole number from 1.
        """
        require_search(queries, k)
        return [self._find(query_words(query), k) for query in queries]

    def _find(self, words: list[str], k: int) -> list[Hit]:
        if self._engine is None:
            return []
        # In single precision, a tie is one whatever the order in which its parts were added up.
        scores = self._engine.get_scores([word for word in words if word in self._engine.idf]).astype(np.float32)
        positive = np.flatnonzero(scores > 0)
        if len(positive) > k:
            positive = positive[scores[positive] >= np.partition(scores[positive], -k)[-k]]
        order = positive[np.argsort(-scores[positive], kind="stable")[:k]]
        return [Hit(int(document), float(scores[document])) for document in order]


class _Lucene(BM25Okapi):
    """rank-bm25 with the weight of Lucene instead of its own."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        n = self.corpus_size
        self.idf = {word: math.log(1 + (n - holding + 0.5) / (holding + 0.5)) for word, holding in nd.items()}


def document_words(passage: Passage) -> list[str]:
    """Return the words by which a document is found, in order: those of its title, then those of its text.

    Words are runs of letters and digits after folding (`eldgr_dspy.text.folding`), so that case, zero-width characters
    and compatibility forms make no difference; scripts without spaces are cut into pairs of characters. No stemming:
    "city" does not find "cities". Marks end a word: "3.5" is two words, and so is "1,000".
    """
    return units(show_passage(passage.title, passage.text))


def query_words(query: str) -> list[str]:
    """Return the words to look for, in order, each as often as it occurs; English stop words are left out.

    They would match nearly every document, and so fill the results with irrelevant documents.
    """
    return [word for word in units(query) if word not in STOP_WORDS]


def require_search(queries: object, k: object) -> None:
    """Raise an `ArgumentError` unless this is a list of strings and a number of documents."""
    items = queries if isinstance(queries, Sequence) and not isinstance(queries, str) else [None]
    if not all(isinstance(query, str) for query in items):
        raise ArgumentError(f"queries must be a list of strings; got {queries!r:.80}.")
    if type(k) is not int or k < 1:
        raise ArgumentError(f"k must be a whole number of at least 1; got {k!r:.80}.")
