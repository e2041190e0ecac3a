"""What a file from outside holds for one question, in any layout, and the checks that all layouts share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.formats.columns import COLUMNS, Columns, read_columns
from eldgr_dspy.formats.rows import MAX_CHARACTERS, Row, validate
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.words import Task

By = Literal["id", "question"]  # what rows on one question have in common

STOPS = ("finish_reason", "stop_reason", "done_reason")  # the fields in which servers say why a sample stopped
QUESTIONS = ("question", "problem", "input", "query")  # of a question's text; a `prompt` holds more than the question
NOT_GOLD = frozenset((*QUESTIONS, *STOPS, *COLUMNS, "id", "prediction", "evidence", "context", "options", "choices"))
_LIMITS = ("length", "max_tokens", "model_length", "max_length", "max_output_tokens")


class Sample(NamedTuple):
    """One sampled text. If `final`, `answer` is its answer, else the answer must be found in the text."""

    text: str
    answer: str | None = None
    final: bool = False
    source: str | None = None  # the file by default
    columns: Columns | None = None
    cut: bool = False  # at its limit of tokens


class Choices(NamedTuple):
    """What there is to choose from: the texts, and their labels if the file has any."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    by_number: bool = False  # whether a whole number as the gold answer counts the options, from 0


NO_CHOICES = Choices()


@dataclass(frozen=True, slots=True)
class Entry:
    """What a file holds for one question."""

    where: str  # file and line, for messages
    id: str | None
    question: str | None
    samples: tuple[Sample, ...] = ()
    gold: tuple[str, ...] = ()
    evidence: tuple[Passage, ...] = ()
    options: tuple[str, ...] = ()
    may_repeat: bool = False  # on another line, as in a log with several filters

    @property
    def name(self) -> str:
        """The id, or one made from the folded text alone, so that it does not depend on a file's order."""
        if self.id is not None:
            return self.id
        return f"q-{sha256(folded_question(self.question or '').encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    def row(self, task: Task, candidates: Iterable[Mapping[str, Any]]) -> Row:
        """Return the row of a pool with these candidates. It has options only if its answer type needs them."""
        needs_options = answer_type(task).needs_options
        for answer in self.gold if needs_options else ():
            if answer.isdecimal() and answer not in self.options:
                raise PoolError(
                    f"{self.where}: gold is {answer!r:.80}, which is not the text of an option; write the letter or "
                    "the text of the right one."
                )
        record = {
            "id": self.name,
            "question": self.question,
            "task": task,
            "candidates": [*candidates],
            "evidence": [{"title": passage.title, "text": passage.text} for passage in self.evidence],
            "options": [*self.options] if needs_options else [],
            "gold": [*self.gold],
        }
        return validate(record, self.where)


def plain_name(name: str) -> str:
    """Return the name of a field without regard to case and to what stands between its words."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def object_at(record: Any, where: str) -> Mapping[str, Any]:
    """Return a record, which must be an object."""
    if not isinstance(record, Mapping):
        raise PoolError(f"{where}: must be an object with named fields; got {repr_of(record)}.")
    return record


def fields_of(value: Any) -> Mapping[str, Any]:
    """Return the fields of an object; anything else has none."""
    return value if isinstance(value, Mapping) else {}


def is_missing(value: Any) -> bool:
    """Return whether a value is what writes a missing one: null, or NaN where a table's reader had no null."""
    return value is None or (isinstance(value, float) and value != value)


def text_at(value: Any, field: str, where: str) -> str:
    """Return a value, which must be text, valid Unicode, and no longer than a pool takes."""
    if not isinstance(value, str):
        raise PoolError(f"{where}: {field} must be text; got {repr_of(value)}.")
    if len(value) > MAX_CHARACTERS:
        raise PoolError(f"{where}: {field} has {len(value):,} characters; give at most {MAX_CHARACTERS:,}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise PoolError(f"{where}: {field} holds half of a surrogate pair, which is not valid Unicode.") from None
    return value


def id_at(record: Mapping[str, Any], field: str, where: str) -> str | None:
    """Return the id in a field as text. A whole number counts as its digits. A missing field or null has no id."""
    value = record.get(field)
    if value is None:
        return None
    return str(value) if type(value) is int else text_at(value, field, where)


def question_at(record: Mapping[str, Any], where: str) -> str | None:
    """Return the text of `question`, else of another of `QUESTIONS`, where it may be a list of messages."""
    if record.get("question") is not None:
        return text_at(record["question"], "question", where)
    fields = {plain_name(name): name for name in record}
    for name in (fields[plain] for plain in QUESTIONS if plain in fields):
        text = last_message(record[name], name, where)
        if isinstance(text, str) and text.strip():
            return text_at(text, name, where)
    return None


def last_message(value: Any, field: str, where: str) -> Any:
    """Return the text of the user's last message in a list, or None without one. Return other values as they are."""
    if not isinstance(value, list):
        return value
    users = [message for message in value if isinstance(message, Mapping) and message.get("role") == "user"]
    return content_at(users[-1].get("content"), field, where) if users else None


def content_at(content: Any, field: str, where: str) -> str:
    """Return the text of a message: itself, or its parts of text, without reasoning and images."""
    if not isinstance(content, list):
        return text_at(content or "", field, where)
    parts = [part for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
    return text_at("\n".join(text_at(part.get("text"), field, where) for part in parts), field, where)


def is_cut(record: Mapping[str, Any]) -> bool:
    """Return whether a sample stopped at its limit of tokens, by the field in which servers say why it stopped."""
    reasons = (record.get(name) for name in STOPS)
    texts = (reason.get("reason") if isinstance(reason, Mapping) else reason for reason in reasons)
    return any(isinstance(text, str) and plain_name(text) in _LIMITS for text in texts)


def evidence_at(record: Mapping[str, Any], where: str) -> tuple[Passage, ...]:
    """Return the passages of the field `evidence`: objects with `text` and optionally `title`."""
    value = record.get("evidence")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise PoolError(f"{where}: evidence must be a list of objects with title and text; got {repr_of(value)}.")
    passages = list[Passage]()
    for index, one in enumerate(value):
        field = f"evidence[{index}]"
        passage = object_at(one, f"{where}, {field}")
        title = "" if passage.get("title") is None else text_at(passage["title"], f"{field}.title", where)
        passages.append(Passage(title, text_at(passage.get("text"), f"{field}.text", where)))
    return tuple(passages)


def columns_at(fields: Mapping[str, Any], where: str, place: str = "{}") -> Columns | None:
    """Return the columns of a candidate among these fields, or None without any. See `read_columns`."""
    try:
        columns = read_columns(fields, place)
    except ArgumentError as error:
        raise PoolError(f"{where}: {error}") from None
    return None if columns == Columns() else columns


def choices_at(record: Mapping[str, Any], read: Callable[[Any], Any] = lambda value: value) -> Choices:
    """Return the texts in `options` or `choices`: a list, an object by label, or ARC's lists of `text` and `label`."""
    for name in ("options", "choices"):
        value: Any = read(record.get(name))
        labels: Any = ()
        if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            value = {part: [one.get(part) for one in value] for part in ("text", "label")}
        if isinstance(value, Mapping):
            by_label = value and all(map(_is_text, value.values()))
            value, labels = ([*value.values()], [*value]) if by_label else (value.get("text"), value.get("label"))
        are_texts = all(isinstance(one, list | tuple) and all(map(_is_text, one)) for one in (value, labels))
        if are_texts and value and len(labels) in (0, len(value)):  # else the field has another meaning
            return Choices(tuple(value), tuple(labels), by_number=name == "choices")
    return NO_CHOICES


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def repr_of(value: object) -> str:
    """Return a value and its type as a message has them."""
    return f"{value!r:.80} ({type(value).__name__})"
