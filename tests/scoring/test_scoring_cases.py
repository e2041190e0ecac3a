"""What retrievers and corpora return, and what scorers refuse in which sentence, unasked; see `cases.json`."""

from collections.abc import Callable, Sequence
from typing import Any

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.programs.scoring.bm25 import BM25, document_words, query_words
from eldgr_dspy.programs.scoring.channel_scorer import ChannelScorer
from eldgr_dspy.programs.scoring.corpora import gsm8k_corpus, hotpotqa_corpus
from eldgr_dspy.programs.scoring.nli import CachedNLI
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.retrieval import DSPyRetriever
from eldgr_dspy.programs.scoring.weights import find_model
from eldgr_dspy.programs.testing import scripted_lm
from tests.case_tables import agrees, each_case
from tests.refusing import refusal, says
from tests.scoring.asking import INPUTS
from tests.scoring.readers import Everything, Reader

QATAR = ["Qatar is a country.", " Its capital is Doha."]
CUP = ["The cup was held in 2022.", " Qatar hosted it.", " "]
FIRST, SECOND = Reasoning("It was Qatar.", "Who?"), "Step 1: It was Qatar.\nStep 2: It was Doha."


def row(*facts: tuple[str, int], **changes: Any) -> dict[str, Any]:
    """A row of `hotpot_qa`, `distractor`, as Hugging Face has it."""
    return {
        "id": "q1",
        "question": "Which city is the capital of the host?",
        "answer": "Doha",
        "context": {"title": ["Qatar", "Cup", "Gulf"], "sentences": [QATAR, CUP, ["The Gulf is warm."]]},
        "supporting_facts": {"title": [title for title, _ in facts], "sent_id": [number for _, number in facts]},
        **changes,
    }


class Silent(Reader):  # an NLI model that nobody may ask
    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        raise AssertionError("it was asked")


CALLS: dict[str, Callable[..., Any]] = {
    "NLIScorer": lambda **settings: NLIScorer(Silent(), Everything(Passage("", "It was Qatar.")), **settings),
    "confidences": lambda values: NLIScorer(Silent()).score([FIRST, Reasoning(SECOND, "Who?", confidences=values)]),
    "ChannelScorer": lambda **inputs: ChannelScorer()(**{**INPUTS, **inputs}),
    "BM25": lambda documents, queries=(), k=5: BM25(documents).search(queries, k),
    "DSPyRetriever": DSPyRetriever,
    "what a retriever returns": lambda result: DSPyRetriever(lambda query: result).search(["capital"]),
    "hotpotqa_corpus": hotpotqa_corpus,
    "gsm8k_corpus": gsm8k_corpus,
    "find_model": find_model,
    "CachedNLI": lambda entries: CachedNLI(Silent(), entries),
}
WORDS: dict[str, Callable[..., Any]] = {"float": float, "set": lambda *of: {*of}, "row": row}
WORDS |= {"Prediction": dspy.Prediction, "Passage": Passage}


@each_case("scoring", "refusals", **WORDS)
def test_each_refusal_is_its_sentence(call: str, arguments: dict[str, Any], sentence: str) -> None:
    with dspy.context(lm=scripted_lm([])):
        assert says(sentence, refusal(lambda: CALLS[call](**arguments)))


def numbers(documents: list[str], query: str, k: int = 5) -> list[int]:
    (hits,) = BM25([Passage("", text) for text in documents]).search([query], k)
    return [hit.document for hit in hits]


RESULTS: dict[str, Callable[..., Any]] = {
    "BM25": numbers,
    "document_words": lambda title, text: document_words(Passage(title, text)),
    "query_words": query_words,
    "hotpotqa_corpus": lambda facts, *unit: hotpotqa_corpus([row(*one) for one in facts], *unit),
    "hotpotqa_corpus of an iterator": lambda facts: hotpotqa_corpus(iter([row(*one) for one in facts])),
    "gsm8k_corpus": lambda answers: gsm8k_corpus([{"question": "?", "answer": answer} for answer in answers]),
}


@each_case("scoring", "results", **WORDS)
def test_each_result_is_that_of_its_case(call: str, arguments: list[Any], result: Any) -> None:
    assert agrees(RESULTS[call](*arguments), result)
