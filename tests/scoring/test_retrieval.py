"""BM25 finds what the formula says, with ties to the earliest; nothing bad gets in."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.bm25 import BM25, document_words, query_words
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from tests.scoring.readers import Reader, by_chance

WORDS = "Qatar cup Doha capital 2022 Gulf the of 多哈市 Zoé İzmir re\u200bad".split()
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
passages = st.builds(Passage, st.sampled_from(["", "Qatar", "Doha"]), texts | st.text(max_size=8))
corpora = st.lists(passages, max_size=9)
queries = st.lists(texts | st.text(max_size=8), max_size=4)


def corpus(*said: str) -> list[Passage]:
    return [Passage("", text) for text in said]


def found(said: Sequence[str], query: str, k: int = 5) -> list[int]:
    (hits,) = BM25(corpus(*said)).search([query], k)
    return [hit.document for hit in hits]


# --- what is found ----------------------------------------------------------------------------------------------------
def weights(documents: list[Passage], words: list[str]) -> list[float]:
    """BM25 as it is written down, with Lucene's idf."""
    held = [Counter(document_words(document)) for document in documents]
    mean = sum(map(Counter.total, held)) / len(held)
    scores = []
    for counts in held:
        parts = []
        for word in words:
            df = sum(word in other for other in held)
            idf = math.log(1 + (len(held) - df + 0.5) / (df + 0.5))
            length = 1.5 * (1 - 0.75 + 0.75 * counts.total() / mean) if mean else 0.0
            parts.append(idf * counts[word] * 2.5 / (counts[word] + length) if counts[word] else 0.0)
        scores.append(math.fsum(parts))
    return scores


@given(documents=corpora, questions=queries, k=st.integers(1, 12))
@example(documents=corpus("Doha"), questions=["Doha"], k=12)  # a word of every document
@example(documents=corpus("Doha cup", "Gulf cup", "Qatar"), questions=["Doha", "Doha Doha", "Doha Gulf gulf"], k=2)
def test_what_is_found_shares_a_word_and_scores_as_bm25(documents: list[Passage], questions: list[str], k: int) -> None:
    index = BM25(documents)
    for query, hits in zip(questions, index.search(questions, k), strict=True):
        words = query_words(query)
        expected = weights(documents, words) if documents else []
        matching = [at for at, passage in enumerate(documents) if set(document_words(passage)) & set(words)]
        assert len(hits) == min(k, len(matching)) and {hit.document for hit in hits} <= set(matching)
        assert all(math.isfinite(hit.score) and hit.score > 0 for hit in hits)
        assert [hit.score for hit in hits] == pytest.approx([expected[hit.document] for hit in hits], rel=1e-6)
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.document))
        left_out = [expected[at] for at in matching if at not in {hit.document for hit in hits}]
        assert not left_out or max(left_out) <= min(hit.score for hit in hits) * (1 + 1e-6)


@given(documents=corpora, questions=queries, k=st.integers(1, 12))
def test_neither_batch_nor_order_of_words_matters(documents: list[Passage], questions: list[str], k: int) -> None:
    index = BM25(documents)
    assert index.search(questions, k) == [index.search([query], k)[0] for query in questions]
    turned = [" ".join(reversed(query_words(query))) for query in questions]
    assume(all(query_words(one) == query_words(query)[::-1] for one, query in zip(turned, questions, strict=True)))
    assert index.search(turned, k) == index.search(questions, k)


@given(documents=corpora, query=texts)
@example(documents=corpus("Doha", "", "Doha", ""), query="Doha")
def test_copies_of_a_document_score_the_same_and_the_earliest_comes_first(documents: list[Passage], query: str) -> None:
    """What this does not claim: that copies leave the scores of others alone; words of copies are less rare."""
    (hits,) = BM25([*documents, *documents]).search([query], 2 * len(documents) or 1)
    scores = {hit.document: hit.score for hit in hits}
    places = {hit.document: place for place, hit in enumerate(hits)}
    for document in range(len(documents)):
        twin = document + len(documents)
        assert scores.get(document) == scores.get(twin)
        assert document not in places or places[document] < places[twin]


def test_ties_go_to_the_earliest_also_where_k_cuts_through_them() -> None:
    assert found(["Doha"] * 9, "Doha", 3) == [0, 1, 2]
    assert found(["Gulf", *["Doha Gulf"] * 9, "Doha Gulf cup", "Doha"], "Doha", 3) == [11, 1, 2]


def test_a_sum_in_another_order_is_the_same_score() -> None:
    """The first two have the same by symmetry, and in double precision the later one scores more in the last digit."""
    replies = ["oil gas sea", "gas sea sun", "sea", "sea", "cup"]
    first, second, *_ = getattr(BM25(corpus(*replies)), "_engine").get_scores(["oil", "gas", "sea", "sun"])  # noqa: B009
    assert first < second
    assert found(replies, "oil gas sea sun") == [0, 1, 2, 3]


# --- what other implementations trip over -----------------------------------------------------------------------------
@pytest.mark.parametrize("said", [[], [""], ["", " ?! \u200b"]], ids=["none", "empty", "no-words"])
def test_a_corpus_without_documents_or_without_words_finds_nothing(said: list[str]) -> None:
    """rank-bm25 divides by zero."""
    index = BM25(corpus(*said))
    assert index.search(["Doha", ""]) == [[], []]
    assert index.search([]) == [] and len(index.documents) == len(said)


@pytest.mark.parametrize("query", ["", " ", "?!", "\u200b", "Paris", "it was the"])
def test_a_query_that_matches_nothing_finds_nothing(query: str) -> None:
    """Other libraries return k documents that score 0. The last query has stop words alone, which are in the corpus."""
    assert found(["Doha was the capital", "it is Doha"], query) == []


# --- words ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("message", "query"),
    [
        ("DOHA", "doha"),
        ("Do\u200bha", "Doha"),
        ("Ｄｏｈａ", "Doha"),
        ("Zoe\u0301", "Zoé"),
        ("北京市是首都", "北京"),
        ("Доха — столица", "доха"),
        ("\u200f\u0627\u0644\u062f\u0648\u062d\u0629", "\u0627\u0644\u062f\u0648\u062d\u0629"),
        ("costs $3.50", "3.50"),
    ],
    ids=["case", "zero-width", "full-width", "combining", "han", "cyrillic", "arabic", "number"],
)
def test_a_word_is_found_however_it_is_written(message: str, query: str) -> None:
    assert found(["nothing of it", message], query) == [1]


def test_words_are_those_of_the_title_and_of_the_text_and_stop_words_are_not_looked_for() -> None:
    assert document_words(Passage("The Gulf", "It is 3.5 wide, re-read")) == "the gulf it is 3 5 wide re read".split()
    assert query_words("What is the Gulf, the GULF?") == ["gulf", "gulf"]
    assert BM25([Passage("Doha", "a city"), Passage("", "a city")]).search(["Doha"])[0][0].document == 0


@given(st.text(max_size=20))
def test_the_words_of_a_text_do_not_depend_on_what_else_it_holds(text: str) -> None:
    """ASCII takes another way."""
    assert document_words(Passage("", f"{text} \u2014")) == document_words(Passage("", text))


# --- what is refused --------------------------------------------------------------------------------------------------


QUERIES = "queries must be a list of strings; got "


@pytest.mark.parametrize(
    ("documents", "asked", "k", "message"),
    [
        *(
            (corpus("Doha"), ["Doha"], k, r"k must be a whole number of at least 1; got .*\.")
            for k in (0, -1, True, "5")
        ),
        ([], "Doha", 5, f"{QUERIES}'Doha'"),
        ([], None, 5, f"{QUERIES}None"),
        ([], {"Doha"}, 5, f"{QUERIES}{{'Doha'}}"),
        ([], ["Doha", None], 5, rf"{QUERIES}\['Doha', None\]"),
        (None, [], 5, r"passages\[0\] is None \(NoneType\); give Passage\(title, text\)\."),
        ("Doha", [], 5, r"passages\[0\] is 'D' \(str\); give Passage\(title, text\)"),
        (["Doha"], [], 5, r"passages\[0\] is 'Doha' \(str\)"),
    ],
)
def test_passages_queries_and_k_are_what_they_must_be(documents: Any, asked: Any, k: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        BM25(documents).search(asked, k)


def test_passages_of_a_text_are_searched_as_a_corpus_is_and_the_same_is_found() -> None:
    n = 500
    passages = tuple(corpus(*(f"Bread {at} is baked." for at in range(n - 1)), "Doha is in Qatar."))
    text = "Step 1: Doha is in Qatar.\nStep 2: Bread 7 is baked."
    own, shared = Reasoning(text, "Where?", passages), Reasoning(text, "Where?")
    result = NLIScorer(Reader(by_chance("entailment", "neutral"))).score([own])
    assert result == NLIScorer(Reader(by_chance("entailment", "neutral")), BM25(passages)).score([shared])
    assert result[0].scores[0].document == n - 1
