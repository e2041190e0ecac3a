"""The reasoning texts in a pool or in a file, ready to be scored."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.base.files import require_file
from eldgr_dspy.base.system import refusal
from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.rows import MAX_CHARACTERS, MAX_PASSAGES
from eldgr_dspy.pools import open_pool, read_records
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.programs.scoring.candidates import reasonings_of

_BLANK_LINES = re.compile(r"(?:\r?\n[ \t]*){2,}")


@dataclass(frozen=True, slots=True)
class Text:
    """A text to be scored; if it is in a pool, with the id of its row and the number of its candidate, from 0."""

    reasoning: Reasoning
    id: str | None = None
    candidate: int | None = None


def texts_of_pool(path: Path, limit: int | None = None) -> Iterator[list[Text]]:
    """Yield the texts of the candidates of each question; a candidate without a text has its answer."""
    rows = ((row.id, row.to_question()) for row in open_pool(path).rows(limit))  # the whole pool is checked at once
    return (
        [Text(one, id, at) for at, one in enumerate(reasonings_of(question, corpus=bool(question.passages)))]
        for id, question in rows
    )


def text_of_file(path: Path, question: str = "", evidence: Path | None = None) -> Text:
    """Return the text of a file, in UTF-8, with the answer that it marks; without `evidence` it has no corpus."""
    text = _text(path)
    extraction = extract_answer(text, "retrieval")
    answer = extraction.answer if extraction and extraction.form != "whole" else ""
    return Text(Reasoning(text, question, None if evidence is None else _passages(evidence), answer))


def _text(path: Path) -> str:
    require_file(path)
    try:
        text = path.read_bytes().decode("utf-8-sig") if path.stat().st_size <= 4 * MAX_CHARACTERS else None
    except OSError as error:
        raise ArgumentError(refusal(error, path)) from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path}: byte {error.start + 1} is not UTF-8; save the file as UTF-8.") from error
    if text is None or len(text) > MAX_CHARACTERS:
        raise ArgumentError(f"{path}: has more than {MAX_CHARACTERS:,} characters; shorten it, or give a part of it.")
    if not text.strip():
        raise ArgumentError(f"{path}: has no text; check the name.")
    return text


def _passages(path: Path) -> tuple[Passage, ...]:
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        passages = read_passages(path)
    else:
        passages = [Passage("", part.strip()) for part in _BLANK_LINES.split(_text(path)) if part.strip()]
    if not passages or len(passages) > MAX_PASSAGES:
        raise ArgumentError(f"{path}: must have 1 to {MAX_PASSAGES:,} passages; got {len(passages):,}.")
    return tuple(passages)


def read_passages(path: Path) -> list[Passage]:
    """Return the passages of a file in JSON lines or Parquet, with `text` and perhaps `title`."""
    passages = list[Passage]()
    for where, record in read_records(path):
        try:
            passages += to_passages([record])
        except ArgumentError as error:
            raise ArgumentError(f"{path}, {where}: {error}") from None
    return passages
