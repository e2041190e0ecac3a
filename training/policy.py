"""The log-probabilities of sampled tokens by the policy itself, with or without adapters.

Samplers report them in different ways: generation of transformers not at all, and vLLM those after temperature and
cut-off. So the policy reads each sequence once more, in evaluation mode and without gradients. This is the cost of
`epist`: one forward pass over prompts and completions.

Log-probabilities are computed in float32 for `CHUNK` tokens at a time, so that only the logits in the precision of the
model are held whole, which TRL's own loss holds too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from eldgr_dspy.training.confidence import TokenConfidence, token_confidence

BATCH: Final = 8
"""Sequences that are read at once, if no trainer says how many."""

CHUNK: Final = 128
"""Tokens whose logits are held in float32 at once (ours)."""


def token_logps(
    model: Any, prompt_ids: Sequence[Sequence[int]], completion_ids: Sequence[Sequence[int]], *, batch_size: int = BATCH
) -> list[list[float]]:
    """Return log p(token | prompt and earlier tokens) at temperature 1 for each token of each completion, in nats.

    Sequences are padded on the right, where a causal model does not look, so positions are those of a sequence alone;
    and prompts of similar length are read together. Dropout is off; each module keeps its mode.

    Args:
        model: A causal language model of transformers, adapters included; it reads on its current device.
        prompt_ids: The tokens of each prompt; at least one.
        completion_ids: The tokens of each completion.
        batch_size: Sequences at once.
    """
    import torch

    rows = [(list(prompt), list(completion)) for prompt, completion in zip(prompt_ids, completion_ids, strict=True)]
    order = sorted(range(len(rows)), key=lambda at: len(rows[at][0]))
    all_logps: list[list[float]] = [[] for _ in rows]
    with _evaluating(model), torch.no_grad():
        for first in range(0, len(rows), batch_size):
            places = order[first : first + batch_size]
            for at, logps in zip(places, _logps(model, [rows[at] for at in places]), strict=True):
                all_logps[at] = logps
    return all_logps


def policy_confidence(
    trainer: Any, prompts: Sequence[object], completion_ids: Sequence[Sequence[int]]
) -> list[TokenConfidence] | None:
    """Return the token confidence of each completion under the policy of a trainer of TRL, at temperature 1.

    If the model is sharded over processes, each of them must call this with as many completions.

    Args:
        trainer: With `model`, `args` and `processing_class`.
        prompts: One a completion, as a reward function gets them.
        completion_ids: The tokens of each completion.

    Returns:
        None if the trainer is not one of TRL that tokenises its prompts in one place, or the prompts have images.
    """
    tokenize = getattr(trainer, "_tokenize_prompts", None)
    if tokenize is None:
        return None
    prompt_ids, images, _ = tokenize(list(prompts))
    if images:
        return None
    batch_size = trainer.args.per_device_train_batch_size
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    all_logps = token_logps(trainer.model, prompt_ids, completion_ids, batch_size=batch_size)
    # A trainer's text is without special tokens, also those that have no name, as <|channel|>.
    special = [token for token, details in tokenizer.added_tokens_decoder.items() if details.special]
    rows = zip(completion_ids, all_logps, strict=True)
    return [token_confidence(tokenizer, ids, logps, special) for ids, logps in rows]


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _logps(model: Any, batch: list[tuple[list[int], list[int]]]) -> Iterator[list[float]]:
    import torch

    longest = max(len(prompt) + len(completion) for prompt, completion in batch)
    first = min(len(prompt) for prompt, _ in batch) - 1  # earlier logits do not predict a completion
    ids = torch.zeros((len(batch), longest), dtype=torch.long)
    mask, targets = torch.zeros_like(ids), torch.zeros((len(batch), longest - first), dtype=torch.bool)
    for at, (prompt, completion) in enumerate(batch):
        ids[at, : len(prompt) + len(completion)] = torch.tensor(prompt + completion)
        mask[at, : len(prompt) + len(completion)] = 1
        targets[at, len(prompt) - 1 - first : len(prompt) - 1 - first + len(completion)] = True
    tokens = torch.tensor([token for _, completion in batch for token in completion], dtype=torch.long)

    inputs = {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}
    logits = model(**inputs, use_cache=False, logits_to_keep=longest - first).logits[:, -targets.shape[1] :]
    logps = _by_chunks(logits, targets.to(logits.device), tokens.to(logits.device))
    yield from ([next(logps) for _ in completion] for _, completion in batch)


def _by_chunks(logits: Any, targets: Any, tokens: Any) -> Iterator[float]:
    for places, chunk_tokens in zip(targets.nonzero().split(CHUNK), tokens.split(CHUNK), strict=True):
        rows = logits[places[:, 0], places[:, 1]].float()
        yield from rows.log_softmax(dim=-1).gather(1, chunk_tokens[:, None])[:, 0].tolist()
