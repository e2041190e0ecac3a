"""The contents of a pool, before any role is asked: candidates, agreement, missing answers, evidence, repetitions.

These numbers do not depend on a rule. The share of questions with a right candidate is the best possible score of any
choice among candidates; on questions whose candidates all agree there is nothing to choose.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, NotRequired

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from eldgr_dspy.answer_types.extraction import read_sample
from eldgr_dspy.figures.record import share_of
from eldgr_dspy.figures.results.record import Share
from eldgr_dspy.figures.spelling_only import SpellingCount
from eldgr_dspy.formats.rows import CandidateRow, Row
from eldgr_dspy.pools import Pool
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
        self._counts, self._ends = Counter[str](), dict[str, tuple[float, float]]()
        self._spelling_only = SpellingCount()
        self._questions = array("q")

    def add(self, row: Row) -> None:
        """Take one question."""
        case, texts = Case(row.to_question()), [candidate.text for candidate in row.candidates if candidate.text]
        readings = [read_sample(candidate.text, case.type) for candidate in row.candidates]
        self._questions.append(_digest(row.question))
        self._counts.update(
            scored=bool(row.gold),
            total=len(row.candidates),
            homogeneous=case.vote.n_classes == 1,
            unanswered=case.vote.n_classes == 0,
            any_correct=bool(row.gold) and any(case.type.right(one, row.gold) for one in {*case.question.answers}),
            missing_answers=case.vote.classes.count(None),
            unclosed_thinking=sum(reading.unclosed for reading in readings),
            cut_texts=sum(reading.cut for reading in readings),
            repeated_texts=len(texts) - len({*texts}),
            without_evidence=not row.evidence,
        )
        self._widen("candidates", [len(row.candidates)])
        self._widen("passages", [len(row.evidence)])
        self._widen("characters", [sum(len(passage.text) for passage in row.evidence)])
        for candidate in row.candidates:
            self._add_columns(candidate)
        self._spelling_only.add(case)

    def _add_columns(self, candidate: CandidateRow) -> None:
        names = {name for name in ("confidence", "logprobs") if getattr(candidate, name) is not None}
        names |= {"tags"} if candidate.tags else set()
        for name, score in candidate.scores.items():
            names.add(f"scores.{name}")
            self._widen(f"scores.{name}", score if isinstance(score, list) else [score])
        self._counts.update(f"stated {name}" for name in names)

    def _widen(self, name: str, values: Iterable[float]) -> None:
        ends = [*values, *self._ends.get(name, ())]
        self._ends[name] = min(ends), max(ends)

    def figures(self) -> PoolContents:
        """Return the figures as JSON has them."""
        n, total, counts = len(self._questions), self._counts["total"], self._counts
        figures: PoolContents = {
            "n": n,
            "task": self.task,
            "candidates": {**self._of("candidates"), "total": total},
            "homogeneous": share_of(counts["homogeneous"], n),
            "unanswered": share_of(counts["unanswered"], n),
            "any_correct": share_of(counts["any_correct"], counts["scored"]),
            "missing_answers": share_of(counts["missing_answers"], total),
            "unclosed_thinking": share_of(counts["unclosed_thinking"], total),
            "cut_texts": share_of(counts["cut_texts"], total),
            "repeated_texts": share_of(counts["repeated_texts"], total),
            "repeated_questions": share_of(n - len(np.unique(self._keys())), n),
            "without_evidence": share_of(counts["without_evidence"], n),
            "evidence": {"passages": self._of("passages"), "characters": self._of("characters")},
            "spelling_only": {
                **share_of(self._spelling_only.count, total),
                "examples": self._spelling_only.examples,
            },
        }
        columns = dict[str, Column]()
        for name in sorted(name.removeprefix("stated ") for name in counts if name.startswith("stated ")):
            lowest, highest = self._ends.get(name, (None, None))
            columns[name] = {**share_of(counts[f"stated {name}"], total), "lowest": lowest, "highest": highest}
        return {**figures, "columns": columns} if columns else figures

    def _of(self, name: str) -> Ends:
        fewest, most = self._ends.get(name, (None, 0))
        return {"fewest": None if fewest is None else int(fewest), "most": int(most)}

    def shared(self, other: "Contents") -> int:
        """Return how many questions, by their folded text, are in this pool and in the other one."""
        return len(np.intersect1d(self._keys(), other._keys()))

    def _keys(self) -> Any:
        return np.frombuffer(self._questions, dtype=np.int64)


def _digest(question: str) -> int:
    """The first eight bytes of a hash; that two of a million questions share them by chance has odds of one in 10^7."""
    digest = hashlib.sha256(folded_question(question).encode("utf-8")).digest()
    return int.from_bytes(digest[:8], signed=True)
