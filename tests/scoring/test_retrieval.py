"""Retrievers find what the formula or a user's own says, and a corpus holds facts and solutions, each once."""

import copy
import math
import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from benchmarks.retrieval_times import FACTS, facts_rows, in_all, in_ten
from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Hit, Reasoning, Retriever
from eldgr_dspy.programs.scoring.bm25 import BM25, document_words, query_words
from eldgr_dspy.programs.scoring.corpora import gsm8k_corpus, hotpotqa_corpus
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.retrieval import DSPyRetriever
from tests.case_tables import each_case
from tests.refusing import refuses
from tests.scoring.readers import Reader, by_chance

WORDS = "Qatar cup Doha capital 2022 Gulf the of 多哈市 Zoé İzmir re\u200bad".split()
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
passages = st.builds(Passage, st.sampled_from(["", "Qatar", "Doha"]), texts | st.text(max_size=8))
corpora = st.lists(passages, max_size=9)
queries = st.lists(texts | st.text(max_size=8), max_size=4)
THREE = ["Doha is the capital.", "Qatar hosted the cup.", "The Gulf is warm."]
DOHA, QATAR, GULF = (Passage("", text) for text in THREE)


def corpus(*lines: str) -> list[Passage]:
    return [Passage("", text) for text in lines]


def weights(documents: list[Passage], words: list[str]) -> list[float]:
    """BM25 as it is written down, with Lucene's idf."""
    bags, scores = [Counter(document_words(document)) for document in documents], list[float]()
    mean = sum(map(Counter.total, bags)) / len(bags)
    for counts in bags:
        parts = []
        for word in words:
            df = sum(word in other for other in bags)
            idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
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
    turns = [" ".join(reversed(query_words(query))) for query in questions]
    assume(all(query_words(one) == query_words(query)[::-1] for one, query in zip(turns, questions, strict=True)))
    assert index.search(turns, k) == index.search(questions, k)


@given(documents=corpora, query=texts)
@example(documents=corpus("Doha", "", "Doha", ""), query="Doha")
def test_copies_of_a_document_score_the_same_and_the_earliest_comes_first(documents: list[Passage], query: str) -> None:
    """What this does not claim: that copies leave the scores of others alone; words of copies are less rare."""
    (hits,) = BM25([*documents, *documents]).search([query], 2 * len(documents) or 1)
    scores = {hit.document: hit.score for hit in hits}
    places = {hit.document: place for place, hit in enumerate(hits)}
    for document, twin in enumerate(range(len(documents), 2 * len(documents))):
        assert scores.get(document) == scores.get(twin)
        assert document not in places or places[document] < places[twin]


def test_a_sum_in_another_order_is_the_same_score_and_words_of_a_title_count() -> None:
    """The first two have the same by symmetry, and in double precision the later one scores more in the last digit."""
    index: Any = BM25(corpus("oil gas sea", "gas sea sun", "sea", "sea", "cup"))
    first, second, *_ = index._engine.get_scores(["oil", "gas", "sea", "sun"])
    assert first < second
    assert [hit.document for hit in index.search(["oil gas sea sun"])[0]] == [0, 1, 2, 3]
    assert BM25([Passage("Doha", "a city"), Passage("", "a city")]).search(["Doha"])[0][0].document == 0


@pytest.mark.parametrize("lines", [[], [""], ["", " ?! \u200b"]], ids=["none", "empty", "no-words"])
def test_a_corpus_without_documents_or_without_words_finds_nothing(lines: list[str]) -> None:
    """rank-bm25 divides by zero."""
    index = BM25(corpus(*lines))
    assert index.search(["Doha", ""]) == [[], []]
    assert index.search([]) == [] and len(index.documents) == len(lines)


@given(st.text(max_size=20))
def test_the_words_of_a_text_do_not_depend_on_what_else_it_holds(text: str) -> None:
    """ASCII takes another way."""
    assert document_words(Passage("", f"{text} \u2014")) == document_words(Passage("", text))


def test_passages_of_a_text_are_searched_as_a_corpus_is_and_the_same_is_found() -> None:
    n = 500
    passages = tuple(corpus(*(f"Bread {at} is baked." for at in range(n - 1)), "Doha is in Qatar."))
    text = "Step 1: Doha is in Qatar.\nStep 2: Bread 7 is baked."
    own, other = Reasoning(text, "Where?", passages), Reasoning(text, "Where?")
    result = NLIScorer(Reader(by_chance("entailment", "neutral"))).score([own])
    assert result == NLIScorer(Reader(by_chance("entailment", "neutral")), BM25(passages)).score([other])
    assert result[0].scores[0].document == n - 1


def test_on_real_questions_most_facts_are_found(pools_dir: Path) -> None:
    rows = facts_rows(pools_dir)
    if not rows:
        pytest.skip(f"no {FACTS} in {pools_dir}; set ELDGR_POOLS to the folder that holds it")
    assert len(hotpotqa_corpus(rows)) == 725
    assert in_all(rows) > 0.9
    assert in_ten(rows) > 0.85


def test_the_first_thousand_solutions_are_taken_and_no_more_are_read() -> None:
    def rows() -> Any:
        yield from ({"answer": f"It is {number}."} for number in range(1_000))
        raise AssertionError("row 1,001 was read")

    corpus = gsm8k_corpus(rows())
    assert len(corpus) == 1_000 and corpus[-1].text == "It is 999."
    assert len(gsm8k_corpus(rows(), solutions=3)) == 3


def letters(texts: list[str]) -> Any:
    """An embedder: how often each letter occurs."""
    return np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], float)


class Searching(dspy.Module):  # a retriever that somebody wrote as a module
    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(passages=[dspy.Example(title="Qatar", text=question)])


def searching(result: Any) -> DSPyRetriever:
    return DSPyRetriever(lambda query: result)


KINDS: dict[str, Callable[..., Any]] = {"tuple": lambda *of: of, "Prediction": dspy.Prediction, "Example": dspy.Example}
KINDS |= {"object": SimpleNamespace, "generator": lambda *of: iter(of)}


@each_case("scoring", "kinds of passages", **KINDS)
def test_passages_of_every_kind_are_documents_in_their_order(result: Any) -> None:
    index: Retriever = searching(result)
    assert index.search(["capital"]) == [[Hit(0, 1.0), Hit(1, 0.5)]]
    assert list(index.documents) == [DOHA, QATAR]


def test_dspy_retrievers_and_modules_are_asked_as_they_are_and_scores_kept_where_there_are_some() -> None:
    with dspy.context(rm=lambda query, k: [SimpleNamespace(long_text=text) for text in THREE[:k]]):
        assert len(DSPyRetriever(dspy.Retrieve(k=2)).search(["capital"])[0]) == 2
    retriever = DSPyRetriever(dspy.retrievers.Embeddings(THREE, letters, k=2))
    (hits,) = retriever.search([THREE[1]])
    assert retriever.documents[hits[0].document] == QATAR and [hit.score for hit in hits] == [1, 0.5]
    module = DSPyRetriever(Searching())
    assert module.search(["capital"]) == [[Hit(0, 1.0)]] and list(module.documents) == [Passage("Qatar", "capital")]
    index = DSPyRetriever(dspy.retrievers.EmbeddingsWithScores([*THREE, "xyz"], letters, k=4))
    (hits,) = index.search([THREE[1].replace(".", "")])
    assert index.documents[hits[0].document] == QATAR and hits[0].score == pytest.approx(1)
    assert 0 < hits[-1].score < 1 and Passage("", "xyz") not in index.documents
    assert searching(dspy.Prediction(passages=THREE, scores=[0.5, 0, -1])).search(["a"]) == [[Hit(0, 0.5)]]


@pytest.mark.parametrize("result", [[], dspy.Prediction(passages=[]), ["", " "]], ids=["list", "prediction", "blank"])
def test_a_retriever_that_finds_nothing_finds_nothing(result: Any) -> None:
    index = searching(result)
    assert index.search(["capital"]) == [[]] and list(index.documents) == []


def test_a_query_without_a_word_is_not_asked_and_what_a_retriever_raises_comes_through() -> None:
    calls: list[str] = []

    def search(query: str) -> list[str]:
        calls.append(query)
        return THREE

    index = DSPyRetriever(search)
    assert [len(hits) for hits in index.search(["", " ?", "\u200b", "北京", "The Who"])] == [0, 0, 0, 3, 3]
    assert calls == ["北京", "The Who"]
    nothing: dict[str, list[str]] = {}
    refuses(KeyError, "capital", DSPyRetriever(nothing.__getitem__).search, ["capital"])


@given(st.lists(st.lists(st.sampled_from([*THREE, "", "a", "b"]), max_size=6), max_size=6), st.integers(1, 5))
@example([[THREE[0], THREE[1], THREE[0]], [THREE[1]]], 1)
def test_every_hit_names_its_document_whatever_was_searched_before(results: list[list[str]], k: int) -> None:
    index = DSPyRetriever(lambda query: results[int(query)])
    for query, texts in enumerate(results):
        (hits,) = index.search([str(query)], k)
        answers = [index.documents[hit.document].text for hit in hits]
        assert answers == [text for text in dict.fromkeys(texts) if text][:k]
        assert all(hit.score > 0 for hit in hits) and hits == sorted(hits, key=lambda hit: -hit.score)
    assert len(set(index.documents)) == len(index.documents)


def test_threads_may_search_at_once() -> None:
    index = DSPyRetriever(lambda query: [f"{query} {number}" for number in range(5)])
    with ThreadPoolExecutor(8) as pool:
        match = list(pool.map(lambda query: index.search([query])[0], [f"q{number % 20}" for number in range(200)]))
    for number, hits in enumerate(match):
        assert [index.documents[hit.document].text for hit in hits] == [f"q{number % 20} {at}" for at in range(5)]
    assert len(index.documents) == 100


def repickle(index: DSPyRetriever) -> Any:
    return pickle.loads(pickle.dumps(index))  # noqa: S301 -- our own


@pytest.mark.parametrize("again", [copy.deepcopy, repickle])
def test_a_copy_and_a_pickle_know_what_was_found_by_its_numbers_and_grow_by_themselves(again: Any) -> None:
    index = DSPyRetriever(Searching())
    index.search(["Doha"])
    twin = again(index)
    assert twin.search(["Qatar", "Doha"]) == [[Hit(1, 1.0)], [Hit(0, 1.0)]]
    assert [document.text for document in twin.documents] == ["Doha", "Qatar"] and len(index.documents) == 1
