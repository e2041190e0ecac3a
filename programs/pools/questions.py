"""Files of questions: GSM8K and HotpotQA as Hugging Face's `datasets` has them, or with the fields of a pool.

Questions, gold answers and evidence come from here, candidates from elsewhere. Nothing is downloaded.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.pools import read_records
from eldgr_dspy.programs.pools.entries import Entry, evidence_at, final_answers, id_at, object_at, question_at
from eldgr_dspy.programs.scoring.corpora import hotpotqa_corpus

Evidence = Literal["paragraphs", "facts"]

_NO_FACTS: dict[str, list[Any]] = {"title": [], "sent_id": []}


def read_questions(path: Path, evidence: Evidence = "paragraphs") -> Iterator[Entry]:
    """Yield the questions of a file, one in memory at a time.

    A row has `question`, perhaps `id`, and what the layout has beside them: `answer` with a solution and `#### 18`
    (GSM8K); `answer`, `context` and `supporting_facts` (HotpotQA); or `gold` and `evidence` as in a pool. Other fields
    are not read.

    Args:
        path: JSON lines or Parquet.
        evidence: What the evidence of a HotpotQA row is: all its paragraphs, or its supporting facts, sentence by
            sentence under their titles. The facts were marked by people who knew the answer.

    Raises:
        PoolError: naming file, line and field.
    """
    empty = True
    for place, record in read_records(path, "questions"):
        yield _question(record, evidence, f"{path}, {place}")
        empty = False
    if empty:
        raise PoolError(f"{path}: no questions; the file is empty.")


def _question(record: Any, evidence: Evidence, where: str) -> Entry:
    row = object_at(record, where)
    question = question_at(row, where)
    if question is None:
        raise PoolError(f"{where}: question is missing; add it.")
    field = "gold" if "gold" in row else "answer"
    passages = _hotpotqa(row, evidence, where) if "context" in row else evidence_at(row, where)
    return Entry(where, id_at(row, "id", where), question, (), final_answers(row.get(field), field, where), passages)


def _hotpotqa(row: Mapping[str, Any], evidence: Evidence, where: str) -> tuple[Passage, ...]:
    """The evidence of a row of HotpotQA, whose layout the corpus of its facts checks."""
    wanted = row.get("supporting_facts") if evidence == "facts" else _NO_FACTS
    context, marked = _columns(row["context"], "title", "sentences"), _columns(wanted, "title", "sent_id")
    try:
        facts = hotpotqa_corpus([{"context": context, "supporting_facts": marked}])
    except ArgumentError as error:
        raise PoolError(f"{where}: {str(error).replace('rows[0]', 'row', 1)}") from None
    if evidence == "facts":
        return facts
    pairs = zip(context["title"], context["sentences"], strict=True)
    return tuple(Passage(title, "".join(sentences).strip()) for title, sentences in pairs)


def _columns(value: Any, *names: str) -> Any:
    """A list of objects as an object of lists; `datasets` writes either, by its version."""
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return value
    return {name: [one.get(name) for one in value] for name in names}
