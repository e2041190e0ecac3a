"""Tables in CSV and TSV: one row a sample, or one row a question with a column for each sample.

The first row names the columns. Rows on one question, by its id or else by its text, hold its samples, in their order.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Literal, get_args

from eldgr_dspy.base.file_limits import MAX_DOCUMENT_VALUES, require_few
from eldgr_dspy.base.files import read_whole, require_file
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.formats.columns import Columns as SampleColumns
from eldgr_dspy.formats.rows import MAX_CANDIDATES, MAX_CHARACTERS
from eldgr_dspy.programs.pools.entries import QUESTIONS, STOPS, By, Entry, Sample, columns_at, is_cut, plain_name
from eldgr_dspy.programs.pools.gold_answers import NAMES, final_answers, gold_at, printed_choices
from eldgr_dspy.splitting import folded_question

Field = Literal["id", "question", "gold", "evidence", "prediction", "answer", "source", "confidence", "tags"]
"""What a column may hold. `answer` is the answer that a sample states, `source` where the sample is from."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of tables hold, and which columns and fields were there."""

    names: Mapping[Field, Sequence[str]] = field(default_factory=dict)  # by default a field has the column of its name
    by: By | None = None  # what rows on one question have in common; by default the id, if they have one
    header: set[str] = field(default_factory=set)  # of all tables
    fields: set[str] = field(default_factory=set)  # of all records, in any layout
    spare: list[str] = field(default_factory=list)  # columns of the last table that no field has

    def refuse_strangers(self) -> None:
        """Raise `ArgumentError` for a name that no table has."""
        listing = ", ".join(f"{name!r:.80}" for name in sorted(self.header))
        has = f"they have {listing}" if listing else "none is a table"
        for of, names in self.names.items():
            for name in names:
                if name not in self.header:
                    raise ArgumentError(
                        f"--column {of}={name:.80}: no file has this column; {has}. Correct the name, or leave it out."
                    )


MAX_TABLE = 256 * 2**20  # bytes, unpacked; a table is in memory whole

# Cells without a value, as pandas and databases write them. A model that answers so writes "Nan" or "Null".
_MISSING = frozenset(("nan", "NaN", "-nan", "-NaN", "null", "NULL", "<NA>", "#N/A", "#NA", "#N/A N/A", "NaT"))
_NO_FIELD = ("", "options", "choices", *STOPS)  # columns that no field names, and that are not told of as unread
_NO_SAMPLE = frozenset(("None", "NA", "N/A", "n/a"))  # of these, a gold answer may be one


def is_table(path: Path) -> bool:
    return path.name.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz"))


def read_table(path: Path, columns: Columns, *, samples: bool = True) -> Iterator[Entry]:
    """Yield the questions of a table, in the order of their first rows. One without `samples` has a row a question."""
    first, header, rows = table_rows(path)
    columns.header.update(header)
    columns.fields.update(header)
    places = _places(first, header, columns, samples=samples)
    own = {at for of_one in places.values() for at in of_one}
    spare = (name for at, name in enumerate(header) if at not in own and plain_name(name) not in _NO_FIELD)
    columns.spare[:] = dict.fromkeys(spare)
    several = len(places["prediction"]) > 1
    sources = [header[at] for at in places["prediction"]] if several else [""] * samples

    def entries() -> Iterator[Entry]:
        for where, cells in rows:
            entry = _entry({of: [_cell(of, cells[at]) for at in places[of]] for of in places}, sources, where)
            row = dict(zip(header, cells, strict=True))
            choices = printed_choices(row)
            right = {header[at]: cell for at in places["gold"] if (cell := _cell("gold", cells[at])).strip()}
            if "gold" in columns.names:  # all that a flag names
                gold = tuple(final for name, cell in right.items() for final in final_answers(cell, name, where))
            else:
                gold = gold_at(right, where, choices, samples=samples)
            entry = replace(entry, gold=gold, options=choices.texts)
            if not several and is_cut(row):
                entry = replace(entry, samples=tuple(sample._replace(cut=True) for sample in entry.samples))
            yield entry

    # A further row on a question has a further sample, unless a row has all of them: that is refused at the join.
    yield from _by_question(entries(), columns.by) if samples and not several else entries()


def table_rows(path: Path) -> tuple[str, list[str], list[tuple[str, list[str]]]]:
    """Return where the first row of a table is, its columns' names, and its other rows, each with its place."""
    rows = _rows(path)
    if len(rows) < 2:
        raise PoolError(
            f"{path}: the table is empty; give a row that names the columns, and a row a sample or question."
        )
    (first, names), *body = [(f"{path}, row {number}", cells) for number, cells in rows]
    for where, cells in body:
        if len(cells) != len(names):
            raise PoolError(
                f"{where}: {len(cells):,} cells under {len(names):,} columns; give one cell a column, in quotes if it "
                "holds a separator or a line break."
            )
    return first, [name.strip() for name in names], body


def filled_cells(header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row by the names of their columns, without those that say that there is no value."""
    pairs = zip(header, cells, strict=True)
    return {name: cell for name, cell in pairs if cell.strip() and cell.strip() not in _MISSING}


def _cell(of: Field, cell: str) -> str:
    is_sample, text = of in ("prediction", "answer"), cell.strip()
    return "" if (text in _MISSING and of != "confidence") or (is_sample and text in _NO_SAMPLE) else cell


def _by_question(rows: Iterable[Entry], by: By | None) -> Iterable[Entry]:
    """Return the questions of rows, each with the samples of all its rows."""
    first, questions = dict[str, Entry](), dict[tuple[By, str], Entry]()
    for row in rows:
        question = folded_question(row.question or "")
        other = first.setdefault(question, row)
        if by is None and question and other.id != row.id:
            raise PoolError(
                f"{row.where}: has the question of {other.where} but another id, {row.id!r:.80} for {other.id!r:.80}. "
                "Give --by question if ids number the rows, --by id if they number the questions."
            )
        key: tuple[By, str] = ("id", row.id) if by != "question" and row.id is not None else ("question", question)
        questions[key] = _join(questions[key], row) if key in questions else row
    return questions.values()


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, each with its number, as a spreadsheet counts them."""
    require_file(path)
    data = read_whole(path, MAX_TABLE, "write its rows as JSON lines, which are read one at a time")
    text, form = _decode(path, data), "TSV" if ".tsv" in path.name.lower()[-7:] else "CSV"
    rows: list[tuple[int, list[str]]] = []
    number, n_cells, before = 0, 0, csv.field_size_limit(MAX_CHARACTERS)
    try:
        mark = "\t" if form == "TSV" else _separator(text)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
        for number, cells in enumerate(reader, start=1):
            n_cells += len(cells) + 1
            require_few(n_cells, f"{path}, up to row {number}", MAX_DOCUMENT_VALUES)
            if any(map(str.strip, cells)):
                rows.append((number, cells))
    except csv.Error as error:
        raise PoolError(
            f"{path}, row {number + 1}: not readable as {form} ({error}); close each quoted cell, double each quote "
            f"inside it, and give at most {MAX_CHARACTERS:,} characters a cell."
        ) from None
    finally:
        csv.field_size_limit(before)
    return rows


def _separator(text: str) -> str:
    """Return what separates the cells of a CSV: a semicolon where that gives its first row more cells than a comma."""
    first = next((line for line in io.StringIO(text, newline="") if line.strip(";, \r\n")), "")
    commas, semicolons = (len(next(csv.reader([first], delimiter=mark), ())) for mark in ",;")
    return ";" if semicolons > commas else ","


def _decode(path: Path, data: bytes) -> str:
    try:
        text = data.decode("utf-8")
        at, wrong = text.find("\0"), "a NUL byte, as in UTF-16 or in a binary file"
        before = text[: max(at, 0)].count("\n")
    except UnicodeDecodeError as error:
        at, wrong, text = error.start, "not UTF-8", ""
        before = data[:at].count(b"\n")
    if at >= 0:
        raise PoolError(f"{path}, line {before + 1}: {wrong}; save the table as text in UTF-8.")
    return text


def _places(where: str, header: Sequence[str], columns: Columns, *, samples: bool) -> dict[Field, list[int]]:
    listing = f"the columns are {', '.join(f'{name!r:.80}' for name in header)}"
    own: dict[Field, list[str]] = {name: [name] for name in ("id", "question", "evidence", "prediction")}
    own["gold"] = [name for name in dict.fromkeys(header) if plain_name(name) in ("gold", *NAMES)]
    if "question" not in header:
        own["question"] = [name for plain in QUESTIONS for name in header if plain_name(name) == plain][:1]
    places: dict[Field, list[int]] = {}
    for of in get_args(Field):
        wants = samples or of in ("id", "question", "gold", "evidence")
        names = [name for name in columns.names.get(of, own.get(of, ())) if wants and name in header]
        for name in names:
            if header.count(name) > 1:
                raise PoolError(f"{where}: the column {name!r:.80} occurs twice; rename one.")
        places[of] = [header.index(name) for name in names]
    main: Field = "prediction" if samples else "question"
    if places[main] and not (places["id"] or places["question"]):
        main = "question"
    if not places[main]:
        options = " or ".join(map(repr, columns.names.get(main, [main])))
        commas = " Separate cells by commas or semicolons in CSV, by tabs in TSV." if len(header) == 1 else ""
        raise PoolError(
            f"{where}: no column is named {options}; {listing}. Say which one it is: --column {main}=NAME.{commas}"
        )
    n = len(places["prediction"])
    for of, at in places.items():
        if of in ("answer", "source", "confidence") and len(at) not in (0, n):
            raise PoolError(
                f"{where}: {of} must have as many columns as prediction, {n}; got {len(at)}. Name them all."
            )
    if places["tags"] and n > 1:
        raise PoolError(f"{where}: tags need a row a sample; got {n} columns of predictions. Leave --column tags out.")
    return places


def _entry(cells: Mapping[Field, Sequence[str]], sources: Sequence[str], where: str) -> Entry:
    """Return what a row holds: its cells by field, with the sources of samples for which no column states them."""
    values = {of: [cell for cell in texts if cell.strip()] for of, texts in cells.items()}
    answers, confidences = cells["answer"] or repeat(None), cells["confidence"] or repeat("")
    tags = [cell.strip() for cell in values["tags"]]
    columns = (columns_at({"confidence": _number(cell), "tags": tags}, where) for cell in confidences)
    return Entry(
        where,
        next(map(str.strip, values["id"]), None),
        next(iter(values["question"]), None),
        tuple(map(_sample, cells["prediction"], answers, cells["source"] or sources, columns)),
        (),
        tuple(Passage("", cell) for cell in values["evidence"]),
    )


def _number(cell: str) -> float | str | None:
    try:
        return float(cell) if cell.strip() else None
    except ValueError:
        return cell


def _sample(text: str, answer: str | None, source: str, columns: SampleColumns | None) -> Sample:
    """Return a sample. One without text and answer has no answer, as a prediction of null."""
    states = answer is not None or not text.strip()
    return Sample(text, answer if answer and answer.strip() else None, states, source.strip() or None, columns)


def _join(first: Entry, other: Entry) -> Entry:
    """Return a question with the samples of a further row, which must not contradict it."""
    text, also = (folded_question(entry.question or "") for entry in (first, other))
    also_of = {name: (getattr(first, name), getattr(other, name)) for name in ("gold", "evidence", "options")}
    fields = {"question": (text, also), **also_of}
    if len(first.samples) == MAX_CANDIDATES:
        raise PoolError(f"{other.where}: the question has more than {MAX_CANDIDATES:,} rows; name its column right.")
    for what, (before, now) in fields.items():
        if before and now and before != now:
            raise PoolError(
                f"{other.where}: its {what.rstrip('s')} differs from that in {first.where}, a row on the same "
                "question; write the same in both, or leave the later cell empty."
            )
    return replace(
        first,
        question=first.question or other.question,
        samples=(*first.samples, *other.samples),
        **{name: before or now for name, (before, now) in also_of.items()},
    )
