"""Logs of two public harnesses: the samples of lm-evaluation-harness, a line each, and the JSON log of inspect.

Read is what the model wrote. What a harness's own filter or scorer made of it is not: answers are found in the same way
whichever harness sampled them.
"""

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eldgr_dspy.errors import PoolError
from eldgr_dspy.files import read_object, read_whole
from eldgr_dspy.programs.pools.entries import (
    Entry,
    Sample,
    final_answers,
    id_at,
    object_at,
    text_at,
)

MAX_LOG = 256 * 2**20
"""The longest log of inspect that is read, in bytes, unpacked; read whole, it takes some five times as much memory."""

_SPLIT = "write the samples of such a log as JSON lines with id, prediction and gold"
_NAMED = "The name of a file of JSON lines ends in .jsonl."


def harness_entry(row: Mapping[str, Any], where: str) -> Entry:
    """Return an entry of `samples_TASK_DATE.jsonl`, which lm-evaluation-harness writes with `--log_samples`.

    Read are `doc_id`, the `question` of `doc`, `target`, and `resps`: a list for the one request, with a text for each
    repetition. The harness writes a question once a filter, each time with the same `resps`.

    Raises:
        PoolError: the row is none, or its task compares likelihoods and generates no text.
    """
    samples = tuple(_responses(row.get("resps"), where))
    doc = row.get("doc")
    question = doc.get("question") if isinstance(doc, Mapping) else None
    return Entry(
        where,
        id_at(row, "doc_id", where),
        text_at(question, "doc.question", where) if isinstance(question, str) else None,
        samples,
        final_answers(_unquoted(row.get("target")), "target", where),
        may_repeat=True,
    )


def _responses(resps: Any, where: str) -> Iterator[Sample]:
    """The texts of the one request of a task that generates."""
    request = resps[0] if isinstance(resps, list) and len(resps) == 1 else None
    if not isinstance(request, list) or not request or not all(isinstance(one, str) for one in request):
        raise PoolError(
            f"{where}: resps is {resps!r:.80}; expected [[text, ...]], as tasks have it that generate text. "
            "Tasks that compare likelihoods sample nothing."
        )
    for index, one in enumerate(request):
        yield Sample(text_at(one, f"resps[0][{index}]", where))


def _unquoted(target: Any) -> Any:
    """The texts of a target that is a list: the harness writes `str(target)`, which is then Python's list of texts."""
    if not (isinstance(target, str) and target.startswith("[") and target.endswith("]")):
        return target
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that only a text which is no such list can have
            found = ast.literal_eval(target)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return target
    return found if found and all(isinstance(one, str) for one in found) else target


def read_inspect_log(path: Path, *, unfinished: bool = False, told: list[str] | None = None) -> Iterator[Entry]:
    """Yield the questions of a log of inspect in JSON, with a sample for each epoch and choice, epochs in order.

    Read are of each of `samples`: `id`, `epoch`, `input` (the last message of the user, if it is a list), `target` and
    `output`, the text parts of its `choices` or else its `completion`; and how far the log came: its `status`, each
    sample's `error`, and how many samples it was to have. The log is read into memory whole.

    Args:
        path: The log.
        unfinished: Whether a log that failed, was cancelled or still runs is read too.
        told: Is given what the log lacks, a sentence.

    Raises:
        PoolError: it is not such a log, holds no samples, is unfinished, or is longer than `MAX_LOG`.
    """
    if path.name.endswith(".eval"):
        raise PoolError(f"{path}: is a log in inspect's binary format; write it as JSON: inspect log dump {path.name}")
    try:
        log = read_object(read_whole(path, MAX_LOG, _SPLIT), str(path))
    except PoolError as error:
        raise PoolError(f"{error} {_NAMED}") from error
    samples = log.get("samples") if isinstance(log, Mapping) else None
    lacking = _lacking(log, samples or []) if isinstance(log, Mapping) and isinstance(samples or [], list) else ""
    if lacking and log.get("status") != "success" and not unfinished:
        raise PoolError(
            f"{path}: {lacking}. The questions that came first would stand for all of them; finish the log with "
            "inspect eval-retry, or take it as it is with --unfinished."
        )
    if not isinstance(samples, list) or not samples:
        raise PoolError(
            f"{path}: no log of inspect, or one without samples; expected an object with a list `samples`. {_NAMED}"
        )
    if lacking and told is not None:
        told.append(f"{path}: {lacking}.")
    for numbered in _by_question(samples, path).values():
        yield _inspected([numbered[epoch] for epoch in sorted(numbered)])


def _lacking(log: Mapping[str, Any], samples: Sequence[Any]) -> str:
    """Say of a log that is not whole of what status it is and how many of its samples are done; empty if it is."""
    status, planned = log.get("status", "success"), _planned(log)
    failed = sum(1 for one in samples if isinstance(one, Mapping) and one.get("error"))
    done = len(samples) - failed
    of, many = "" if planned is None else f" of {planned:,}", "" if (planned or done) == 1 else "s"
    if status == "success" and not failed and done >= (planned or 0):
        return ""
    ended = f"; {failed:,} ended in an error" if failed else ""
    return f"a log of status {status!r:.40}, with {done:,}{of} sample{many} done{ended}"


def _planned(log: Mapping[str, Any]) -> int | None:
    """How many samples a log was to have: by its results, or by the dataset and its epochs where there are none."""
    results, about = log.get("results"), log.get("eval")
    total = results.get("total_samples") if isinstance(results, Mapping) else None
    if type(total) is int and total:
        return total
    dataset, config = ((about.get(one) if isinstance(about, Mapping) else None) for one in ("dataset", "config"))
    if not isinstance(dataset, Mapping):
        return None
    ids, limit = dataset.get("sample_ids"), config.get("limit") if isinstance(config, Mapping) else None
    n = len(ids) if isinstance(ids, list) else dataset.get("samples")
    epochs = (config.get("epochs") if isinstance(config, Mapping) else None) or 1
    if type(n) is not int or type(epochs) is not int:
        return None
    if isinstance(limit, list) and len(limit) == 2 and all(type(one) is int for one in limit):
        limit = limit[1] - limit[0]
    return (min(n, limit) if type(limit) is int else n) * epochs


def _by_question(samples: Sequence[Any], path: Path) -> dict[str, dict[int, tuple[str, Mapping[str, Any]]]]:
    """The samples of each question by epoch, each with its place."""
    found: dict[str, dict[int, tuple[str, Mapping[str, Any]]]] = {}
    for index, one in enumerate(samples):
        where = f"{path}, samples[{index}]"
        sample = object_at(one, where)
        name, epoch = id_at(sample, "id", where), sample.get("epoch", 1)
        if name is None or type(epoch) is not int:
            raise PoolError(f"{where}: id or epoch is missing or none; expected a log of inspect.")
        other = found.setdefault(name, {}).setdefault(epoch, (where, sample))
        if other[1] is not sample:
            raise PoolError(f"{where}: id {name!r} and epoch {epoch} stand in {other[0]} too; keep one of them.")
    return found


def _inspected(epochs: Sequence[tuple[str, Mapping[str, Any]]]) -> Entry:
    where, first = epochs[0]
    question = _asked(first.get("input"), where)
    gold = final_answers(first.get("target"), "target", where)
    samples = tuple(sample for place, one in epochs for sample in _outputs(one.get("output"), place))
    return Entry(where, id_at(first, "id", where), question, samples, gold)


def _asked(given: Any, where: str) -> str:
    if isinstance(given, list):
        users = [one for one in given if isinstance(one, Mapping) and one.get("role") == "user"]
        given = _content(users[-1].get("content"), "input", where) if users else None
    return text_at(given, "input", where)


def _outputs(output: Any, where: str) -> Iterator[Sample]:
    """A sample for each choice; one without text where the model was never heard."""
    found = object_at(output or {}, f"{where}, output")
    choices = found.get("choices")
    if not isinstance(choices, list) or not choices:
        yield Sample(text_at(found.get("completion") or "", "output.completion", where))
        return
    for index, choice in enumerate(choices):
        field = f"output.choices[{index}].message"
        message = object_at(object_at(choice, where).get("message"), f"{where}, {field}")
        yield Sample(_content(message.get("content"), f"{field}.content", where))


def _content(content: Any, field: str, where: str) -> str:
    """The text of a message: itself, or its parts of text, so that neither reasoning nor images are among it."""
    if not isinstance(content, list):
        return text_at(content or "", field, where)
    parts = [one for one in content if isinstance(one, Mapping) and one.get("type") == "text"]
    return text_at("\n".join(text_at(one.get("text"), field, where) for one in parts), field, where)
