"""The contents of a pool, before any role is asked: candidates, agreement, missing answers, evidence, repetitions."""

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from eldgr_dspy.answer_types.extraction import read_sample
from eldgr_dspy.figures.decided_rows import Spellings, spellings_of
from eldgr_dspy.figures.distinct import Column as DistinctColumn
from eldgr_dspy.figures.record import share_of
from eldgr_dspy.figures.remarks import spelling_only
from eldgr_dspy.figures.results.record_fields import Share
from eldgr_dspy.formats.rows import CandidateRow, Row
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.words import Task


class Ends(TypedDict):
    """The least and the most of something a question."""

    fewest: int | None
    most: int
    total: NotRequired[int]  # of candidates, in all


class SpellingOnly(Share):
    """How many candidates are uncertified only because the evidence spells their quantity in another way."""

    examples: dict[str, str]  # up to five of their answers, each with the spelling of the evidence


class Column(Share):
    """How many candidates state a column, and between what a score lies; None of other columns."""

    lowest: float | None
    highest: float | None


class Shares(TypedDict):
    """The figures of a pool that are shares: of its questions, of those with a gold answer, or of its candidates."""

    homogeneous: Annotated[Share, Field(title="questions with one class of answers")]
    unanswered: Annotated[Share, Field(title="questions without any answer")]
    any_correct: Annotated[Share, Field(title="questions with a right candidate")]
    missing_answers: Annotated[Share, Field(title="candidates without an answer")]
    unclosed_thinking: Annotated[Share, Field(title="candidates whose thinking does not end")]
    cut_texts: Annotated[Share, Field(title="candidates that ran on after their end")]
    repeated_texts: Annotated[Share, Field(title="candidates whose text is there already")]
    repeated_questions: Annotated[Share, Field(title="questions that are there already")]
    without_evidence: Annotated[Share, Field(title="questions without evidence")]


class PoolContents(Shares):
    """What a pool holds; `columns` has what is stated of candidates, each score by its name; it may be absent."""

    n: int
    task: Task
    candidates: Ends
    evidence: dict[Literal["passages", "characters"], Ends]  # titles aside
    spelling_only: SpellingOnly
    columns: NotRequired[dict[str, Column]]


def contents_of(task: Task, rows: Iterable[Row]) -> tuple[PoolContents, NDArray[np.int64]]:
    """Read rows through once; return what they hold, and a hash of each different question, by its folded text."""
    counts, totals, columns = Counter[str](), Counter[str](), Counter[str]()
    ends = dict[str, tuple[float, float]]()
    spellings, keys = DistinctColumn[Spellings](), array("q")
    for row in rows:
        case = Case(row.to_question())
        # that two of a million questions share the first eight bytes by chance has odds of one in 10^7
        keys.append(int.from_bytes(hashlib.sha256(folded_question(row.question).encode()).digest()[:8], signed=True))
        spellings.append(spellings_of(case))
        for name, (count, of) in _counts(row, case).items():
            counts[name] += count
            totals[name] += of
        columns.update(name for candidate in row.candidates for name in _columns(candidate))
        for name, values in _measures(row):
            least_and_most = [*values, *ends.get(name, ())]
            ends[name] = min(least_and_most), max(least_and_most)
    questions = np.unique(np.array(keys, np.int64))
    counts["repeated_questions"] = len(keys) - questions.size
    total, (uncertified, examples) = totals["missing_answers"], spelling_only(spellings)
    figures: dict[str, Any] = {
        "n": len(keys),
        "task": task,
        "candidates": {**_ends(ends, "candidates"), "total": total},
        **{name: share_of(counts[name], totals[name]) for name in Shares.__annotations__},
        "evidence": {"passages": _ends(ends, "passages"), "characters": _ends(ends, "characters")},
        "spelling_only": {**share_of(uncertified, total), "examples": examples},
    }
    for name in sorted(columns):
        lowest, highest = ends.get(name, (None, None))
        column = {**share_of(columns[name], total), "lowest": lowest, "highest": highest}
        figures.setdefault("columns", {})[name] = column
    return cast(PoolContents, figures), questions


def _counts(row: Row, case: Case) -> dict[str, tuple[int, int]]:
    """Return (part, whole) of a question for each share. Only all questions together show `repeated_questions`."""
    texts = [candidate.text for candidate in row.candidates if candidate.text]
    readings, n = [read_sample(candidate.text, case.type) for candidate in row.candidates], len(row.candidates)
    right = bool(row.gold) and any(case.type.right(one, row.gold) for one in {*case.question.answers})
    return {
        "homogeneous": (case.vote.n_classes == 1, 1),
        "unanswered": (case.vote.n_classes == 0, 1),
        "any_correct": (right, bool(row.gold)),
        "missing_answers": (case.vote.classes.count(None), n),
        "unclosed_thinking": (sum(reading.is_open for reading in readings), n),
        "cut_texts": (sum(reading.cut for reading in readings), n),
        "repeated_texts": (len(texts) - len({*texts}), n),
        "repeated_questions": (0, 1),
        "without_evidence": (not row.evidence, 1),
    }


def _measures(row: Row) -> Iterator[tuple[str, Sequence[float]]]:
    """What has a least and a most: the sizes of a question, and the scores of its candidates."""
    yield "candidates", [len(row.candidates)]
    yield "passages", [len(row.evidence)]
    yield "characters", [sum(len(passage.text) for passage in row.evidence)]
    for candidate in row.candidates:
        for name, score in candidate.scores.items():
            yield f"scores.{name}", score if isinstance(score, list) else [score]


def _columns(candidate: CandidateRow) -> Iterator[str]:
    yield from (name for name in ("confidence", "logprobs") if getattr(candidate, name) is not None)
    yield from ["tags"] if candidate.tags else []
    yield from (f"scores.{name}" for name in candidate.scores)


def _ends(ends: Mapping[str, tuple[float, float]], name: str) -> Ends:
    fewest, most = ends.get(name, (None, 0))
    return {"fewest": None if fewest is None else int(fewest), "most": int(most)}
