"""From checkpoints to a pool: one or several candidates a question of each, frozen, with token probabilities.

The pool is what `eldgr_dspy.pools` reads. Candidates are in the order of the checkpoints, samples of one together. A
journal of the samples grows next to it: an interrupted call resumes from it, and a finished one asks no model.
"""

import gc
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.base.differences import differences
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.formats.journal_lines import PROGRAM
from eldgr_dspy.formats.rows import Row, validate
from eldgr_dspy.journal import Journal
from eldgr_dspy.pools import Pool, pool_name, write_pool
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.programs.service.file_locks import hold
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.rule.questions import require_one_of
from eldgr_dspy.training.checkpoints import Checkpoint, Precision, render
from eldgr_dspy.training.generation import Sampling, complete, numbers
from eldgr_dspy.training.model_outputs import outputs_of
from eldgr_dspy.training.outcome import read_gold

_PLACES = 4
_END = 16  # tokens at the end of a prompt, among which a template may open the thinking


def sample_pool(
    path: str | Path,
    questions: Iterable[Mapping[str, Any]],
    checkpoints: Mapping[str, str | Path],
    sampling: Sampling,
    *,
    base: str | Path | None = None,
    batch_size: int = 16,
    device: str | None = None,
    dtype: Precision = "auto",
) -> Pool:
    """Sample candidates from checkpoints and write them as a pool; resume an interrupted call.

    The answer to a question depends on the seed, its id, its prompt, the checkpoint with its name and the number of the
    sample. It does not depend on the order or the number of questions, checkpoints and samples. It depends on
    `batch_size`, `device` and the other completions of a batch only by rounding; see `eldgr_dspy.training.generation`.
    The global random streams are unchanged.

    Args:
        path: The file of the pool; its name states the format. `NAME.samples.jsonl` next to it is the journal.
        questions: Rows as for training: `id`, `prompt` (messages; text for models without a chat template), `question`,
            `task`, and optionally `gold` and `evidence`.
        checkpoints: A folder for each name: a model of transformers, or an adapter of PEFT. A model may also be named
            as on the Hugging Face Hub. A candidate's source is the name with the number of the sample, as `grpo/1`.
        sampling: How they are sampled.
        base: The base of the adapters, if it is not at the place that they name.
        batch_size: Completions at once.
        device: As torch names it; None takes a GPU if there is one.
        dtype: The precision of the weights; `auto` as they were saved.

    Returns:
        The pool. An answer is what `extract_answer` finds after the thinking, null if it finds none. `samples` under
        `meta`, which is not part of the content hash, has for each candidate in order: whether it `ended` or was cut
        off, the `form` of its answer, and where its tokens end in the text (`ends`) with their log-probabilities
        (`logps`) by the model itself at temperature 1.

    Raises:
        ArgumentError: A checkpoint or its chat template cannot be used, a prompt is too long, there is no checkpoint,
            or `path` is a pool that was not sampled; all of it before anything is sampled.
        PoolError: The questions do not make a pool.
        RunChangedError: The journal was started with other settings, weights or prompts.
        RunLockedError: Another process is sampling into it.
    """
    path = Path(path)
    require_one_of("dtype", dtype, get_args(Precision))
    if type(batch_size) is not int or batch_size < 1:
        raise ArgumentError(f"batch_size must be a whole number of at least 1; got {batch_size!r:.80}.")
    if not checkpoints:
        raise ArgumentError("checkpoints must have at least one, such as {'grpo': 'runs/grpo'}; got none.")
    rows = _questions(path, questions)
    plans = [_plan(Checkpoint.of(name, model, base), rows, sampling) for name, model in checkpoints.items()]
    beside = path.with_name(f"{pool_name(path)}.samples.jsonl")
    if path.exists() and not beside.exists():
        raise ArgumentError(f"{path} exists without {beside.name} next to it; give a path that is not in use.")
    settings = {name: getattr(sampling, name) for name in ("seed", "temperature", "top_p", "max_new_tokens")}
    busy = f"{beside}: another process is sampling into it; wait for it, or give another path."
    with hold(beside.with_name(f".{beside.name}.lock"), busy):
        with Journal(beside) as journal:
            _state(journal, "sampling", {**settings, "dtype": dtype})
            for plan in plans:
                _state(journal, f"checkpoint {plan.checkpoint.name}", plan.checkpoint.identity())
            missing = [_missing(journal, plan, sampling.samples) for plan in plans]
            for plan, keys in zip(plans, missing, strict=True):
                _fill(journal, plan, keys, sampling, batch_size, device, dtype)
        with Journal(beside) as journal:
            return write_pool(path, _rows(rows, plans, sampling, journal))


_Question = tuple[Row, Any]
"""A question: its row, in which one empty candidate is a placeholder for the samples, and its prompt."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The prompts for a checkpoint: for each question's id the tokens."""

    checkpoint: Checkpoint
    tokenizer: Any
    prompts: Mapping[str, list[int]]

    def key(self, id: str, number: int) -> tuple[str, str, Any]:
        """Return the key of a sample in the journal; its first part is the source of the candidate."""
        return f"{self.checkpoint.name}/{number}", id, PROGRAM


def _questions(path: Path, questions: Iterable[Mapping[str, Any]]) -> list[_Question]:
    """Return the questions, checked as a pool before hours are spent on them."""
    rows = [_question(f"questions[{at}]", record) for at, record in enumerate(questions)]
    with tempfile.TemporaryDirectory() as folder:
        write_pool(Path(folder) / path.name, (row for row, _ in rows))
    return rows


def _question(where: str, fields: Mapping[str, Any]) -> _Question:
    for name in ("id", "prompt", "question", "task"):
        if fields.get(name) is None:
            raise ArgumentError(f"{where} must have id, prompt, question and task; it has no {name!r}.")
    gold = fields.get("gold")
    try:
        passages = to_passages(fields.get("evidence"))
    except ArgumentError as error:
        raise ArgumentError(f"{where}: {error}") from error
    record = {
        **{name: fields[name] for name in ("id", "question", "task")},
        "candidates": [{}],
        "evidence": [{"title": passage.title, "text": passage.text} for passage in passages],
        "gold": [gold] if isinstance(gold, str) else [] if gold is None else gold,
    }
    row = validate(record, where)
    row = row.model_copy(update={"gold": list(read_gold(f"{where}: gold", row.gold, row.task))})
    return row, fields["prompt"]


def _plan(checkpoint: Checkpoint, questions: Sequence[_Question], sampling: Sampling) -> _Plan:
    """Render every prompt, so that what a checkpoint lacks is reported before another one is sampled for hours."""
    tokenizer, window = checkpoint.tokenizer(), checkpoint.window()
    prompts = {row.id: render(tokenizer, checkpoint.name, row.id, prompt) for row, prompt in questions}
    for id, tokens in prompts.items():
        if window is not None and len(tokens) + sampling.max_new_tokens > window:
            raise ArgumentError(
                f"The prompt of the question {id!r:.80} has {len(tokens)} tokens, and with {sampling.max_new_tokens} "
                f"to follow that is more than the {window} which the checkpoint {checkpoint.name!r} takes; shorten it "
                "or drop the question."
            )
    return _Plan(checkpoint, tokenizer, prompts)


def _state(journal: Journal, name: str, details: Mapping[str, Any]) -> None:
    """State settings that all samples share; an earlier statement must be the same."""
    earlier = next((head["details"] for head in journal.heads if head["name"] == name), None)
    if earlier is None:
        journal.append_head({"kind": "settings", "name": name, "details": details})
    elif changes := differences(earlier, details):
        lines = "\n".join(f"  {line}" for line in changes)
        raise RunChangedError(
            f"{journal.path}: it was started with another {name}:\n{lines}\nUndo the change, or give another path for "
            "the pool."
        )


def _missing(journal: Journal, plan: _Plan, samples: int) -> list[tuple[str, int]]:
    """Return which samples a journal lacks, by question and number; one that it has must be of the same prompt."""
    missing = list[tuple[str, int]]()
    for id, prompt in plan.prompts.items():
        for number in range(1, samples + 1):
            entry = journal.find(plan.key(id, number))
            if entry is None:
                missing.append((id, number))
            elif (entry.content or {}).get("prompt") != _hash(prompt):
                raise RunChangedError(
                    f"{journal.path}: the question {id!r:.80} was sampled from {plan.checkpoint.name!r} with another "
                    "prompt or another chat template; undo the change, give the question another id, or give another "
                    "path for the pool."
                )
    return missing


def _fill(
    journal: Journal,
    plan: _Plan,
    missing: Sequence[tuple[str, int]],
    sampling: Sampling,
    batch_size: int,
    device: str | None,
    dtype: Precision,
) -> None:
    """Sample what a journal lacks of a checkpoint, a batch at a time; the model is loaded only for that."""
    if not missing:
        return
    model = plan.checkpoint.policy(plan.tokenizer, device=device, dtype=dtype)
    for first in range(0, len(missing), batch_size):
        keys = missing[first : first + batch_size]
        prompts = [plan.prompts[id] for id, _ in keys]
        streams = [numbers(sampling.max_new_tokens, sampling.seed, id, plan.checkpoint.name, at) for id, at in keys]
        completions = complete(
            model, plan.tokenizer, prompts, streams, temperature=sampling.temperature, top_p=sampling.top_p
        )
        for key, prompt, completion in zip(keys, prompts, completions, strict=True):
            content = {
                "prompt": _hash(prompt),
                "text": completion.tokens.text,
                "ended": completion.ended,
                "ends": list(completion.tokens.ends),
                "logps": [round(logp, _PLACES) for logp in completion.tokens.logps],
            }
            journal.append(Consultation(*plan.key(*key), "ok", content=content))
        journal.flush()
    del model
    gc.collect()  # to free memory for the next one


def _rows(
    questions: Sequence[_Question], plans: Sequence[_Plan], sampling: Sampling, journal: Journal
) -> Iterator[Row]:
    """Yield each question with its samples; what a model thinks is part of the text, and holds no answer."""
    for row, _ in questions:
        candidates, records = list[dict[str, Any]](), list[dict[str, Any]]()
        for plan in plans:
            end_of_prompt = plan.tokenizer.decode(plan.prompts[row.id][-_END:])
            for number in range(1, sampling.samples + 1):
                key = plan.key(row.id, number)
                entry: Any = journal.find(key)
                text, ended, ends, logps = (entry.content[name] for name in ("text", "ended", "ends", "logps"))
                (output,) = outputs_of([text], [end_of_prompt])
                answer = extract_answer(output.final, row.task)
                candidates.append({"text": text, "answer": answer.answer if answer else None, "source": key[0]})
                form = answer.form if answer else None
                records.append({"ended": ended, "form": form, "ends": ends, "logps": logps})
        yield Row.model_validate({**row.model_dump(), "candidates": candidates, "meta": {"samples": records}})


def _hash(prompt: Sequence[int]) -> str:
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()[:16]
