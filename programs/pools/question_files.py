"""Files of questions: GSM8K and HotpotQA as Hugging Face's `datasets` has them, or with the fields of a pool.

Questions, gold answers and evidence come from here, candidates from elsewhere. Nothing is downloaded.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.pools import read_records
from eldgr_dspy.programs.pools.csv_files import Columns, is_table, read_table
from eldgr_dspy.programs.pools.entries import Entry, choices_at, evidence_at, id_at, object_at, question_at, text_at
from eldgr_dspy.programs.pools.gold_answers import gold_at
from eldgr_dspy.programs.scoring.corpora import hotpotqa_corpus

# What is used of HotpotQA: all paragraphs, or the facts, which were marked by people who knew the answer.
Evidence = Literal["paragraphs", "facts"]


def read_questions(path: Path, evidence: Evidence = "paragraphs", columns: Columns | None = None) -> Iterator[Entry]:
    """Yield the questions of a file (JSON lines, Parquet, CSV or TSV), one in memory at a time unless it is a table."""
    if is_table(path):
        yield from read_table(path, columns or Columns(), samples=False)
        return
    empty = True
    for place, record in read_records(path):
        row = object_at(record, f"{path}, {place}")
        yield question_entry(row, f"{path}, {place}", _passages(row, evidence, f"{path}, {place}"))
        (columns or Columns()).fields.update(record)
        empty = False
    if empty:
        raise PoolError(f"{path}: no questions; the file is empty.")


def question_entry(row: Mapping[str, Any], where: str, passages: tuple[Passage, ...] = (), gold: str = "gold") -> Entry:
    """Return the question in a row, with its evidence. `gold` is the field whose gold answers come first."""
    question, choices = question_at(row, where), choices_at(row)
    if question is None:
        raise PoolError(f"{where}: question is missing; add it.")
    right = gold_at(row, where, choices, field=gold)
    return Entry(where, id_at(row, "id", where), question, (), right, passages, choices.texts)


def _passages(row: Mapping[str, Any], evidence: Evidence, where: str) -> tuple[Passage, ...]:
    context = row.get("context")
    if context is None:
        return evidence_at(row, where)
    if isinstance(context, str) and "supporting_facts" not in row:
        return (Passage(text_at(row.get("title") or "", "title", where), text_at(context, "context", where)),)  # SQuAD
    facts = row.get("supporting_facts") if evidence == "facts" else {"title": [], "sent_id": []}
    context, marks = _columns(context, "title", "sentences"), _columns(facts, "title", "sent_id")
    try:  # the corpus of HotpotQA's facts checks the layout
        passages = hotpotqa_corpus([{"context": context, "supporting_facts": marks}])
    except ArgumentError as error:
        raise PoolError(f"{where}: {str(error).replace('rows[0]', 'row', 1)}") from None
    if evidence == "facts":
        return passages
    pairs = zip(context["title"], context["sentences"], strict=True)
    return tuple(Passage(title, "".join(sentences).strip()) for title, sentences in pairs)


def _columns(value: Any, *names: str) -> Any:
    """Return a list of objects from either form that `datasets` writes, depending on its version."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        return value
    return {name: [entry.get(name) for entry in value] for name in names}
