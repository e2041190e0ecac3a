"""What a file from outside holds for one question, in any layout, and the checks that all layouts share."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.certificates import Passage
from eldgr_dspy.columns import Columns, read_columns
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.rows import MAX_CHARACTERS
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.words import Task

By = Literal["id", "question"]
"""What rows on one question have in common."""

_FINAL = "####"


class Sample(NamedTuple):
    """One sampled text; if `stated`, `answer` is its answer, else the answer must be found in the text.

    `source` is where it is from; None: its file. `columns` is what else is stated of it; None: nothing.
    """

    text: str
    answer: str | None = None
    stated: bool = False
    source: str | None = None
    columns: Columns | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What a file holds for one question.

    Attributes:
        where: File and line, for messages.
        id: The file's id of the question; None if it has none.
        question: The text in the file; None if it has none.
        samples: The sampled texts, in order; empty in a file of questions.
        gold: Accepted answers.
        evidence: What was retrieved for the question.
        options: What there is to choose from; empty if the file has no list of texts for it.
        may_repeat: Whether the file may repeat this on another line, as a log with several filters does.
    """

    where: str
    id: str | None
    question: str | None
    samples: tuple[Sample, ...] = ()
    gold: tuple[str, ...] = ()
    evidence: tuple[Passage, ...] = ()
    options: tuple[str, ...] = ()
    may_repeat: bool = False


def object_at(record: Any, where: str) -> Mapping[str, Any]:
    """Return a record that is an object.

    Raises:
        PoolError: it is something else.
    """
    if not isinstance(record, Mapping):
        raise PoolError(f"{where}: must be an object with named fields; got {_shown(record)}.")
    return record


def text_at(value: Any, field: str, where: str) -> str:
    """Return a value that is text, and valid Unicode, and no longer than a pool takes.

    Raises:
        PoolError: it is not.
    """
    if not isinstance(value, str):
        raise PoolError(f"{where}: {field} must be text; got {_shown(value)}.")
    if len(value) > MAX_CHARACTERS:
        raise PoolError(f"{where}: {field} has {len(value):,} characters; give at most {MAX_CHARACTERS:,}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise PoolError(f"{where}: {field} holds half of a surrogate pair, which is not valid Unicode.") from None
    return value


def texts_at(value: Any, field: str, where: str) -> tuple[str, ...]:
    """Return one text, or the texts of a list, each checked as `text_at` does."""
    if isinstance(value, str):
        return (text_at(value, field, where),)
    if not isinstance(value, Sequence):
        raise PoolError(f"{where}: {field} must be text, or a list of texts; got {_shown(value)}.")
    return tuple(text_at(text, f"{field}[{index}]", where) for index, text in enumerate(value))


def id_at(record: Mapping[str, Any], field: str, where: str) -> str | None:
    """Return the id in a field as text; a whole number counts as its digits. A missing field or null has no id."""
    value = record.get(field)
    if value is None:
        return None
    return str(value) if type(value) is int else text_at(value, field, where)


def question_at(record: Mapping[str, Any], where: str) -> str | None:
    """Return the text of the question, None without one."""
    value = record.get("question")
    return None if value is None else text_at(value, "question", where)


def final_answers(value: Any, field: str, where: str) -> tuple[str, ...]:
    """Return accepted answers from one text or a list of them; in a solution in GSM8K's form, the part after `####`."""
    texts = () if value is None else texts_at(value, field, where)
    return tuple(answer for text in texts if (answer := text.rpartition(_FINAL)[2].strip()))


def evidence_at(record: Mapping[str, Any], where: str) -> tuple[Passage, ...]:
    """Return the passages of the field `evidence`: objects with `text` and optionally `title`."""
    value = record.get("evidence")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise PoolError(f"{where}: evidence must be a list of objects with title and text; got {_shown(value)}.")
    return tuple(_passage(passage, f"evidence[{index}]", where) for index, passage in enumerate(value))


def columns_at(given: Mapping[str, Any], where: str, place: str = "{}") -> Columns | None:
    """Return the columns of a candidate among these fields, None without any; see `eldgr_dspy.columns.read_columns`.

    Raises:
        PoolError: naming the place in the file and the column.
    """
    try:
        columns = read_columns(given, place)
    except ArgumentError as error:
        raise PoolError(f"{where}: {error}") from None
    return None if columns == Columns() else columns


def options_at(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of the field `options`; a field of another form has another meaning, and is not read."""
    value = record.get("options")
    is_list = isinstance(value, list | tuple) and all(isinstance(option, str) for option in value)
    return tuple(value) if is_list and value else ()


def options_for(task: Task, options: Sequence[str]) -> list[str]:
    """Return the options of a pool's row, which has none unless its answer type needs them."""
    return [*options] if answer_type(task).needs_options else []


def _passage(value: Any, field: str, where: str) -> Passage:
    passage = object_at(value, f"{where}, {field}")
    title, text = passage.get("title"), passage.get("text")
    return Passage(
        "" if title is None else text_at(title, f"{field}.title", where), text_at(text, f"{field}.text", where)
    )


def id_of_question(question: str) -> str:
    """Return an id for a question without one, from its folded text alone, so it does not depend on a file's order."""
    return f"q-{hashlib.sha256(folded_question(question).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _shown(value: object) -> str:
    return f"{value!r:.80} ({type(value).__name__})"
