"""Files of predictions in any supported layout, told apart by their first record."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from eldgr_dspy.base.files import require_file
from eldgr_dspy.errors import PoolError
from eldgr_dspy.formats.columns import COLUMNS, quote
from eldgr_dspy.formats.foreign_formats import named_layout
from eldgr_dspy.formats.parquet import JSON_COLUMNS, unpack_json
from eldgr_dspy.pools import SUFFIXES, read_records
from eldgr_dspy.programs.pools.csv_files import Columns, is_table, read_table
from eldgr_dspy.programs.pools.entries import (
    STOPS,
    Entry,
    Sample,
    choices_at,
    columns_at,
    evidence_at,
    id_at,
    is_cut,
    is_missing,
    object_at,
    question_at,
    text_at,
)
from eldgr_dspy.programs.pools.gold_answers import gold_at
from eldgr_dspy.programs.pools.logs import harness_entry, read_inspect_log

Layout = Literal["predictions", "lm-eval", "inspect"]


def read_predictions(
    path: Path,
    layout: Layout | None = None,
    *,
    unfinished: bool = False,
    notes: list[str] | None = None,
    columns: Columns | None = None,
) -> Iterator[Entry]:
    """Yield the predictions of a file, by question; without a layout, the file's name or first record decides."""
    require_file(path)
    if is_table(path) and layout in (None, "predictions"):
        yield from read_table(path, columns or Columns())
    elif layout == "inspect" or (layout is None and not path.name.endswith(SUFFIXES)):
        yield from read_inspect_log(path, unfinished=unfinished, notes=notes)
    else:
        yield from _entries(path, read_records(path), layout, (columns or Columns()).fields)


def _entries(
    path: Path, records: Iterator[tuple[str, Any]], layout: Layout | None, fields: set[str]
) -> Iterator[Entry]:
    first = next(records, None)
    if first is None:
        raise PoolError(f"{path}: no predictions; the file is empty.")
    of_harness = (layout or _layout(path, *first)) == "lm-eval"
    is_parquet = path.name.endswith(".parquet") and not of_harness
    absent = {"prediction": None} if is_parquet else {}
    for place, record in chain([first], records):
        where = f"{path}, {place}"
        row = {**absent, **object_at(record, where)}
        if is_parquet:
            unpack_json(row, JSON_COLUMNS, f"{where}, ")
            predictions = row["prediction"] if isinstance(row.get("prediction"), list) else [row.get("prediction")]
            for index, prediction in enumerate(predictions):
                unpack_json(prediction, JSON_COLUMNS, f"{where}, prediction[{index}].")
        doc = row.get("doc")
        fields.update(doc if of_harness and isinstance(doc, Mapping) else row)
        yield harness_entry(row, where) if of_harness else _plain(row, where)


def _layout(path: Path, place: str, record: Any) -> Layout:
    where = f"{path}, {place}"
    row = object_at(record, where)
    if "resps" in row:
        return "lm-eval"
    if "prediction" in row:
        return "predictions"
    if layout_name := named_layout(row):
        raise PoolError(f"{where}: {layout_name}")
    raise PoolError(
        f"{where}: the layout must have `prediction`, or the `resps` of lm-evaluation-harness; "
        f"got the fields {', '.join(map(repr, row)) or '(none)'}."
    )


def _plain(row: Mapping[str, Any], where: str) -> Entry:
    """Return an entry of a plain file. `answer` is not read: it may be the gold answer or the predicted one."""
    if "prediction" not in row:
        raise PoolError(f"{where}: prediction is missing; add it, as null if the model gave none.")
    choices = choices_at(row)
    return Entry(
        where,
        id_at(row, "id", where),
        question_at(row, where),
        tuple(_samples(row, where)),
        gold_at(row, where, choices, samples=True),
        evidence_at(row, where),
        choices.texts,
    )


def _samples(row: Mapping[str, Any], where: str) -> Iterable[Sample]:
    """Return the samples of a row. Each column of the row has a value for the only one, or a list with one for each."""
    prediction = row["prediction"]
    columns = {name: row[name] for name in (*COLUMNS, *STOPS) if row.get(name) is not None}
    if not isinstance(prediction, list):
        return [_sample(prediction, "prediction", where, columns)]
    if not prediction:
        raise PoolError(f"{where}: prediction must not be an empty list; give null if the model gave none.")
    for name, values in columns.items():
        if not isinstance(values, list) or len(values) != len(prediction):
            value = f"{len(values):,}" if isinstance(values, list) else quote(values)
            raise PoolError(
                f"{where}: {name} must be a list of {len(prediction):,}, one for each prediction; got {value}. Write "
                "null where it is unknown."
            )
    by_index = ({name: values[index] for name, values in columns.items()} for index in range(len(prediction)))
    return [
        _sample(sample, f"prediction[{index}]", where, of_row, f"[{index}]")
        for index, (sample, of_row) in enumerate(zip(prediction, by_index, strict=True))
    ]


def _sample(sample: Any, field: str, where: str, of_row: Mapping[str, Any], part: str = "") -> Sample:
    """Return a sample: null, a text, or an object with `text` and, if known, `answer` and columns."""
    columns = columns_at(of_row, where, f"{{}}{part}")
    if is_missing(sample):
        return Sample("", None, final=True, columns=columns)
    if not isinstance(sample, Mapping):
        return Sample(text_at(sample, field, where), columns=columns, cut=is_cut(of_row))
    own = columns_at(sample, where, f"{field}.{{}}")
    if own and columns:
        raise PoolError(f"{where}: {field} must have its columns inside or outside of it; got both. Leave some out.")
    if sample.keys().isdisjoint(("text", "answer")):
        fields = ", ".join(f"{name!r:.80}" for name in sample) or "(none)"
        raise PoolError(f"{where}: {field} must have text; got the fields {fields}. Give its text the name text.")
    text = text_at(sample.get("text", ""), f"{field}.text", where)
    answer = sample.get("answer")
    final = None if is_missing(answer) else text_at(answer, f"{field}.answer", where)
    return Sample(text, final, "answer" in sample, columns=own or columns, cut=is_cut(sample) or is_cut(of_row))
