"""Collect a pool from a program: call it several times on each question of a development set.

A sample goes to the journal in `NAME.collected`, next to the pool, as soon as it arrives. So a killed collection
resumes without asking for it again. The pool is written from the journal, whole or not at all, once no sample is
missing.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.answer_types.extraction import read_sample
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.formats.journal_lines import PROGRAM
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.journal import Journal
from eldgr_dspy.pools import Pool, write_pool
from eldgr_dspy.programs.pools.devsets import DevQuestion, program_named, read_devset
from eldgr_dspy.programs.run.plan import Collection
from eldgr_dspy.programs.run.role_calls import metered_settings, role_call
from eldgr_dspy.programs.run.role_queries import Books
from eldgr_dspy.programs.run.run_directory import RunDirectory
from eldgr_dspy.programs.run.runner import Watcher
from eldgr_dspy.programs.run.sample_queries import SampleQuery, sample_key
from eldgr_dspy.programs.run.scheduling import map_ordered
from eldgr_dspy.programs.run.signals import Signals
from eldgr_dspy.programs.run.trial_decisions import digits
from eldgr_dspy.programs.service.threads import reused_threads
from eldgr_dspy.rule.consultations import Consultation

__all__ = ["Collected", "Collection", "collect"]


@dataclass(frozen=True, slots=True)
class Collected:
    """What was collected.

    Attributes:
        pool: The pool.
        unread: How many samples have no answer because an LM's reply could not be read.
        failed: How many have none because they failed. The same command asks for them again.
        bare: How many questions have no passages.
        unusable: How many samples have a column that could not be used. fault: What was wrong with the first.
        unclosed: How many samples have no answer because their thinking never ends.
        cut: How many ran on into a new turn or a new question, which was not read.
    """

    pool: Pool
    unread: int
    failed: int
    bare: int
    unusable: int = 0
    fault: str = ""
    unclosed: int = 0
    cut: int = 0


def collect(collection: Collection, watcher: Watcher | None = None, lm: dspy.BaseLM | None = None) -> Collected:
    """Collect a pool, or resume an interrupted collection.

    Args:
        collection: What to collect. watcher: Callbacks. A row is a question.
        lm: For the predictors without an LM of their own; None: that of DSPy's settings, also if the module sets it.

    Raises:
        ArgumentError, PoolError: The program or the questions cannot be used, or the file is not one that was
            collected.
        RunChangedError, RunLockedError: The file was collected from another program, or is being collected.
        RunStoppedError: Too many questions failed, or a limit is reached. The same call resumes.
        KeyboardInterrupt: On ctrl-C, once the calls under way have been awaited. The same call resumes.
    """
    program = program_named(collection.program)
    questions = read_devset(collection.devset, program, collection.task, collection.answer_field)[: collection.limit]
    out, folder = Path(collection.out), collection.folder
    if out.exists() and not folder.exists():
        raise ArgumentError(f"{out} exists and was not collected: {folder.name} is not next to it. Give another --out.")
    signals = Signals()
    with (
        signals,
        RunDirectory(folder, fresh=collection.fresh) as directory,
        reused_threads(),
        dspy.context(lm=lm or dspy.settings.lm),
        metered_settings(),
    ):
        sampling = _Sampling(collection, directory, program, len(questions))
        sampling.draw(questions, watcher or Watcher(), signals)
        return _write_pool(collection, directory.journal.path, questions)


class _Sampling:
    """Draws the samples that a journal lacks."""

    def __init__(self, collection: Collection, directory: RunDirectory, program: dspy.Module, total: int) -> None:
        """State what shapes a sample, or refuse the samples of another program."""
        self._collection, self._call = collection, role_call(program)
        settings: dict[str, Any] = {
            "program": collection.program,
            "task": collection.task,
            "answer": collection.answer_field,
            "passages": collection.passages,
            "temperature": collection.temperature,
        }
        settings |= {"columns": True} if collection.columns else {}  # a collection without them is as it was before
        with suppress(OSError, TypeError):  # a script or a notebook, whose module has no file of that name
            module = sys.modules[collection.program.partition(":")[0]]
            settings["source"] = digits(inspect.getsource(module).encode())
        directory.claim(("settings", "collection", settings), ("role", PROGRAM, self._call.details))
        self._books = Books.of(directory, collection, total)
        self._came: list[None] = [None] * len(directory.journal)

    def draw(self, questions: Sequence[DevQuestion], watcher: Watcher, signals: Signals) -> None:
        """Draw them, in threads."""
        missing = [(one, number) for one in questions for number in self._missing(one, watcher)]
        left = Counter(one.entry.name for one, _ in missing)
        watcher.on_start(len(questions))
        for _ in range(len(questions) - len(left)):
            watcher.on_row()

        def steps(item: tuple[DevQuestion, int]) -> Generator[SampleQuery, Consultation, None]:
            query = SampleQuery(*item, self._collection, self._call, self._books, self._came)
            watcher.on_consultation((yield query))

        def stop(error: BaseException) -> None:
            self._books.budget.stop("The collection was stopped.")
            if isinstance(error, KeyboardInterrupt):
                watcher.on_interrupt()

        limits = self._collection.workers, self._collection.timeout
        try:
            with map_ordered(steps, missing, *limits, stop, signals.look) as results:
                for (one, _), _ in zip(missing, results, strict=True):
                    left[one.entry.name] -= 1
                    if not left[one.entry.name]:
                        watcher.on_row()
        finally:
            self._books.spending.close()
            self._books.journal.flush()

    def _missing(self, question: DevQuestion, watcher: Watcher) -> Iterator[int]:
        for number in range(1, self._collection.n + 1):
            entry = self._books.journal.find(sample_key(question.entry.name, number))
            if entry is None:
                yield number
                continue
            if (entry.content or {}).get("inputs") != question.hash:
                raise RunChangedError(
                    f"{question.entry.where}: the question {question.entry.name!r:.80} was collected with other inputs."
                    " Undo the change, give it another id, give another --out, or start anew with --fresh."
                )
            watcher.on_consultation(entry)


def _write_pool(collection: Collection, path: Path, questions: Sequence[DevQuestion]) -> Collected:
    """Write the pool from the journal."""
    counts, faults = Counter[str](), list[str]()

    def rows(journal: Journal) -> Iterator[Row]:
        for one in questions:
            entries = [journal.find(sample_key(one.entry.name, number)) for number in range(1, collection.n + 1)]
            counts.update("failed" if entry is None else entry.outcome for entry in entries)
            samples = [entry.content or {} if entry is not None else {} for entry in entries]
            faults.extend(sample["unusable"][0] for sample in samples if sample.get("unusable"))
            passages = dict.fromkeys(Passage(*pair) for sample in samples for pair in sample.get("passages", ()))
            counts["bare"] += not passages
            candidates = list[dict[str, Any]]()
            for number, sample in enumerate(samples, start=1):
                fields = {"text": sample.get("text", ""), "answer": sample.get("answer"), "source": f"sample {number}"}
                candidates.append(fields | sample.get("columns", {}))
                reading = read_sample(sample.get("text", ""), collection.task)
                counts.update(unclosed=reading.unclosed, cut=reading.cut)
            yield one.row(collection.task, candidates, [*passages])

    with Journal(path) as journal:
        pool = write_pool(collection.out, rows(journal))
    fault = faults[0] if faults else ""
    asked_for = counts["abstained"], counts["failed"], counts["bare"]
    return Collected(pool, *asked_for, len(faults), fault, counts["unclosed"], counts["cut"])
