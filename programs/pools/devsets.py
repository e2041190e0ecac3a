"""Development sets: questions with gold answers, each with the inputs of the program that answers it.

A set is a file of questions, or a list of `dspy.Example` that is named `MODULE:LIST`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.base.named_objects import cause, load_object
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError, brief
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import read_records
from eldgr_dspy.programs.pools.csv_files import filled_cells, is_table, table_rows
from eldgr_dspy.programs.pools.entries import Entry, object_at, plain_name
from eldgr_dspy.programs.pools.gold_answers import NAMES
from eldgr_dspy.programs.pools.question_files import question_entry
from eldgr_dspy.programs.samples import parameters_of, question_of
from eldgr_dspy.words import Task


@dataclass(frozen=True, slots=True)
class DevQuestion:
    """A question of a development set."""

    entry: Entry
    inputs: Mapping[str, Any]  # of the program

    @property
    def hash(self) -> str:
        """A hash of the inputs, the same in every process."""
        try:
            return sha256(json.dumps(self.inputs, sort_keys=True, default=_steady).encode()).hexdigest()[:16]
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"{self.entry.where}: the inputs must be the same in every process, so a killed collection resumes;"
                f" got one that is not ({brief(error)}). Use texts, numbers, lists, and mappings with texts as keys."
            ) from error

    def row(self, task: Task, candidates: Sequence[Mapping[str, Any]], passages: Sequence[Passage]) -> Row:
        """Return the row of a pool with these candidates and this evidence."""
        return replace(self.entry, evidence=tuple(passages)).row(task, candidates)


def _steady(value: Any) -> Any:
    """Return what stands for a value that JSON lacks."""
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(one, sort_keys=True, default=_steady) for one in value)
    if re.search(r" at 0x[0-9a-fA-F]+>", text := repr(value)):
        raise TypeError(f"{text:.80} shows where it is in memory")
    return text


def load_program(name: str) -> dspy.Module:
    """Return the program `MODULE:NAME`: a module, or what a class or function of that name makes without arguments."""
    program = load_object(name, "program", "my_program:qa")
    if callable(program) and not isinstance(program, dspy.Module):
        try:
            program = program()
        except Exception as error:
            raise ArgumentError(
                f"program={name!r} must be made without arguments; it raised {cause(error)}. Name a module that is "
                "made, or a function that makes it."
            ) from error
    if not isinstance(program, dspy.Module):
        raise ArgumentError(
            f"program={name!r} must be a dspy.Module, or a function or class that makes one; got {program!r:.80} "
            f"({type(program).__name__})."
        )
    return program


def read_devset(name: str, program: dspy.Module, task: Task, answer: str) -> list[DevQuestion]:
    """Return the questions of a development set, checked; gold is in `gold`, else in the program's field `answer`."""
    path = Path(name)
    is_list = ":" in name and not path.exists()
    questions = list(_of_list(name, answer) if is_list else _of_file(path, program, answer))
    if not questions:
        raise ArgumentError(f"devset={name!r} must have at least one question; it is empty.")
    places = dict[str, str]()
    for one in questions:
        one.row(task, [{}], ())  # refuse what cannot become a row, or be found again, before anything is paid for
        _ = one.hash
        where = places.setdefault(one.entry.name, one.entry.where)
        if where != one.entry.where:
            raise PoolError(
                f"{one.entry.where}: the id {one.entry.name!r:.80} is also that of {where}; make ids unique."
            )
    return questions


def _of_file(path: Path, program: dspy.Module, answer: str) -> Iterator[DevQuestion]:
    names = _inputs(program)
    for where, row in _rows(path):
        input_names = {name for name in names if plain_name(name) in NAMES}  # what the program is told is not gold
        entry = question_entry({name: row[name] for name in row if name not in input_names}, where, gold=answer)
        if lacking := [name for name in names if name not in row]:
            raise PoolError(
                f"{where}: {lacking[0]} is missing; {type(program).__name__} is called with {', '.join(names)}. Add it."
            )
        yield DevQuestion(entry, {name: row[name] for name in names})


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a file, each with its place. The cells of a table are texts, and empty ones are left out."""
    if is_table(path):
        first, header, rows = table_rows(path)
        if twice := next((name for name in header if name and header.count(name) > 1), None):
            raise PoolError(f"{first}: the column {twice!r:.80} occurs twice; rename one.")
        yield from ((where, filled_cells(header, cells)) for where, cells in rows)
    else:
        for place, record in read_records(path):
            yield f"{path}, {place}", object_at(record, f"{path}, {place}")


def _of_list(name: str, answer: str) -> Iterator[DevQuestion]:
    examples = load_object(name, "devset", "my_program:devset")
    if isinstance(examples, str | Mapping) or not isinstance(examples, Sequence):
        raise ArgumentError(f"devset={name!r} must be a list of dspy.Example; got {examples!r:.80}.")
    for index, example in enumerate(examples):
        where = f"{name}[{index}]"
        if not isinstance(example, dspy.Example) or example._input_keys is None:
            raise ArgumentError(
                f"{where} must be a dspy.Example with named inputs; got {example!r:.80}. Name them: "
                "example.with_inputs('question')."
            )
        inputs, labels = dict(example.inputs().items()), dict(example.labels().items())
        record = {**labels, "options": inputs.get("options"), "question": question_of(inputs)}
        yield DevQuestion(question_entry(record, where, gold=answer), inputs)


def _inputs(program: dspy.Module) -> list[str]:
    """Return the names of the inputs that a program needs: of its `forward`, or of its first predictor."""
    parameters = parameters_of(program)
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    if any(one.kind is one.VAR_KEYWORD for one in parameters) and not names:
        signatures: list[Any] = [part.signature for _, part in program.named_predictors()]
        return [*signatures[0].input_fields] if signatures else []
    return [one.name for one in parameters if one.name in names and one.default is one.empty]
