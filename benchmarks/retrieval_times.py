"""Time BM25 by the size of the corpus, and print what it finds: `python -m benchmarks.retrieval_times [POOLS_DIR]`.

Processor time. Documents have 60 words and queries 12, drawn by Zipf's law from 50,000 words without stop words. 96
queries are the steps of 16 completions of six steps. What it finds is measured on 300 questions of HotpotQA: how many
of a question's facts are among the five documents found for its text, in the corpus of all facts; and how many of the
paragraphs that hold them, among its own ten.

POOLS_DIR defaults to ELDGR_POOLS, or else to the folder of pools next to the checkout. Without the file, that part is
skipped.
"""

import gzip
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks._timing import cpu, line, pools_dir
from eldgr_dspy.certificates import Passage
from eldgr_dspy.programs.scoring.bm25 import BM25
from eldgr_dspy.programs.scoring.corpora import hotpotqa_corpus

VOCABULARY = 50_000
STEPS = 96

FACTS = "hotpotqa-distractor300.jsonl.gz"


def zipf_texts(texts: int, words: int, seed: int) -> list[str]:
    """Return texts whose words are as frequent as Zipf's law says."""
    share = 1 / np.arange(1, VOCABULARY + 1)
    numbers = np.random.default_rng(seed).choice(VOCABULARY, size=(texts, words), p=share / share.sum())
    return [" ".join(f"w{number}" for number in text) for text in numbers]


def cost(n: int, queries: Sequence[str], rounds: int) -> None:
    corpus = [Passage("", text) for text in zipf_texts(n, 60, n)]
    index = BM25(corpus)
    line(f"{n:,} documents: the index", cpu(partial(BM25, corpus), rounds=rounds) * 1e3, "ms")
    line(f"{n:,} documents: a query", cpu(partial(index.search, queries), rounds=rounds) / len(queries) * 1e3, "ms")


def batch(n: int) -> None:
    """Print the time of the index and the steps of one batch together."""
    corpus, queries = [Passage("", text) for text in zipf_texts(n, 60, n)], zipf_texts(STEPS, 12, 0)
    whole = cpu(lambda: BM25(corpus).search(queries), rounds=3)
    line(f"{n:,} documents: the index and {STEPS} queries", whole, "s")


def hugging_face(record: dict[str, Any]) -> dict[str, Any]:
    """A record of the 300 questions in Hugging Face's layout."""
    context, facts = record["context"], record["supporting_facts"]
    return {
        "question": record["question"],
        "context": {name: [paragraph[name] for paragraph in context] for name in ("title", "sentences")},
        "supporting_facts": {"title": [title for title, _ in facts], "sent_id": [number for _, number in facts]},
    }


def facts_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the 300 questions; an empty list if the file does not exist."""
    path = folder / FACTS
    if not path.is_file():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [hugging_face(json.loads(text)) for text in lines]


def recall(row: dict[str, Any], index: BM25, facts: set[Passage]) -> float:
    """Return the share of a question's facts among the five documents found for it."""
    (hits,) = index.search([row["question"]])
    return len(facts & {index.documents[hit.document] for hit in hits}) / len(facts)


def in_all(rows: Sequence[dict[str, Any]]) -> float:
    """Return the mean share of the facts found in the corpus of all."""
    index = BM25(hotpotqa_corpus(rows))
    return fmean(recall(row, index, set(hotpotqa_corpus([row]))) for row in rows)


def in_ten(rows: Sequence[dict[str, Any]]) -> float:
    """Return the mean share of the paragraphs with facts found among the ten of the question alone."""
    shares = []
    for row in rows:
        pairs = zip(row["context"]["title"], row["context"]["sentences"], strict=True)
        index = BM25([Passage(title, "".join(sentences).strip()) for title, sentences in pairs])
        shares.append(recall(row, index, set(hotpotqa_corpus([row], unit="paragraph"))))
    return fmean(shares)


def main(folder: Path) -> None:
    cost(10, zipf_texts(STEPS, 12, 0), 5)
    cost(1_000, zipf_texts(STEPS, 12, 0), 5)
    cost(100_000, zipf_texts(5, 12, 0), 2)
    for n in (1_000, 5_000, 10_000):
        batch(n)
    if rows := facts_rows(folder):
        line(f"facts among the five found, of {len(hotpotqa_corpus(rows)):,}", 100 * in_all(rows), "%")
        line("paragraphs with facts among the five found, of ten", 100 * in_ten(rows), "%")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else pools_dir())
