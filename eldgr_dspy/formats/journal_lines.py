"""Read and check the lines of a journal, and mask credentials in them."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args
from zlib import crc32

from eldgr_dspy.base.file_limits import MAX_LINE, MAX_VALUES, parsed_json, require_few_in, require_shallow, scale
from eldgr_dspy.base.files import json_fault
from eldgr_dspy.errors import JournalError, PoolError
from eldgr_dspy.redaction import redact, redact_value
from eldgr_dspy.rule.consultations import Consultation, Outcome
from eldgr_dspy.rule.named_judges import is_name
from eldgr_dspy.words import CONSULTED

PROGRAM = "program"  # the role, in a journal, of a program whose samples are collected
TOO_LARGE = "the reply is too large, or nested too deeply, for a line of a journal"
_FIELDS = tuple(field.name for field in fields(Consultation))
_HEADS = ("settings", "pool", "role", "reserved", "comparisons")
_ABSENT = type(None)
_NUMBERS = (int, float)
_MOST = 10**15
_OTHER_VALUES = 1_000  # more than a line holds besides its content
# The types that a journaled field may have, matched exactly, so that `true` is not a number.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("pool", "id", "role", "outcome"), (str,)),
    **dict.fromkeys(("reason", "fingerprint", "asked", "served", "implausible", "judge"), (str, _ABSENT)),
    **dict.fromkeys(("attempt", "calls", "cached"), (int,)),
    **dict.fromkeys(("prompt_characters", "prompt_tokens", "completion_tokens"), (int, _ABSENT)),
    **dict.fromkeys(("cost", "dearest", "seconds"), (int, float, _ABSENT)),
    "content": (dict, _ABSENT),
    "recorded": (bool,),
}
# The fields that may hold text from outside; the others hold words of the journal, or name a question.
_FREE = ("content", "reason", "asked", "served", "implausible", "details", "path")
_WORDS = {str: "text", int: "a count", float: "a number", bool: "true or false", dict: "an object", _ABSENT: "null"}


def record_of(consultation: Consultation) -> dict[str, Any]:
    """Return the fields of a consultation that have a value, as they are journaled."""
    return {name: value for name in _FIELDS if (value := getattr(consultation, name)) is not None}


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def without_credentials(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with credentials masked in the fields that may hold them."""
    return {name: redact_value(value) if name in _FREE else value for name, value in record.items()}


_DECODER = json.JSONDecoder(parse_constant=_no_number)
ENCODER = json.JSONEncoder(allow_nan=False)
CHECKSUM = b', "crc32": '  # before the checksum, the last field, which covers everything before this text


def seal(record: Mapping[str, Any]) -> bytes:
    """Return a record as a line with its checksum and without credentials."""
    text = ENCODER.encode(record)
    if redact(text) != text:  # a credential was missed when the record was made; the key that finds it stays
        text = ENCODER.encode(without_credentials(record))
    body = text.removesuffix("}").encode()
    return b'%b%b"%08x"}\n' % (body, CHECKSUM, crc32(body))


def is_readable(content: Mapping[str, Any]) -> bool:
    """Return whether a line with this content can be read again: an LM may return more values than a line may hold."""
    text = ENCODER.encode([content]).encode()
    try:
        require_few_in(text, "", MAX_VALUES - _OTHER_VALUES)
        require_shallow(text, "")
    except PoolError:
        return False
    return len(text) <= scale(MAX_LINE)


def parse(line: bytes, path: Path, where: str) -> dict[str, Any]:
    """Return a line as a JSON object whose checksum, if it has one, is right."""
    try:  # an editor may have put a mark before a recording
        record = parsed_json(line.removeprefix(BOM_UTF8), f"{path}, {where}", decode=_DECODER.decode)
    except PoolError as error:
        raise JournalError(error.args[0]) from error
    except ValueError as error:
        fault = f"not a JSON object ({json_fault(line, error)})"
        raise JournalError(f"{path}, {where}: {fault}; correct it, or restore the journal from a copy.") from error
    if not isinstance(record, dict):
        raise JournalError(f"{path}, {where}: {record!r:.80} is not a JSON object; restore the journal from a copy.")
    checksum = record.pop("crc32", None)
    body, _, end = line.removeprefix(BOM_UTF8).rpartition(CHECKSUM)
    if checksum is not None and end.strip() != b'"%08x"}' % crc32(body):
        raise JournalError(
            f"{path}, {where}: the line does not match its checksum {checksum!r:.20}, so it was damaged or edited; "
            "restore the journal from a copy, or remove crc32 from the line if the change is meant."
        )
    return record


def head_of(record: dict[str, Any], path: Path, where: str) -> dict[str, Any]:
    """Return a line that is not a consultation, checked."""
    kind = record.get("kind")
    if kind not in _HEADS:
        kinds = ", ".join(("consultation", *_HEADS))
        raise JournalError(f"{path}, {where}: kind={kind!r:.80} is not one of {kinds}; expected a journal.")
    _check(isinstance(record.get("name"), str), path, where, f"a {kind} without a name")
    _check(isinstance(record.get("details"), dict), path, where, f"a {kind} without details")
    lm = record["details"].get("lm") if kind == "role" else None
    _check(isinstance(lm, dict | None), path, where, "a role whose lm is not an object or null")
    _check(kind != "comparisons" or _names_pairs(record["details"]), path, where, "comparisons without their pairs")
    return record


def _names_pairs(details: Mapping[str, Any]) -> bool:
    """Return whether details are as `Comparisons.record` makes them."""
    match details:
        case {"id": str(), "texts": [*texts], "classes": [*classes], "scores": [*scores]}:
            pairs = [*classes, *scores]
            places = [place for pair in pairs if isinstance(pair, list) and len(pair) == 2 for place in pair]
            are_places = all(type(place) is int and 0 <= place < len(texts) for place in places)
            return are_places and len(places) == 2 * len(pairs) and all(isinstance(text, str) for text in texts)
    return False


def comparison_records(heads: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return by pool and question what lines that are not consultations record of late comparisons."""
    records: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for head in heads:
        if head["kind"] == "comparisons":
            records.setdefault((head["name"], head["details"]["id"]), []).append(head["details"])
    return records


def consultation_of(record: dict[str, Any], path: Path, where: str) -> Consultation:
    """Return the consultation of a line, checked."""
    del record["kind"]
    lacks = [name for name in ("id", "role", "outcome") if name not in record]
    _check(not lacks, path, where, f"a consultation without {' and '.join(lacks)}")
    for name in record.keys() - {*_FIELDS}:
        raise JournalError(f"{path}, {where}: {name!r:.80} is not a field of a consultation; remove it.")
    require_types(record, path, where)
    consultation, roles, outcomes = Consultation(**{"pool": "", **record}), (*CONSULTED, PROGRAM), get_args(Outcome)
    role, judge, outcome = consultation.role, consultation.judge, consultation.outcome
    names_judge = judge is None or (role == "judge" and is_name(judge))
    _check(role in roles, path, where, f"role={role!r:.80} is not one of {', '.join(roles)}")
    _check(names_judge, path, where, f"judge={judge!r:.80} does not name a judge")
    _check(outcome in outcomes, path, where, f"outcome={outcome!r:.80} is not one of {', '.join(outcomes)}")
    _check(outcome != "ok" or consultation.content is not None, path, where, "outcome 'ok' without content")
    return consultation


def require_types(record: Mapping[str, Any], path: Path, where: str) -> None:
    """Refuse a field of the wrong type, in a line that was read or is about to be written."""
    for name, value in record.items():
        if type(value) not in _TYPES[name] or (type(value) in _NUMBERS and not is_plausible(value)):
            kinds = [kind for kind in _TYPES[name] if kind is not int or float not in _TYPES[name]]
            types = " or ".join(_WORDS[kind] for kind in kinds)
            raise JournalError(f"{path}, {where}: {name}={value!r:.80} is not {types}.")


def is_plausible(value: object) -> bool:
    """Return whether a number may be journaled as a count, an amount in dollars or seconds: from 0 to 10**15."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool) and 0 <= value <= _MOST


def _check(holds: bool, path: Path, where: str, problem: str) -> None:
    if not holds:
        raise JournalError(f"{path}, {where}: {problem}.")
