"""The contents of a pool, before any role is asked: candidates, agreement, missing answers, evidence, repetitions.

These numbers do not depend on a rule. The share of questions with a right candidate is the best possible score of any
choice among candidates; on questions whose candidates all agree there is nothing to choose.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NotRequired

import numpy as np
from typing_extensions import TypedDict

from eldgr_dspy.cases import Case
from eldgr_dspy.extraction import read_sample
from eldgr_dspy.pools import Pool
from eldgr_dspy.rows import CandidateRow, Row
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.words import Task


class Percent(TypedDict):
    """A count out of a total, and the percentage; None if the total is 0."""

    count: int
    of: int
    percent: float | None


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


Shared = Literal[
    "homogeneous",
    "unanswered",
    "any_correct",
    "missing_answers",
    "unclosed_thinking",
    "cut_texts",
    "repeated_texts",
    "repeated_questions",
    "without_evidence",
]
"""The figures of a pool that are shares."""


class Column(Percent):
    """How many candidates state a column, and between what a score lies; None of other columns."""

    lowest: float | None
    highest: float | None


class PoolContents(TypedDict):
    """What a pool holds.

    Attributes:
        homogeneous: Questions with one class of answers, those without an answer aside. unanswered: without any answer.
        any_correct: Questions with a right candidate, of those with a gold answer.
        missing_answers: Of all candidates. unclosed_thinking: whose thinking never ends, so that they have no answer.
        cut_texts: Candidates that ran on into a new turn or a new question, which is not read.
        repeated_texts: Candidates whose text an earlier one of the question has.
        repeated_questions: Those whose folded text an earlier one has.
        columns: What is stated of candidates, each score by its name; absent if nothing is.
    """

    n: int
    task: Task
    candidates: CandidateEnds
    homogeneous: Percent
    unanswered: Percent
    any_correct: Percent
    missing_answers: Percent
    unclosed_thinking: Percent
    cut_texts: Percent
    repeated_texts: Percent
    repeated_questions: Percent
    without_evidence: Percent
    evidence: Evidence
    columns: NotRequired[dict[str, Column]]


def contents_of(pool: Pool) -> "Contents":
    """Read a pool through once and return what it holds."""
    contents = Contents(pool.task)
    for row in pool.rows():
        contents.add(row)
    return contents


class Contents:
    """The figures of one pool, taken row by row; eight bytes a question are kept."""

    def __init__(self, task: Task) -> None:
        self.task: Task = task
        self.n = self.n_scored = 0
        self._homogeneous = self._unanswered = self._right = self._bare = 0
        self._missing = self._repeated = self._unclosed = self._cut = 0
        self._candidates, self._passages, self._characters = _Range(), _Range(), _Range()
        self._questions = array("q")
        self._columns = _Columns()

    def add(self, row: Row) -> None:
        """Take one question."""
        self.n += 1
        self._questions.append(_digest(row.question))
        case = Case(row.to_question())
        self._count_answers(row, case)
        if row.gold:
            self.n_scored += 1
            self._right += any(case.type.right(answer, row.gold) for answer in dict.fromkeys(case.question.answers))
        self._repeated += _repeated(row.candidates)
        for candidate in row.candidates:
            self._columns.add(candidate)
            reading = read_sample(candidate.text, case.type)
            self._unclosed += reading.unclosed
            self._cut += reading.cut
        self._bare += not row.evidence
        self._passages.add(len(row.evidence))
        self._characters.add(sum(len(passage.text) for passage in row.evidence))

    def _count_answers(self, row: Row, case: Case) -> None:
        vote = case.vote
        self._candidates.add(len(row.candidates))
        self._missing += vote.classes.count(None)
        self._homogeneous += vote.n_classes == 1
        self._unanswered += vote.n_classes == 0

    def figures(self) -> PoolContents:
        """Return the figures as JSON has them."""
        repeated_questions = self.n - len(np.unique(self._keys()))
        figures: PoolContents = {
            "n": self.n,
            "task": self.task,
            "candidates": {**self._candidates.ends(), "total": self._candidates.total},
            "homogeneous": _share(self._homogeneous, self.n),
            "unanswered": _share(self._unanswered, self.n),
            "any_correct": _share(self._right, self.n_scored),
            "missing_answers": _share(self._missing, self._candidates.total),
            "unclosed_thinking": _share(self._unclosed, self._candidates.total),
            "cut_texts": _share(self._cut, self._candidates.total),
            "repeated_texts": _share(self._repeated, self._candidates.total),
            "repeated_questions": _share(repeated_questions, self.n),
            "without_evidence": _share(self._bare, self.n),
            "evidence": {"passages": self._passages.ends(), "characters": self._characters.ends()},
        }
        if columns := self._columns.figures(self._candidates.total):
            figures["columns"] = columns
        return figures

    def shared(self, other: "Contents") -> int:
        """Return how many questions, by their folded text, are in this pool and in the other one."""
        return len(np.intersect1d(self._keys(), other._keys()))

    def _keys(self) -> Any:
        return np.frombuffer(self._questions, dtype=np.int64)


class _Range:
    """The least, the most and the sum of some counts."""

    def __init__(self) -> None:
        self.fewest: int | None = None
        self.most = self.total = 0

    def add(self, count: int) -> None:
        self.fewest = count if self.fewest is None else min(self.fewest, count)
        self.most = max(self.most, count)
        self.total += count

    def ends(self) -> Ends:
        return {"fewest": self.fewest, "most": self.most}


class _Columns:
    """How many candidates state each column, and the ends of scores."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._ends: dict[str, tuple[float, float]] = {}

    def add(self, candidate: CandidateRow) -> None:
        self._counts["confidence"] += candidate.confidence is not None
        self._counts["logprobs"] += candidate.logprobs is not None
        self._counts["tags"] += bool(candidate.tags)
        for name, score in candidate.scores.items():
            values = score if isinstance(score, list) else [score]
            values = [*values, *self._ends.get(f"scores.{name}", ())]
            self._counts[f"scores.{name}"] += 1
            self._ends[f"scores.{name}"] = min(values), max(values)

    def figures(self, total: int) -> dict[str, Column]:
        """Return the columns that are stated, in the order of their names."""
        nothing = (None, None)
        stated = sorted(name for name, count in self._counts.items() if count)
        ends = ((name, self._ends.get(name, nothing)) for name in stated)
        return {
            name: {**_share(self._counts[name], total), "lowest": low, "highest": high} for name, (low, high) in ends
        }


def _digest(question: str) -> int:
    """The first eight bytes of a hash; that two of a million questions share them by chance has odds of one in 10^7."""
    digest = hashlib.sha256(folded_question(question).encode("utf-8")).digest()
    return int.from_bytes(digest[:8], signed=True)


def _repeated(candidates: Sequence[CandidateRow]) -> int:
    texts = [candidate.text for candidate in candidates if candidate.text]
    return len(texts) - len(set(texts))


def _share(count: int, of: int) -> Percent:
    return {"count": count, "of": of, "percent": 100.0 * count / of if of else None}
