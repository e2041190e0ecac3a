"""A pool made of files of predictions: read, joined question by question, checked, in the order asked for."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.extraction import extract_answer
from eldgr_dspy.formatting import questions
from eldgr_dspy.pools import Pool, pool_name, write_pool
from eldgr_dspy.programs.pools.entries import Entry, Sample, id_of_question
from eldgr_dspy.programs.pools.entry_store import QUESTIONS, By, Shelf, Unaligned
from eldgr_dspy.programs.pools.predictions import Layout, read_predictions
from eldgr_dspy.programs.pools.questions import Evidence, read_questions
from eldgr_dspy.rows import Row, validate
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.words import Task


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a pool is made of.

    Attributes:
        sources: Files of predictions; the candidates of a question stand in their order.
        task: The task of all questions.
        questions: A file of questions, gold answers and evidence; None: they are in the first source.
        layout: The layout of all sources; None: each is recognised.
        by: What joins the files; None: the id if every row has one, else the question.
        evidence: What the evidence of a row of HotpotQA is.
        shuffle: A seed, with which the candidates of each question are put in an order that depends on the seed, the
            question's id and how many there are; None: they keep their order.
        unfinished: Whether a log of inspect is taken that failed, was cancelled or still runs.
    """

    sources: Sequence[Path]
    task: Task
    questions: Path | None = None
    layout: Layout | None = None
    by: By | None = None
    evidence: Evidence = "paragraphs"
    shuffle: int | None = None
    unfinished: bool = False


@dataclass(slots=True)
class Built:
    """What came of building.

    Attributes:
        pool: The pool that was written.
        by: What joined the files.
        left_out: How many questions of the file of questions have no prediction.
        forms: How many answers were found by each form of `eldgr_dspy.extraction`, those that were given aside.
        lacking: What sources lack that are not whole, a sentence each.
    """

    pool: Pool
    by: By
    left_out: int = 0
    forms: Counter[str] = field(default_factory=Counter)
    lacking: Sequence[str] = ()


def build_pool(recipe: Recipe, out: Path) -> Built:
    """Join files of predictions into a pool and write it, whole or not at all.

    Every source must be on the same questions. Questions of `recipe.questions` that no source is on are left out. Where
    files are joined by id and both have the question's text, the texts must agree: one contains the other, folded.

    Args:
        recipe: What the pool is made of.
        out: The file, in the format of its name.

    Raises:
        ArgumentError: A file is given twice, or `out` is one of those read.
        PoolError: A file cannot be read, or the files don't fit each other; naming file, line and the first ids.
        OSError: The pool, or what is set aside on disk while it is made, cannot be written.
    """
    _refuse_same_files(recipe, out)
    with Shelf() as shelf:
        joined = _Joined(recipe, shelf)
        pool = write_pool(out, joined.rows())
        return Built(pool, joined.by, joined.left_out, joined.forms, joined.lacking)


def shuffled_order(n: int, seed: int, id: str) -> list[int]:
    """Return the positions 0 to n-1 in an order that depends on n, the seed and the question's id alone.

    Source: ours. Sorted by a SHA-256 of seed, id and position, so that no version of a library changes the order; over
    seeds each order is as likely.
    """

    def key(position: int) -> bytes:
        return hashlib.sha256(f"shuffle {seed}\0{position}\0{id}".encode()).digest()

    return sorted(range(n), key=key)


def _refuse_same_files(recipe: Recipe, out: Path) -> None:
    read = [*recipe.sources, *filter(None, [recipe.questions])]
    if not recipe.sources:
        raise ArgumentError("There is no file of predictions; give at least one.")
    twice = next((path for path, n in Counter(path.resolve() for path in recipe.sources).items() if n > 1), None)
    if twice:
        raise ArgumentError(f"{twice} is given twice, and its candidates would vote twice; give it once.")
    if out.resolve() in {path.resolve() for path in read}:
        raise ArgumentError(f"{out} is one of the files that are read; give the pool another name.")


class _Joined:
    """Files on a shelf, and the rows that they make together."""

    def __init__(self, recipe: Recipe, shelf: Shelf) -> None:
        self._recipe, self._shelf = recipe, shelf
        self._asked = 1 if recipe.questions is None else QUESTIONS
        self._labels = _labels(recipe.sources)
        self.by: By = "question"
        self.left_out = 0
        self.forms: Counter[str] = Counter()
        self.lacking: list[str] = []

    def rows(self) -> Iterator[Row]:
        """Read all files, check that they fit each other, and yield a row a question in the order of the questions."""
        self._read()
        self.by = self._chosen()
        self._check()
        for entry in self._shelf.entries(self._asked):
            found = [self._shelf.find(source, self.by, entry) for source in self._numbers()]
            if any(found):
                yield self._row(entry, [one for one in found if one])
            else:
                self.left_out += 1

    def _read(self) -> None:
        if self._recipe.questions is not None:
            for entry in read_questions(self._recipe.questions, self._recipe.evidence):
                self._shelf.put(QUESTIONS, entry)
        for source, path in zip(self._numbers(), self._recipe.sources, strict=True):
            unfinished = self._recipe.unfinished
            for entry in read_predictions(path, self._recipe.layout, unfinished=unfinished, told=self.lacking):
                self._shelf.put(source, entry)

    def _numbers(self) -> range:
        return range(1, len(self._recipe.sources) + 1)

    def _chosen(self) -> By:
        """What joins the files: as asked for, else the id where every row has one, else the question."""
        by: By = self._recipe.by or ("question" if self._shelf.lacks("id") else "id")
        without = self._shelf.lacks(by)
        if without:
            unasked = " (not every row has an id)" if self._recipe.by is None else ""
            raise PoolError(f"{without.where}: {by} is missing, by which the files are joined{unasked}; add it.")
        return by

    def _check(self) -> None:
        """Refuse files that do not fit each other, before a row is made."""
        asked, by = self._asked, self.by
        for source in sorted({asked, *self._numbers()}):
            self._shelf.refuse_twins(source, by)
        self._shelf.refuse_twins(asked, "id")
        spine = self._recipe.questions or self._recipe.sources[0]
        for source, path in zip(self._numbers(), self._recipe.sources, strict=True):
            self._refuse(self._shelf.strangers(source, asked, by), path, f"on which {spine} has nothing")
            self._refuse(self._shelf.unanswered(source, asked, by), path, "without a prediction here, unlike others")

    def _refuse(self, found: Unaligned, path: Path, what: str) -> None:
        if found.n:
            named = ", ".join(f"{_named(entry, self.by)} ({entry.where})" for entry in found.first)
            more = ", ..." if found.n > len(found.first) else "."
            raise PoolError(
                f"{path}: {questions(found.n)} {what}: {named}{more} Give files on the same questions, "
                f"or join them by {'question' if self.by == 'id' else 'id'}."
            )

    def _row(self, asked: Entry, found: Sequence[Entry]) -> Row:
        """The row of a question, from an entry of each source."""
        if asked.question is None:
            raise PoolError(f"{asked.where}: question is missing; add it, or give a file of questions.")
        for entry in found:
            _refuse_other_question(asked.question, entry, asked.where)
        samples = [
            (sample, label if len(entry.samples) == 1 else f"{label} #{number}")
            for label, entry in zip(self._labels, found, strict=True)
            for number, sample in enumerate(entry.samples, start=1)
        ]
        name = id_of_question(asked.question) if asked.id is None else asked.id
        if self._recipe.shuffle is not None:
            samples = [samples[index] for index in shuffled_order(len(samples), self._recipe.shuffle, name)]
        record = {
            "id": name,
            "question": asked.question,
            "task": self._recipe.task,
            "candidates": [self._candidate(*one) for one in samples],
            "evidence": [{"title": passage.title, "text": passage.text} for passage in asked.evidence],
            "gold": list(asked.gold),
        }
        return validate(record, asked.where)

    def _candidate(self, sample: Sample, label: str) -> dict[str, str | None]:
        answer = sample.answer
        if not sample.stated:
            found = extract_answer(sample.text, self._recipe.task)
            answer = found.answer if found else None
            self.forms.update([found.form] if found else [])
        return {"text": sample.text, "answer": answer, "source": label}


def _refuse_other_question(question: str, entry: Entry, where: str) -> None:
    """Refuse an entry whose question is another one; a prompt that contains the question is none."""
    one, other = folded_question(question), folded_question(entry.question or "")
    if one not in other and other not in one:
        raise PoolError(
            f"{entry.where}: id {entry.id!r:.80} has the question {entry.question!r:.80}, and another in {where}: "
            f"{question!r:.80}. The ids name different questions; join by --by question, or mend them."
        )


def _named(entry: Entry, by: By) -> str:
    return f"id {entry.id!r:.80}" if by == "id" else f"{entry.question!r:.80}"


def _labels(sources: Sequence[Path]) -> list[str]:
    """What the candidates of each source are said to come from: the file's name, or its path where names are alike."""
    names = [pool_name(path).removesuffix(".json") for path in sources]
    return [name if names.count(name) == 1 else path.as_posix() for name, path in zip(names, sources, strict=True)]
