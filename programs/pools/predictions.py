"""Files of predictions in any of the layouts that are read, told apart by what their first record holds."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from eldgr_dspy.errors import PoolError
from eldgr_dspy.files import refuse_csv, require_file
from eldgr_dspy.pools import SUFFIXES, read_records
from eldgr_dspy.programs.pools.entries import (
    Entry,
    Sample,
    evidence_at,
    final_answers,
    id_at,
    object_at,
    question_at,
    text_at,
)
from eldgr_dspy.programs.pools.logs import harness_entry, read_inspect_log

Layout = Literal["predictions", "lm-eval", "inspect"]


def read_predictions(
    path: Path, layout: Layout | None = None, *, unfinished: bool = False, told: list[str] | None = None
) -> Iterator[Entry]:
    """Yield what a file predicts, question by question.

    Args:
        path: JSON lines or Parquet, one record in memory at a time; or the JSON log of inspect, read whole.
        layout: Which layout it has; None: by its name if that is no name of JSON lines or Parquet, else by the first
            record, which has `resps` in a log of lm-evaluation-harness and `prediction` in a plain file.
        unfinished: Whether a log of inspect is read that failed, was cancelled or still runs.
        told: Is given what such a log lacks, a sentence.

    Raises:
        PoolError: naming file, line and field.
    """
    require_file(path)
    refuse_csv(path, "predictions")
    if layout == "inspect" or (layout is None and not path.name.endswith(SUFFIXES)):
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
        f"{where}: the layout is not known by the fields {', '.join(map(repr, row)) or '(none)'}; "
        "expected `prediction`, or the `resps` of lm-evaluation-harness."
    )


def _plain(row: Mapping[str, Any], where: str) -> Entry:
    """An entry of a plain file. `answer` is not read: in some files it is the gold answer, in others the predicted."""
    if "prediction" not in row:
        raise PoolError(f"{where}: prediction is missing; add it, null where the model gave none.")
    return Entry(
        where,
        id_at(row, "id", where),
        question_at(row, where),
        tuple(_samples(row["prediction"], where)),
        final_answers(row.get("gold"), "gold", where),
        evidence_at(row, where),
    )


def _samples(prediction: Any, where: str) -> Iterable[Sample]:
    if not isinstance(prediction, list):
        return [_sample(prediction, "prediction", where)]
    if not prediction:
        raise PoolError(f"{where}: prediction is an empty list; give at least one, null where the model gave none.")
    return [_sample(one, f"prediction[{index}]", where) for index, one in enumerate(prediction)]


def _sample(one: Any, field: str, where: str) -> Sample:
    """A sample: null, a text, or an object with `text` and, where it is known, `answer`."""
    if one is None:
        return Sample("", None, stated=True)
    if not isinstance(one, Mapping):
        return Sample(text_at(one, field, where))
    text = text_at(one.get("text", ""), f"{field}.text", where)
    answer = one.get("answer")
    return Sample(text, None if answer is None else text_at(answer, f"{field}.answer", where), "answer" in one)
