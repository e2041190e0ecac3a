"""Whatever a DSPy retriever returns becomes hits in its order, in a corpus that grows and never renumbers."""

import copy
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Hit, Retriever
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.retrieval import DSPyRetriever

CORPUS = ["Doha is the capital.", "Qatar hosted the cup.", "The Gulf is warm."]
DOHA, QATAR, GULF = (Passage("", text) for text in CORPUS)


def letters(texts: list[str]) -> Any:
    """An embedder: how often each letter occurs."""
    return np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], float)


class Searching(dspy.Module):  # a retriever that somebody wrote as a module
    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(passages=[dspy.Example(title="Qatar", text=question)])


def searching(result: Any) -> DSPyRetriever:
    return DSPyRetriever(lambda query: result)


@pytest.mark.parametrize(
    "result",
    [
        CORPUS[:2],
        tuple(CORPUS[:2]),
        dspy.Prediction(passages=CORPUS[:2]),
        [{"text": text} for text in CORPUS[:2]],
        [SimpleNamespace(long_text=text) for text in CORPUS[:2]],
        dspy.Prediction(passages=[dspy.Example(long_text=text, title=None) for text in CORPUS[:2]]),
        (text for text in CORPUS[:2]),
    ],
    ids=["list", "tuple", "prediction", "mappings", "objects", "examples", "generator"],
)
def test_passages_of_every_kind_are_documents_in_their_order(result: Any) -> None:
    index: Retriever = searching(result)
    assert index.search(["capital"]) == [[Hit(0, 1.0), Hit(1, 0.5)]]
    assert list(index.documents) == [DOHA, QATAR]


def test_dspy_retrievers_and_modules_are_asked_as_they_are() -> None:
    with dspy.context(rm=lambda query, k: [SimpleNamespace(long_text=text) for text in CORPUS[:k]]):
        assert len(DSPyRetriever(dspy.Retrieve(k=2)).search(["capital"])[0]) == 2
    embedded = DSPyRetriever(dspy.retrievers.Embeddings(CORPUS, letters, k=2))
    (hits,) = embedded.search([CORPUS[1]])
    assert embedded.documents[hits[0].document] == QATAR and [hit.score for hit in hits] == [1, 0.5]
    module = DSPyRetriever(Searching())
    assert module.search(["capital"]) == [[Hit(0, 1.0)]] and list(module.documents) == [Passage("Qatar", "capital")]


def test_scores_are_kept_where_the_prediction_has_them_and_what_does_not_match_is_dropped() -> None:
    index = DSPyRetriever(dspy.retrievers.EmbeddingsWithScores([*CORPUS, "xyz"], letters, k=4))
    (hits,) = index.search([CORPUS[1].replace(".", "")])
    assert index.documents[hits[0].document] == QATAR and hits[0].score == pytest.approx(1)
    assert 0 < hits[-1].score < 1 and Passage("", "xyz") not in index.documents
    assert searching(dspy.Prediction(passages=CORPUS, scores=[0.5, 0, -1])).search(["a"]) == [[Hit(0, 0.5)]]


SCORES = [[1.0, 0.5], [1, 2, 3], [1, float("nan"), 0], [float("inf"), 1, 0], ["a", "b", "c"], 3]
OF_SCORES = "scores must be .* each of 3 passages, best first; got "


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "it is None"),
        (3, "evidence must be a list of strings or passages; got 3"),
        ([3], r"evidence\[0\] must be a string, .*; got 3 \(int\)"),
        ({"passages": CORPUS}, "must be a list of strings or passages"),
        (dspy.Prediction(documents=CORPUS), "a prediction without passages"),
        *((dspy.Prediction(passages=CORPUS, scores=one), rf"{OF_SCORES}{re.escape(repr(one))}\.$") for one in SCORES),
    ],
)
def test_what_is_not_documents_or_not_a_score_each_is_refused_with_its_query(result: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"The retriever's result for 'capital' cannot be used: .*{message}"):
        searching(result).search(["capital"])


@pytest.mark.parametrize("result", [[], dspy.Prediction(passages=[]), ["", " "]], ids=["list", "prediction", "blank"])
def test_a_retriever_that_finds_nothing_finds_nothing(result: Any) -> None:
    index = searching(result)
    assert index.search(["capital"]) == [[]] and list(index.documents) == []


def test_a_query_without_a_word_is_not_asked() -> None:
    asked: list[str] = []

    def search(query: str) -> list[str]:
        asked.append(query)
        return CORPUS

    index = DSPyRetriever(search)
    assert [len(hits) for hits in index.search(["", " ?", "\u200b", "北京", "The Who"])] == [0, 0, 0, 3, 3]
    assert asked == ["北京", "The Who"]


@given(st.lists(st.lists(st.sampled_from([*CORPUS, "", "a", "b"]), max_size=6), max_size=6), st.integers(1, 5))
@example([[CORPUS[0], CORPUS[1], CORPUS[0]], [CORPUS[1]]], 1)
def test_every_hit_names_its_document_whatever_was_searched_before(results: list[list[str]], k: int) -> None:
    index = DSPyRetriever(lambda query: results[int(query)])
    for query, texts in enumerate(results):
        (hits,) = index.search([str(query)], k)
        found = [index.documents[hit.document].text for hit in hits]
        assert found == [text for text in dict.fromkeys(texts) if text][:k]
        assert all(hit.score > 0 for hit in hits) and hits == sorted(hits, key=lambda hit: -hit.score)
    assert len(set(index.documents)) == len(index.documents)


def test_threads_may_search_at_once() -> None:
    index = DSPyRetriever(lambda query: [f"{query} {number}" for number in range(5)])
    with ThreadPoolExecutor(8) as pool:
        match = list(pool.map(lambda query: index.search([query])[0], [f"q{number % 20}" for number in range(200)]))
    for number, hits in enumerate(match):
        assert [index.documents[hit.document].text for hit in hits] == [f"q{number % 20} {at}" for at in range(5)]
    assert len(index.documents) == 100


def test_a_retriever_can_be_called_and_what_it_raises_comes_through() -> None:
    wrong: Any = CORPUS
    with pytest.raises(ArgumentError, match=r"search must be a function or module of the query; got "):
        DSPyRetriever(wrong)
    nothing: dict[str, list[str]] = {}
    with pytest.raises(KeyError):
        DSPyRetriever(nothing.__getitem__).search(["capital"])


def pickled(index: DSPyRetriever) -> Any:
    return pickle.loads(pickle.dumps(index))  # noqa: S301 -- our own


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
def test_a_copy_and_a_pickle_know_what_was_found_by_its_numbers_and_grow_by_themselves(again: Any) -> None:
    index = DSPyRetriever(Searching())
    index.search(["Doha"])
    twin = again(index)
    assert twin.search(["Qatar", "Doha"]) == [[Hit(1, 1.0)], [Hit(0, 1.0)]]
    assert [document.text for document in twin.documents] == ["Doha", "Qatar"] and len(index.documents) == 1
