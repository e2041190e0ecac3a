"""The contents of a pool, before any role is asked: candidates, agreement, missing answers, evidence, repetitions.

These numbers do not depend on a rule. The share of questions with a right candidate is the best possible score of any
choice among candidates; on questions whose candidates all agree there is nothing to choose.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NotRequired, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from eldgr_dspy.answer_types.extraction import read_sample
from eldgr_dspy.figures.decided_rows import Spellings, spellings_of
from eldgr_dspy.figures.distinct import Column as Coded
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


class CandidateEnds(Ends):
    """The same of candidates, and how many there are in all."""

    total: int


class Evidence(TypedDict):
    """Passages and characters a question, titles aside."""

    passages: Ends
    characters: Ends


class SpellingOnly(Share):
    """How many candidates are uncertified only because the evidence spells their quantity in another way.

    Attributes:
        examples: Up to five of their answers, each with the spelling of the evidence.
    """

    examples: dict[str, str]


class Column(Share):
    """How many candidates state a column, and between what a score lies; None of other columns."""

    lowest: float | None
    highest: float | None


class Shares(TypedDict):
    """The figures of a pool that are shares: of its questions, of those with a gold answer, or of its candidates.

    Attributes:
        homogeneous: Questions with one class of answers, those without an answer aside.
        unclosed_thinking: Candidates whose thinking never ends, so that they have no answer.
        cut_texts: Candidates that ran on into a new turn or a new question, which is not read.
        repeated_texts: Candidates whose text an earlier one of the question has.
        repeated_questions: Those whose folded text an earlier one has.
    """

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
    """What a pool holds; `columns` has what is stated of candidates, each score by its name; absent if nothing is."""

    n: int
    task: Task
    candidates: CandidateEnds
    evidence: Evidence
    spelling_only: SpellingOnly
    columns: NotRequired[dict[str, Column]]


_OF: Mapping[str, str] = {
    **dict.fromkeys(("homogeneous", "unanswered", "repeated_questions", "without_evidence"), "questions"),
    "any_correct": "scored",
    **dict.fromkeys(("missing_answers", "unclosed_thinking", "cut_texts", "repeated_texts"), "candidates"),
}
"""What each share is a share of."""


def contents_of(task: Task, rows: Iterable[Row]) -> tuple[PoolContents, NDArray[np.int64]]:
    """Read rows through once; return what they hold, and a hash of each different question, by its folded text."""
    counts, columns, ends = Counter[str](), Counter[str](), dict[str, tuple[float, float]]()
    spellings, keys = Coded[Spellings](), array("q")
    for row in rows:
        case = Case(row.to_question())
        keys.append(_digest(row.question))
        spellings.append(spellings_of(case))
        counts.update(_counts(row, case))
        columns.update(name for candidate in row.candidates for name in _columns(candidate))
        for name, values in _measures(row):
            least_and_most = [*values, *ends.get(name, ())]
            ends[name] = min(least_and_most), max(least_and_most)
    questions = np.unique(np.array(keys, np.int64))
    counts["repeated_questions"] = len(keys) - questions.size
    total, (count, examples) = counts["candidates"], spelling_only(spellings)
    figures: dict[str, Any] = {
        "n": len(keys),
        "task": task,
        "candidates": {**_ends(ends, "candidates"), "total": total},
        **{name: share_of(counts[name], counts[_OF[name]]) for name in Shares.__annotations__},
        "evidence": {"passages": _ends(ends, "passages"), "characters": _ends(ends, "characters")},
        "spelling_only": {**share_of(count, total), "examples": examples},
    }
    for name in sorted(columns):
        lowest, highest = ends.get(name, (None, None))
        scores = figures.setdefault("columns", {})
        scores[name] = {**share_of(columns[name], total), "lowest": lowest, "highest": highest}
    return cast(PoolContents, figures), questions


def _counts(row: Row, case: Case) -> dict[str, int]:
    texts = [candidate.text for candidate in row.candidates if candidate.text]
    readings = [read_sample(candidate.text, case.type) for candidate in row.candidates]
    return {
        "questions": 1,
        "scored": bool(row.gold),
        "candidates": len(row.candidates),
        "homogeneous": case.vote.n_classes == 1,
        "unanswered": case.vote.n_classes == 0,
        "any_correct": bool(row.gold) and any(case.type.right(one, row.gold) for one in {*case.question.answers}),
        "missing_answers": case.vote.classes.count(None),
        "unclosed_thinking": sum(reading.unclosed for reading in readings),
        "cut_texts": sum(reading.cut for reading in readings),
        "repeated_texts": len(texts) - len({*texts}),
        "without_evidence": not row.evidence,
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


def _digest(question: str) -> int:
    """The first eight bytes of a hash; that two of a million questions share them by chance has odds of one in 10^7."""
    digest = hashlib.sha256(folded_question(question).encode("utf-8")).digest()
    return int.from_bytes(digest[:8], signed=True)
