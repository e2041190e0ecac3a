"""From checkpoints to a pool: one or several candidates a question of each, frozen, with token probabilities.

The pool is what `eldgr_dspy.pools` reads. Candidates are in the order of the checkpoints, samples of one together. A
file of the samples grows next to it: an interrupted call resumes from it, and a finished one asks no model.
"""

import gc
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.extraction import extract_answer
from eldgr_dspy.pools import Pool, pool_name, write_pool
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.questions import require_one_of
from eldgr_dspy.rows import Row, validate
from eldgr_dspy.training.checkpoints import Checkpoint, Precision, rendered
from eldgr_dspy.training.completions import outputs_of
from eldgr_dspy.training.generation import Sampling, complete, numbers
from eldgr_dspy.training.samples import Key, Sample, SamplesFile

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
        path: The file of the pool; its name states the format. `NAME.samples.jsonl` next to it holds the samples.
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
        RunChangedError: The file of samples was started with other settings, weights or prompts.
        RunLockedError: Another process is sampling into it.
    """
    path = Path(path)
    require_one_of("dtype", dtype, get_args(Precision))
    if type(batch_size) is not int or batch_size < 1:
        raise ArgumentError(f"batch_size must be a whole number of at least 1; got {batch_size!r:.80}.")
    if not checkpoints:
        raise ArgumentError("checkpoints must have at least one, such as {'grpo': 'runs/grpo'}; got none.")
    asked = _asked(path, questions)
    plans = [_plan(Checkpoint.of(name, model, base), asked, sampling) for name, model in checkpoints.items()]
    beside = path.with_name(f"{pool_name(path)}.samples.jsonl")
    if path.exists() and not beside.exists():
        raise ArgumentError(f"{path} exists without {beside.name} next to it; give a path that is not in use.")
    with SamplesFile.opened(beside) as samples:
        settings = _settings(sampling, dtype)
        samples.state("settings", "sampling", settings)
        for plan in plans:
            samples.state("checkpoint", plan.checkpoint.name, plan.checkpoint.identity())
            for key in plan.keys(sampling.samples):
                samples.require_prompt(key, _hash(plan.prompts[key[0]]))
        for plan in plans:
            _fill(samples, plan, sampling, batch_size, device, dtype)
        return write_pool(path, _rows(asked, plans, sampling, samples))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question: its row, in which one empty candidate is a placeholder for the samples, and its prompt."""

    row: Row
    prompt: Any


@dataclass(frozen=True, slots=True)
class _Plan:
    """The prompts for a checkpoint: for each question's id the tokens."""

    checkpoint: Checkpoint
    tokenizer: Any
    prompts: Mapping[str, list[int]]

    def keys(self, samples: int) -> list[Key]:
        return [(id, self.checkpoint.name, number) for id in self.prompts for number in range(1, samples + 1)]


def _asked(path: Path, questions: Iterable[Mapping[str, Any]]) -> list[_Asked]:
    """Return the questions, checked as a pool before hours are spent on them."""
    asked = [_question(f"questions[{at}]", given) for at, given in enumerate(questions)]
    with tempfile.TemporaryDirectory() as folder:
        write_pool(Path(folder) / path.name, (question.row for question in asked))
    return asked


def _question(where: str, given: Mapping[str, Any]) -> _Asked:
    for name in ("id", "prompt", "question", "task"):
        if given.get(name) is None:
            raise ArgumentError(f"{where} must have id, prompt, question and task; it has no {name!r}.")
    gold = given.get("gold")
    try:
        passages = to_passages(given.get("evidence"))
    except ArgumentError as error:
        raise ArgumentError(f"{where}: {error}") from error
    record = {
        **{name: given[name] for name in ("id", "question", "task")},
        "candidates": [{}],
        "evidence": [{"title": passage.title, "text": passage.text} for passage in passages],
        "gold": [gold] if isinstance(gold, str) else [] if gold is None else gold,
    }
    return _Asked(validate(record, where), given["prompt"])


def _plan(checkpoint: Checkpoint, asked: Sequence[_Asked], sampling: Sampling) -> _Plan:
    """Render every prompt, so that what a checkpoint lacks is reported before another one is sampled for hours."""
    tokenizer, window = checkpoint.tokenizer(), checkpoint.window()
    prompts = {
        question.row.id: rendered(tokenizer, checkpoint.name, question.row.id, question.prompt) for question in asked
    }
    for id, tokens in prompts.items():
        if window is not None and len(tokens) + sampling.max_new_tokens > window:
            raise ArgumentError(
                f"The prompt of the question {id!r:.80} has {len(tokens)} tokens, and with {sampling.max_new_tokens} "
                f"to follow that is more than the {window} which the checkpoint {checkpoint.name!r} takes; shorten it "
                "or drop the question."
            )
    return _Plan(checkpoint, tokenizer, prompts)


def _settings(sampling: Sampling, dtype: Precision) -> dict[str, Any]:
    """Return the settings that every sample of a file shares; the number of samples may grow."""
    names = ("seed", "temperature", "top_p", "max_new_tokens")
    return {**{name: getattr(sampling, name) for name in names}, "dtype": dtype}


def _fill(
    samples: SamplesFile, plan: _Plan, sampling: Sampling, batch_size: int, device: str | None, dtype: Precision
) -> None:
    """Sample what a file still lacks of a checkpoint, a batch at a time; the model is loaded only for that."""
    missing = [key for key in plan.keys(sampling.samples) if key not in samples.samples]
    if not missing:
        return
    model = plan.checkpoint.policy(plan.tokenizer, device=device, dtype=dtype)
    for at in range(0, len(missing), batch_size):
        samples.add(_batch(model, plan, missing[at : at + batch_size], sampling))
    del model
    gc.collect()  # to free memory for the next one


def _batch(model: Any, plan: _Plan, keys: Sequence[Key], sampling: Sampling) -> list[Sample]:
    prompts = [plan.prompts[id] for id, _, _ in keys]
    drawn = [numbers(sampling.max_new_tokens, sampling.seed, *key) for key in keys]
    completions = complete(
        model, plan.tokenizer, prompts, drawn, temperature=sampling.temperature, top_p=sampling.top_p
    )
    return [
        Sample(
            *key,
            prompt=_hash(prompt),
            text=completion.tokens.text,
            ended=completion.ended,
            ends=list(completion.tokens.ends),
            logps=[round(logp, _PLACES) for logp in completion.tokens.logps],
        )
        for key, prompt, completion in zip(keys, prompts, completions, strict=True)
    ]


def _rows(asked: Sequence[_Asked], plans: Sequence[_Plan], sampling: Sampling, samples: SamplesFile) -> Iterator[Row]:
    for question in asked:
        id, own, prompts = question.row.id, list[Sample](), list[str]()
        for plan in plans:
            own += [samples.samples[id, plan.checkpoint.name, number] for number in range(1, sampling.samples + 1)]
            prompts += [plan.tokenizer.decode(plan.prompts[id][-_END:])] * sampling.samples
        yield _row(question.row, own, prompts)


def _row(row: Row, samples: Sequence[Sample], prompts: Sequence[str]) -> Row:
    """Return a question with its samples; what a model thinks is part of the text, and holds no answer."""
    outputs = outputs_of([sample.text for sample in samples], prompts)
    answers = [extract_answer(output.final, row.task) for output in outputs]
    pairs = list(zip(samples, answers, strict=True))
    candidates = [
        {
            "text": sample.text,
            "answer": answer.answer if answer else None,
            "source": f"{sample.checkpoint}/{sample.number}",
        }
        for sample, answer in pairs
    ]
    shown = [
        {"ended": sample.ended, "form": answer.form if answer else None, "ends": sample.ends, "logps": sample.logps}
        for sample, answer in pairs
    ]
    return Row.model_validate({**row.model_dump(), "candidates": candidates, "meta": {"samples": shown}})


def _hash(prompt: Sequence[int]) -> str:
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()[:16]
