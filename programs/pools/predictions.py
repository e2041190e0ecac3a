"""Files of predictions in any supported layout, told apart by their first record."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from eldgr_dspy.errors import PoolError
from eldgr_dspy.files import require_file
from eldgr_dspy.pools import SUFFIXES, read_records
from eldgr_dspy.programs.pools.csv_files import Columns, is_table, read_table
from eldgr_dspy.programs.pools.entries import (
    Entry,
    Sample,
    evidence_at,
    final_answers,
    id_at,
    object_at,
    options_at,
    question_at,
    text_at,
)
from eldgr_dspy.programs.pools.logs import harness_entry, read_inspect_log

Layout = Literal["predictions", "lm-eval", "inspect"]


def read_predictions(
    path: Path,
    layout: Layout | None = None,
    *,
    unfinished: bool = False,
    told: list[str] | None = None,
    columns: Columns | None = None,
) -> Iterator[Entry]:
    """Yield the predictions of a file, question by question.

    Args:
        path: JSON lines or Parquet, one record in memory at a time; or a table in CSV or TSV, or a log of inspect.
        layout: Which layout it has; None: by its name unless it names JSON lines or Parquet, else by the first record,
            which has `resps` in a log of lm-evaluation-harness and `prediction` in a plain file.
        unfinished: Whether a log of inspect is accepted that failed, was cancelled or is still running.
        told: Called with what such a log lacks, as a sentence.
        columns: What the columns of a table hold.

    Raises:
        PoolError: naming file, line and field.
    """
    require_file(path)
    if is_table(path) and layout in (None, "predictions"):
        yield from read_table(path, columns or Columns())
    elif layout == "inspect" or (layout is None and not path.name.endswith(SUFFIXES)):
        yield from read_inspect_log(path, unfinished=unfinished, told=told)
    else:
        yield from _entries(path, read_records(path), layout)


def _entries(path: Path, records: Iterator[tuple[str, Any]], layout: Layout | None) -> Iterator[Entry]:
    first = next(records, None)
    if first is None:
        raise PoolError(f"{path}: no predictions; the file is empty.")
    of_harness = (layout or _layout(path, *first)) == "lm-eval"
    absent = {"prediction": None} if path.name.endswith(".parquet") else {}
    for place, record in chain([first], records):
        where = f"{path}, {place}"
        row = object_at(record, where)
        yield harness_entry(row, where) if of_harness else _plain(absent | dict(row), where)


def _layout(path: Path, place: str, record: Any) -> Layout:
    where = f"{path}, {place}"
    row = object_at(record, where)
    if "resps" in row:
        return "lm-eval"
    if "prediction" in row:
        return "predictions"
    raise PoolError(
        f"{where}: the layout must have `prediction`, or the `resps` of lm-evaluation-harness; "
        f"got the fields {', '.join(map(repr, row)) or '(none)'}."
    )


def _plain(row: Mapping[str, Any], where: str) -> Entry:
    """Return an entry of a plain file. `answer` is not read: it may be the gold answer or the predicted one."""
    if "prediction" not in row:
        raise PoolError(f"{where}: prediction is missing; add it, as null if the model gave none.")
    return Entry(
        where,
        id_at(row, "id", where),
        question_at(row, where),
        tuple(_samples(row["prediction"], where)),
        final_answers(row.get("gold"), "gold", where),
        evidence_at(row, where),
        options_at(row),
    )


def _samples(prediction: Any, where: str) -> Iterable[Sample]:
    if not isinstance(prediction, list):
        return [_sample(prediction, "prediction", where)]
    if not prediction:
        raise PoolError(f"{where}: prediction must not be an empty list; give null if the model gave none.")
    return [_sample(sample, f"prediction[{index}]", where) for index, sample in enumerate(prediction)]


def _sample(given: Any, field: str, where: str) -> Sample:
    """Return a sample: null, a text, or an object with `text` and, if known, `answer`."""
    if given is None:
        return Sample("", None, stated=True)
    if not isinstance(given, Mapping):
        return Sample(text_at(given, field, where))
    text = text_at(given.get("text", ""), f"{field}.text", where)
    answer = given.get("answer")
    return Sample(text, None if answer is None else text_at(answer, f"{field}.answer", where), "answer" in given)
