"""What a file from outside says of one question, whatever its layout, and the checks that all layouts share."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import PoolError
from eldgr_dspy.rows import MAX_CHARACTERS
from eldgr_dspy.splitting import folded_question

_FINAL = "####"


class Sample(NamedTuple):
    """One sampled text; where `stated`, `answer` is its answer, else that is still to be found in the text."""

    text: str
    answer: str | None = None
    stated: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """What a file says of one question.

    Attributes:
        where: File and line, for messages.
        id: What the file calls the question; None where it has no name for it.
        question: The text as the file has it; None where it has none.
        samples: The sampled texts, in order; none in a file of questions.
        gold: Accepted answers.
        evidence: What was retrieved for the question.
        may_repeat: Whether the file says the same again on another line, as a log with several filters does.
    """

    where: str
    id: str | None
    question: str | None
    samples: tuple[Sample, ...] = ()
    gold: tuple[str, ...] = ()
    evidence: tuple[Passage, ...] = ()
    may_repeat: bool = False


def object_at(record: Any, where: str) -> Mapping[str, Any]:
    """Return a record that is an object.

    Raises:
        PoolError: it is something else.
    """
    if not isinstance(record, Mapping):
        raise PoolError(f"{where}: {_shown(record)} is no object; expected one with named fields.")
    return record


def text_at(value: Any, field: str, where: str) -> str:
    """Return a value that is text, and valid Unicode, and no longer than a pool takes.

    Raises:
        PoolError: it is not.
    """
    if not isinstance(value, str):
        raise PoolError(f"{where}: {field} is {_shown(value)}; expected text.")
    if len(value) > MAX_CHARACTERS:
        raise PoolError(f"{where}: {field} has {len(value):,} characters; at most {MAX_CHARACTERS:,} are read.")
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
        raise PoolError(f"{where}: {field} is {_shown(value)}; expected text, or a list of texts.")
    return tuple(text_at(one, f"{field}[{index}]", where) for index, one in enumerate(value))


def id_at(record: Mapping[str, Any], field: str, where: str) -> str | None:
    """Return the id in a field as text; a whole number counts as its digits, and no field, or null, as no id."""
    value = record.get(field)
    if value is None:
        return None
    return str(value) if type(value) is int else text_at(value, field, where)


def question_at(record: Mapping[str, Any], where: str) -> str | None:
    """Return the text of the question, None where there is none."""
    value = record.get("question")
    return None if value is None else text_at(value, "question", where)


def final_answers(value: Any, field: str, where: str) -> tuple[str, ...]:
    """Return accepted answers from one text or a list of them: of a solution in GSM8K's form, what follows `####`."""
    texts = () if value is None else texts_at(value, field, where)
    return tuple(answer for text in texts if (answer := text.rpartition(_FINAL)[2].strip()))


def evidence_at(record: Mapping[str, Any], where: str) -> tuple[Passage, ...]:
    """Return the passages of the field `evidence`: objects with `text` and perhaps `title`."""
    value = record.get("evidence")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise PoolError(f"{where}: evidence is {_shown(value)}; expected a list of objects with title and text.")
    return tuple(_passage(one, f"evidence[{index}]", where) for index, one in enumerate(value))


def _passage(value: Any, field: str, where: str) -> Passage:
    passage = object_at(value, f"{where}, {field}")
    title, text = passage.get("title"), passage.get("text")
    return Passage(
        "" if title is None else text_at(title, f"{field}.title", where), text_at(text, f"{field}.text", where)
    )


def id_of_question(question: str) -> str:
    """Return an id for a question without one, from its folded text alone, so that no order of a file changes it."""
    return f"q-{hashlib.sha256(folded_question(question).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _shown(value: object) -> str:
    return f"{value!r:.80} ({type(value).__name__})"
