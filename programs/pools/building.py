"""Make a pool from files of predictions: read, join question by question, check, and write in the requested order."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import realpath  # of a loop of links it makes no error
from pathlib import Path
from typing import Any, get_args

from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import Pool, pool_name, write_pool
from eldgr_dspy.programs.pools.csv_files import Columns, Field
from eldgr_dspy.programs.pools.entries import NOT_GOLD, By, Entry, Sample, plain_name
from eldgr_dspy.programs.pools.entry_store import QUESTIONS, EntryStore
from eldgr_dspy.programs.pools.predictions import Layout, read_predictions
from eldgr_dspy.programs.pools.question_files import Evidence, read_questions
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.words import Mark, Task


@dataclass(frozen=True, slots=True)
class Recipe:
    """The sources and settings of a pool."""

    sources: Sequence[Path]  # the candidates of a question are in their order
    task: Task
    questions: Path | None = None  # questions, gold answers and evidence; by default they are in the first source
    layout: Layout | None = None  # of all sources; by default each is recognised
    by: By | None = None  # by default the id if every row has one, else the question
    evidence: Evidence = "paragraphs"
    shuffle: int | None = None  # a seed; without one the candidates keep their order
    unfinished: bool = False  # whether a log of inspect may be one that failed, was cancelled or is still running
    columns: Mapping[Field, Sequence[str]] = field(default_factory=dict)


@dataclass(slots=True)
class BuildResult:
    """The pool that was written, and what became of its sources."""

    pool: Pool
    by: By
    left_out: int = 0  # questions without a prediction
    forms: Counter[str] = field(default_factory=Counter)  # answers by the form in which they were found in a text
    lacking: Sequence[str] = ()  # what incomplete sources lack, a sentence each
    cut: int = 0  # samples without an answer, because they stopped at their limit before they marked one


def build_pool(recipe: Recipe, out: Path) -> BuildResult:
    """Join files of predictions on the same questions into a pool and write it, whole or not at all."""
    _refuse_same_files(recipe, out)
    with EntryStore() as store:
        files = _JoinedFiles(recipe, store)
        pool = write_pool(out, files.rows())
        return BuildResult(pool, files.by, files.left_out, files.forms, files.lacking, files.cut)


def shuffled_order(n: int, seed: int, id: str) -> list[int]:
    """Return the positions 0 to n-1 in an order that depends on n, the seed and the question's id alone."""

    # Source: ours. By SHA-256, so that no library version changes the order. Over seeds each order is equally likely.
    def key(position: int) -> bytes:
        return hashlib.sha256(f"shuffle {seed}\0{position}\0{id}".encode()).digest()

    return sorted(range(n), key=key)


def _refuse_same_files(recipe: Recipe, out: Path) -> None:
    if not recipe.sources:
        raise ArgumentError("Give at least one file of predictions.")
    twice = next((path for path, n in Counter(map(realpath, recipe.sources)).items() if n > 1), None)
    if twice:
        raise ArgumentError(f"{twice} is given twice, so its candidates would vote twice; give it once.")
    if realpath(out) in {realpath(path) for path in (*recipe.sources, recipe.questions) if path}:
        raise ArgumentError(f"{out} is one of the files to read; give the pool another name.")


class _JoinedFiles:
    def __init__(self, recipe: Recipe, store: EntryStore) -> None:
        self._recipe, self._store = recipe, store
        self._main = 1 if recipe.questions is None else QUESTIONS
        self._sources = dict(enumerate(recipe.sources, start=1))
        names = [pool_name(path).removesuffix(".json") for path in recipe.sources]
        of_paths = zip(names, recipe.sources, strict=True)
        self._labels = [name if names.count(name) == 1 else path.as_posix() for name, path in of_paths]
        self.by: By = "question"
        self.left_out = self.cut = 0
        self.forms = Counter[str]()
        self.lacking = list[str]()

    def rows(self) -> Iterator[Row]:
        """Yield one row a question, in the order of the questions."""
        recipe, columns = self._recipe, Columns(self._recipe.columns, self._recipe.by)
        if recipe.questions is not None:
            self._add(QUESTIONS, recipe.questions, read_questions(recipe.questions, recipe.evidence, columns), columns)
        options: dict[str, Any] = {"unfinished": recipe.unfinished, "notes": self.lacking, "columns": columns}
        for source, path in self._sources.items():
            self._add(source, path, read_predictions(path, recipe.layout, **options), columns)
        columns.refuse_strangers()
        self.by = self._join_field()
        self._check()
        for entry in self._store.entries(self._main):
            hits = [self._store.find(source, self.by, entry) for source in self._sources]
            if any(hits):
                yield self._row(entry, [hit for hit in hits if hit])
            else:
                self.left_out += 1

    def _add(self, source: int, path: Path, entries: Iterable[Entry], columns: Columns) -> None:
        """Keep the entries of a file; tell which fields may hold gold answers if the questions come without any."""
        has_gold = False
        for entry in entries:
            self._store.add(source, entry)
            has_gold = has_gold or bool(entry.gold)
        others = {name for names in self._recipe.columns.values() for name in names}
        spare = [f"{name!r:.80}" for name in sorted(columns.fields - others) if plain_name(name) not in NOT_GOLD][:10]
        if source == self._main and spare and not has_gold:
            self.lacking.append(f"{path}: no gold answer was read; if {' or '.join(spare)} holds it, name it gold.")
        elif columns.spare:
            named_so = ", ".join(f"{name!r:.80}" for name in columns.spare)
            self.lacking.append(f"{path}: columns that are not read: {named_so}. --column FIELD=NAME reads one.")
        columns.spare.clear()

    def _join_field(self) -> By:
        """Return what joins the files: the field asked for, else the id if every row has one, else the question."""
        by: By = self._recipe.by or ("question" if self._store.lacks("id") else "id")
        without = self._store.lacks(by)
        if without:
            hint = " (not every row has an id)" if self._recipe.by is None else ""
            raise PoolError(f"{without.where}: {by} is missing, but joins the files{hint}; add it.")
        return by

    def _check(self) -> None:
        """Refuse files that do not fit each other, before a row is made."""
        main, by = self._main, self.by
        for source in sorted({main, *self._sources}):
            self._store.refuse_twins(source, by)
        self._store.refuse_twins(main, "id")
        spine = self._recipe.questions or self._recipe.sources[0]
        for source, path in self._sources.items():
            self._refuse(*self._store.strangers(source, main, by), path, f"that {spine} does not have")
            self._refuse(*self._store.gaps(source, main, by), path, "without a prediction here, unlike others")

    def _refuse(self, n: int, first: Sequence[Entry], path: Path, what: str) -> None:
        if n:
            by_id = self.by == "id"
            keys = (f"id {one.id!r:.80}" if by_id else f"{one.question!r:.80}" for one in first)
            listing = ", ".join(f"{key} ({one.where})" for key, one in zip(keys, first, strict=True))
            more = ", ..." if n > len(first) else "."
            raise PoolError(
                f"{path}: {questions(n)} {what}: {listing}{more} Give files on the same questions, "
                f"or join them by {'question' if by_id else 'id'}."
            )

    def _row(self, question: Entry, entries: Sequence[Entry]) -> Row:
        if question.question is None:
            raise PoolError(f"{question.where}: question is missing; add it, or give a file of questions.")
        text = folded_question(question.question)
        for entry in entries:
            other = folded_question(entry.question or "")
            if text not in other and other not in text:  # a prompt may contain the question
                raise PoolError(
                    f"{entry.where}: id {entry.id!r:.80} has the question {entry.question!r:.80}, but another in "
                    f"{question.where}: {question.question!r:.80}. The ids name different questions; join by --by "
                    "question, or fix them."
                )
        samples = [
            (sample, sample.source or (label if len(entry.samples) == 1 else f"{label} #{number}"))
            for label, entry in zip(self._labels, entries, strict=True)
            for number, sample in enumerate(entry.samples, start=1)
        ]
        if self._recipe.shuffle is not None:
            order = shuffled_order(len(samples), self._recipe.shuffle, question.name)
            samples = [samples[index] for index in order]
        return question.row(self._recipe.task, (self._candidate(*pair) for pair in samples))

    def _candidate(self, sample: Sample, label: str) -> dict[str, Any]:
        answer = sample.answer
        if not sample.final:
            extraction = extract_answer(sample.text, self._recipe.task)
            if extraction and sample.cut and extraction.form not in get_args(Mark):
                extraction, self.cut = None, self.cut + 1
            answer = extraction.answer if extraction else None
            self.forms.update([extraction.form] if extraction else [])
        columns = sample.columns.model_dump() if sample.columns else {}
        return {"text": sample.text, "answer": answer, "source": label, **columns}
