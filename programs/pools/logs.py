"""Logs of two public harnesses: the samples of lm-evaluation-harness, a line each, and the log of inspect.

Only the model's output is read, not the result of a harness's own filter or scorer: answers are found in the same way
for every harness.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eldgr_dspy.base.file_limits import MAX_DOCUMENT_VALUES
from eldgr_dspy.base.files import read_object, read_whole
from eldgr_dspy.errors import PoolError
from eldgr_dspy.formats.foreign_formats import named_layout
from eldgr_dspy.programs.pools.entries import (
    Entry,
    Sample,
    choices_at,
    columns_at,
    content_at,
    fields_of,
    id_at,
    is_cut,
    last_message,
    object_at,
    question_at,
    text_at,
)
from eldgr_dspy.programs.pools.eval_archives import is_archive, read_archive
from eldgr_dspy.programs.pools.gold_answers import gold_at

MAX_LOG = 256 * 2**20  # bytes of a log of inspect in JSON, unpacked; in memory it takes about five times as much
_HINT = "The name of a file of JSON lines ends in .jsonl."


def harness_entry(row: Mapping[str, Any], where: str) -> Entry:
    """Return an entry of `samples_TASK_DATE.jsonl`, which lm-evaluation-harness writes with `--log_samples`."""
    # No column is read from the harness's metrics, which were made with the target.
    samples = tuple(_responses(row.get("resps"), where))
    doc, target = fields_of(row.get("doc")), row.get("target")
    choices = choices_at(doc)
    if choices.texts and isinstance(target, str) and target not in choices.texts and re.fullmatch(r"\d{1,4}", target):
        target = int(target)  # the harness writes the place of an option as text
    return Entry(
        where,
        id_at(row, "doc_id", where),
        question_at({name: value for name, value in doc.items() if isinstance(value, str)}, where),
        samples,
        gold_at({"target": target}, where, choices) or gold_at(doc, where, choices, samples=True),
        options=choices.texts,
        may_repeat=True,  # the harness writes a question once for each filter, each time with the same `resps`
    )


def _responses(resps: Any, where: str) -> Iterator[Sample]:
    request = resps[0] if isinstance(resps, list) and len(resps) == 1 else None
    if not isinstance(request, list) or not request or not all(isinstance(text, str) for text in request):
        raise PoolError(
            f"{where}: resps must be [[text, ...]], as for tasks that generate text; got {resps!r:.80}. "
            "Tasks that compare likelihoods sample nothing."
        )
    for index, text in enumerate(request):
        yield Sample(text_at(text, f"resps[0][{index}]", where))


def read_inspect_log(path: Path, *, unfinished: bool = False, notes: list[str] | None = None) -> Iterator[Entry]:
    """Yield the questions of a log of inspect, with a sample for each epoch and choice, epochs in order."""
    log, samples = read_archive(path) if is_archive(path) else _read_json(path)
    lacking = _lacking(log, [sample for _, sample in samples])
    if lacking and log.get("status") != "success" and not unfinished:
        raise PoolError(
            f"{path}: {lacking}. Its first questions would represent all of them; finish the log with "
            "inspect eval-retry, or accept it as it is with --unfinished."
        )
    if not samples:
        fault = named_layout(log) or f"must be a log of inspect with samples, and has none. {_HINT}"
        raise PoolError(f"{path}: {fault}")
    if lacking and notes is not None:
        notes.append(f"{path}: {lacking}.")
    for by_epoch in _by_question(samples).values():
        epochs = [by_epoch[epoch] for epoch in sorted(by_epoch)]
        where, first = epochs[0]
        question = text_at(last_message(first.get("input"), "input", where), "input", where)
        choices = choices_at(first)
        gold = gold_at({"target": first.get("target")}, where, choices)
        # `scores` is not read, because it was made with the target.
        outputs = tuple(one for place, record in epochs for one in _outputs(record.get("output"), place))
        yield Entry(where, id_at(first, "id", where), question, outputs, gold, options=choices.texts)


def _read_json(path: Path) -> tuple[Mapping[str, Any], list[tuple[str, Any]]]:
    try:
        data = read_whole(path, MAX_LOG, "write the samples of such a log as JSON lines with id, prediction and gold")
        log = fields_of(read_object(data, str(path), MAX_DOCUMENT_VALUES))
    except PoolError as error:
        raise PoolError(f"{error} {_HINT}") from error
    samples = log.get("samples")
    pairs = enumerate(samples if isinstance(samples, list) else ())
    return log, [(f"{path}, samples[{index}]", sample) for index, sample in pairs]


def _lacking(log: Mapping[str, Any], samples: Sequence[Any]) -> str:
    """Describe an incomplete log: its status and how many of its samples are done. Empty if it is complete."""
    status, plan = log.get("status", "success"), _sample_plan(log)
    failures = sum(1 for sample in samples if fields_of(sample).get("error"))
    complete = len(samples) - failures
    of, many = "" if plan is None else f" of {plan:,}", "" if (plan or complete) == 1 else "s"
    if status == "success" and not failures and complete >= (plan or 0):
        return ""
    note = f"; {failures:,} ended in an error" if failures else ""
    return f"a log of status {status!r:.40}, with {complete:,}{of} sample{many} done{note}"


def _sample_plan(log: Mapping[str, Any]) -> int | None:
    """Return how many samples were planned: by the log's results, or else by the dataset and its epochs."""
    total, about = fields_of(log.get("results")).get("total_samples"), fields_of(log.get("eval"))
    if type(total) is int and total:
        return total
    dataset, config = fields_of(about.get("dataset")), fields_of(about.get("config"))
    ids, limit, epochs = dataset.get("sample_ids"), config.get("limit"), config.get("epochs") or 1
    n = len(ids) if isinstance(ids, list) else dataset.get("samples")
    if type(n) is not int or type(epochs) is not int:
        return None
    if isinstance(limit, list) and len(limit) == 2 and all(type(bound) is int for bound in limit):
        limit = limit[1] - limit[0]
    return (min(n, limit) if type(limit) is int else n) * epochs


def _by_question(samples: Sequence[tuple[str, Any]]) -> dict[str, dict[int, tuple[str, Mapping[str, Any]]]]:
    """Return the samples of each question by epoch, each with its place."""
    questions: dict[str, dict[int, tuple[str, Mapping[str, Any]]]] = {}
    for where, raw in samples:
        sample = object_at(raw, where)
        name, epoch = id_at(sample, "id", where), sample.get("epoch", 1)
        if name is None or type(epoch) is not int:
            raise PoolError(f"{where}: id or epoch is missing or invalid; expected a log of inspect.")
        other = questions.setdefault(name, {}).setdefault(epoch, (where, sample))
        if other[1] is not sample:
            raise PoolError(f"{where}: id {name!r} and epoch {epoch} are also in {other[0]}; keep one of them.")
    return questions


def _outputs(output: Any, where: str) -> Iterator[Sample]:
    fields = object_at(output or {}, f"{where}, output")
    choices = fields.get("choices")
    if not isinstance(choices, list) or not choices:
        yield Sample(text_at(fields.get("completion") or "", "output.completion", where), cut=is_cut(fields))
        return
    for index, choice in enumerate(choices):
        field = f"output.choices[{index}].message"
        message = object_at(object_at(choice, where).get("message"), f"{where}, {field}")
        columns = columns_at({"logprobs": choice.get("logprobs")}, where, f"output.choices[{index}].{{}}")
        text = content_at(message.get("content"), f"{field}.content", where)
        yield Sample(text, columns=columns, cut=is_cut(choice))
