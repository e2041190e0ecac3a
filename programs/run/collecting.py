"""Collect a pool from a program: call it several times on each question of a development set.

A sample goes to the journal in `NAME.collected`, next to the pool, as soon as it arrives. So a killed collection
resumes without asking for it again. The pool is written from the journal, whole or not at all, once no sample is
missing.
"""

import asyncio
import inspect
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.extraction import read_sample
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, RunChangedError, RunStoppedError, brief, describe_failure, result_of
from eldgr_dspy.formats.columns import COLUMNS, read_columns
from eldgr_dspy.formats.journal_lines import PROGRAM, TOO_LARGE, is_readable
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.journal import Journal
from eldgr_dspy.pools import Pool, write_pool
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.lms.consulting import callable_of, is_too_long
from eldgr_dspy.programs.lms.lms import holds_lm
from eldgr_dspy.programs.lms.rollouts import rollout
from eldgr_dspy.programs.pools.devsets import DevQuestion, load_program, read_devset
from eldgr_dspy.programs.run.evaluation import Watcher
from eldgr_dspy.programs.run.fingerprints import digits
from eldgr_dspy.programs.run.plan import Collection, collected_folder
from eldgr_dspy.programs.run.role_calls import Books, Query, RoleCall, metered_settings, role_call
from eldgr_dspy.programs.run.run_directory import RunDirectory
from eldgr_dspy.programs.run.scheduling import map_in_order
from eldgr_dspy.programs.run.signals import Signals
from eldgr_dspy.programs.samples import (
    UnfitProgramError,
    candidate_of,
    copy_collections,
    passages_of_sample,
    require_prediction,
)
from eldgr_dspy.programs.service.threads import reused_threads
from eldgr_dspy.programs.typed_answers import outputs
from eldgr_dspy.redaction import redact_value
from eldgr_dspy.rule.consultations import Consultation, Key
from eldgr_dspy.showing import encodable

__all__ = ["Collection", "CollectionResult", "collect"]


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What was collected.

    Attributes:
        pool: The pool.
        unreadable: How many samples have no answer because an LM's reply could not be read.
        failures: How many have none because they failed. The same command asks for them again.
        bare: How many questions have no passages.
        unusable: How many samples have a column that could not be used. fault: What was wrong with the first.
        unclosed: How many samples have no answer because their thinking never ends.
        cut: How many ran on into a new turn or a new question, which was not read.
        without_gold: How many questions have no gold answer.
    """

    pool: Pool
    unreadable: int
    failures: int
    bare: int
    unusable: int = 0
    fault: str = ""
    unclosed: int = 0
    cut: int = 0
    without_gold: int = 0


def collect(collection: Collection, watcher: Watcher | None = None, lm: dspy.BaseLM | None = None) -> CollectionResult:
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
    program = load_program(collection.program)
    questions = read_devset(collection.devset, program, collection.task, collection.answer_field)[: collection.limit]
    out, folder = Path(collection.out), collected_folder(Path(collection.out))
    if out.exists() and not folder.exists():
        raise ArgumentError(f"{out} exists and was not collected: {folder.name} is not next to it. Give another --out.")
    watcher, signals = watcher or Watcher(), Signals()
    with (
        signals,
        RunDirectory(folder, fresh=collection.fresh) as directory,
        reused_threads(),
        dspy.context(lm=lm or dspy.settings.lm),
        metered_settings(),
    ):
        call = role_call(program)
        directory.claim(("settings", "collection", _settings(collection)), ("role", PROGRAM, call.details))
        books = Books(directory, collection, len(questions))
        missing = [(one, number) for one in questions for number in _missing(collection, one, books.journal, watcher)]
        to_draw = Counter(one.entry.name for one, _ in missing)
        watcher.on_start(len(questions))
        for _ in range(len(questions) - len(to_draw)):
            watcher.on_row()

        def steps(item: tuple[DevQuestion, int]) -> Generator[_SampleQuery, Consultation, None]:
            watcher.on_consultation((yield _SampleQuery(*item, collection, call, books)))

        stop = partial(books.stop, "collection", watcher.on_interrupt)
        try:
            with map_in_order(steps, missing, collection.workers, collection.timeout, stop, signals.look) as results:
                for (one, _), _ in zip(missing, results, strict=True):
                    to_draw[one.entry.name] -= 1
                    if not to_draw[one.entry.name]:
                        watcher.on_row()
        finally:
            books.spending.close()
            books.journal.flush()
        return _write_pool(collection, directory.journal.path, questions)


def _settings(collection: Collection) -> dict[str, Any]:
    """Return what shapes a sample."""
    settings: dict[str, Any] = {
        "program": collection.program,
        "task": collection.task,
        "answer": collection.answer_field,
        "passages": collection.passages,
        "temperature": collection.temperature,
    }
    settings |= {"columns": True} if collection.columns else {}  # a collection without them is as it was before
    with suppress(OSError, TypeError):  # a script or a notebook, whose module has no file of that name
        settings["source"] = digits(inspect.getsource(sys.modules[collection.program.partition(":")[0]]).encode())
    return settings


def _missing(collection: Collection, question: DevQuestion, journal: Journal, watcher: Watcher) -> Iterator[int]:
    """Yield the numbers of the samples that a question lacks."""
    for number in range(1, collection.n + 1):
        entry = journal.find(_sample_key(question, number))
        if entry is None:
            yield number
            continue
        if (entry.content or {}).get("inputs") != question.hash:
            raise RunChangedError(
                f"{question.entry.where}: the question {question.entry.name!r:.80} was collected with other inputs."
                " Undo the change, give it another id, give another --out, or start anew with --fresh."
            )
        watcher.on_consultation(entry)


def _sample_key(question: DevQuestion, number: int) -> Key:
    return str(number), question.entry.name, PROGRAM


class _SampleQuery(Query):
    """A sample about to be asked for: metered, journaled and counted, as a role is asked."""

    failures = (Exception,)

    def __init__(
        self, question: DevQuestion, number: int, collection: Collection, call: RoleCall, books: Books
    ) -> None:
        super().__init__(_sample_key(question, number), call, books)
        self._question, self._number, self._collection = question, number, collection
        self._name = type(call.module).__name__.removeprefix("Metered")

    def _ask(self) -> Mapping[str, Any]:
        how, inputs, module = self._collection, dict(self._question.inputs), self.call.module
        draw = rollout(module, self._number - 1, how.n, how.temperature, bound=holds_lm(module))
        with draw as (program, trace):
            try:
                call = callable_of(program)
                prediction = call(**copy_collections(inputs))
                prediction = prediction if call is program else asyncio.run(prediction)
                remedy = "give it a forward that is not async, or none besides aforward"
                prediction = result_of(prediction, "program", remedy)
            except (dspy.AdapterParseError, dspy.LMError) as error:
                if not isinstance(error, dspy.AdapterParseError) and not is_too_long(error):
                    raise
                return {"unread": describe_failure(error)}
        hint = "Name the field of the answer with --answer-field."
        prediction = require_prediction(prediction, self._name, how.answer_field, hint)
        candidate = candidate_of(prediction, how.answer_field)
        passages = passages_of_sample(outputs(module), inputs, prediction, trace, how.passages)
        if passages is None and how.passages is not None:
            raise UnfitProgramError(
                f"passages={how.passages!r} must be a field that {self._name} retrieves: of its inputs or its "
                "prediction, or an input of one of its predictors that no LM writes. Name it with --passages."
            )
        options = self._question.entry.options if answer_type(how.task).needs_options else ()
        question = to_question("", [candidate], None, how.task, how.answer_field, options)
        return {
            "text": encodable(question.texts[0]),
            "answer": None if (answer := question.answers[0]) is None else encodable(str(answer)),
            "passages": [[encodable(one.title), encodable(one.text)] for one in passages or ()],
            **(_usable_columns(prediction) if how.columns else {}),
        }

    def _read(self, result: Mapping[str, Any] | Exception) -> dict[str, Any]:
        if isinstance(result, Exception):
            return {"outcome": "failed", "reason": describe_failure(result)}
        inputs = {"inputs": self._question.hash}
        content = redact_value(result) | inputs
        if not is_readable(content):
            return {"outcome": "abstained", "reason": TOO_LARGE, "content": inputs}
        if "unread" in result:
            return {"outcome": "abstained", "reason": content.pop("unread"), "content": content}
        return {"outcome": "ok", "content": content}

    def _count(self, result: Mapping[str, Any] | Exception) -> None:
        """Count a failure to its question. A program that never fits is refused at once."""
        budget = self._books.budget
        if not isinstance(result, Exception):
            budget.earn()
            return
        if isinstance(result, UnfitProgramError) and not (budget.has_success or self._books.journal):
            raise result
        if not isinstance(result, RunStoppedError):
            running = budget.reason is None
            budget.spend(("", self._key[1], self._key[2]), result)
            if running and budget.reason:
                budget.reason += f" It was sample {self._number} of the question {self._question.entry.name!r:.80}."
        budget.check()


def _usable_columns(prediction: dspy.Prediction) -> dict[str, Any]:
    """Return the columns of a prediction, `columns`; and of those that cannot be used what is wrong, `unusable`."""
    columns, unusable = dict[str, Any](), list[str]()
    for name in COLUMNS:
        try:
            columns |= read_columns({name: prediction.get(name)}).model_dump(exclude_defaults=True)
        except ArgumentError as error:
            unusable.append(brief(error))
    return {"columns": columns, "unusable": unusable}


def _write_pool(collection: Collection, path: Path, questions: Sequence[DevQuestion]) -> CollectionResult:
    counts, faults = Counter[str](), list[str]()

    def rows(journal: Journal) -> Iterator[Row]:
        for one in questions:
            entries = [journal.find(_sample_key(one, number)) for number in range(1, collection.n + 1)]
            counts.update("failed" if entry is None else entry.outcome for entry in entries)
            samples = [entry.content or {} if entry is not None else {} for entry in entries]
            faults.extend(sample["unusable"][0] for sample in samples if sample.get("unusable"))
            passages = dict.fromkeys(Passage(*pair) for sample in samples for pair in sample.get("passages", ()))
            counts.update(bare=not passages, without_gold=not one.entry.gold)
            candidates = list[dict[str, Any]]()
            for number, sample in enumerate(samples, start=1):
                fields = {"text": sample.get("text", ""), "answer": sample.get("answer"), "source": f"sample {number}"}
                candidates.append(fields | sample.get("columns", {}))
                reading = read_sample(sample.get("text", ""), collection.task)
                counts.update(unclosed=reading.is_open, cut=reading.cut)
            yield one.row(collection.task, candidates, [*passages])

    with Journal(path) as journal:
        pool = write_pool(collection.out, rows(journal))
    fault = faults[0] if faults else ""
    asked_for = counts["abstained"], counts["failed"], counts["bare"]
    others = counts["unclosed"], counts["cut"], counts["without_gold"]
    return CollectionResult(pool, *asked_for, len(faults), fault, *others)
