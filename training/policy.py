"""The log-probabilities of sampled tokens by the policy itself, with or without adapters.

Samplers report them in different ways: generation of transformers not at all, and vLLM those after temperature and
cut-off. So the policy reads each sequence once more, in evaluation mode and without gradients. This is the cost of
`epist`: one forward pass over prompts and completions.

The logits of a batch are never held whole. The model's last layer, its head, reads `CHUNK` tokens at a time, so the
memory for logits in float32 is bounded by CHUNK x vocabulary x 4 bytes, not by batch x length x vocabulary x 4. For 16
completions of 128 tokens and the 151,936 words of Qwen2.5 that is 78 MB in place of 1.24 GB, which stood next to 0.62
GB of the same logits in bfloat16.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from eldgr_dspy.training.confidence import TokenConfidence, token_confidence

TEMPERATURE: Final = 1.0
"""The logits are divided by it; 1 is the model's own distribution."""

BATCH: Final = 8
"""Sequences that are read at once, if no trainer says how many."""

CHUNK: Final = 128
"""Tokens whose logits are held at once (ours)."""


def token_logps(
    model: Any,
    prompt_ids: Sequence[Sequence[int]],
    completion_ids: Sequence[Sequence[int]],
    *,
    temperature: float = TEMPERATURE,
    batch_size: int = BATCH,
) -> list[list[float]]:
    """Return log p(token | prompt and earlier tokens) for each token of each completion, in nats.

    Sequences are padded on the right, where a causal model does not look, so positions are those of a sequence alone;
    and prompts of similar length are read together. Dropout is off; each module keeps its mode.

    Args:
        model: A causal language model of transformers, adapters included; it reads on its current device.
        prompt_ids: The tokens of each prompt; at least one.
        completion_ids: The tokens of each completion.
        temperature: The divisor of the logits.
        batch_size: Sequences at once.
    """
    import torch

    rows = [(list(prompt), list(completion)) for prompt, completion in zip(prompt_ids, completion_ids, strict=True)]
    order = sorted(range(len(rows)), key=lambda at: len(rows[at][0]))
    all_logps: list[list[float]] = [[] for _ in rows]
    with _evaluating(model), torch.no_grad():
        for first in range(0, len(rows), batch_size):
            places = order[first : first + batch_size]
            for at, logps in zip(places, _logps(model, [rows[at] for at in places], temperature), strict=True):
                all_logps[at] = logps
    return all_logps


def policy_confidence(
    trainer: Any, prompt_ids: Sequence[Sequence[int]], completion_ids: Sequence[Sequence[int]]
) -> list[TokenConfidence]:
    """Return the token confidence of each completion under the policy of a trainer of TRL, at temperature 1.

    If the model is sharded over processes, each of them must call this with as many completions.

    Args:
        trainer: With `model`, `args` and `processing_class`.
        prompt_ids: The tokens of each prompt.
        completion_ids: The tokens of each completion.
    """
    batch_size = trainer.args.per_device_train_batch_size
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    all_logps = token_logps(trainer.model, prompt_ids, completion_ids, batch_size=batch_size)
    return [token_confidence(tokenizer, ids, logps) for ids, logps in zip(completion_ids, all_logps, strict=True)]


def confidence_behind(
    trainer: Any, prompts: Sequence[object], completion_ids: Sequence[Sequence[int]]
) -> list[TokenConfidence] | None:
    """Return the same as `policy_confidence`, for prompts as a reward function gets them.

    Returns:
        None if the trainer is not one of TRL that tokenises its prompts in one place, or the prompts have images.
    """
    tokenize = getattr(trainer, "_tokenize_prompts", None)
    if tokenize is None:
        return None
    prompt_ids, images, _ = tokenize(list(prompts))
    return None if images else policy_confidence(trainer, prompt_ids, completion_ids)


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


class _ChunkedHead:
    """Stands in for a head during one forward pass, and keeps the log-probabilities of the wanted tokens.

    Attributes:
        logps: One a wanted token; None until the head is called.
        shown: The logits that the model gets, of the last position alone.
    """

    def __init__(self, project: Callable[[Any], Any], wanted: Any, tokens: Any, temperature: float) -> None:
        self._project, self._wanted, self._tokens, self._temperature = project, wanted, tokens, temperature
        self.logps: list[float] | None = None
        self.shown: Any = None

    def __call__(self, hidden: Any) -> Any:
        states = hidden[:, -self._wanted.shape[1] :]
        self.logps = _by_chunks(
            lambda rows, columns: self._project(states[rows, columns]),
            self._wanted.to(hidden.device),
            self._tokens.to(hidden.device),
            self._temperature,
        )
        self.shown = self._project(hidden[:, -1:])
        return self.shown

    def stands_for(self, logits: Any) -> bool:
        """Return whether a model leaves its head's logits as they are; some cap or scale them afterwards."""
        import torch

        return torch.equal(logits.float(), self.shown.float())


@contextmanager
def _in_place_of_head(head: Any, standing_in: Callable[[Any], Any]) -> Iterator[None]:
    own = vars(head).get("forward")
    head.forward = standing_in
    try:
        yield
    finally:
        del head.forward
        if own is not None:
            head.forward = own


def _logps(model: Any, batch: list[tuple[list[int], list[int]]], temperature: float) -> Iterator[list[float]]:
    import torch

    longest = max(len(prompt) + len(completion) for prompt, completion in batch)
    first = min(len(prompt) for prompt, _ in batch) - 1  # earlier logits do not predict a completion
    ids = torch.zeros((len(batch), longest), dtype=torch.long)
    mask, wanted = torch.zeros_like(ids), torch.zeros((len(batch), longest - first), dtype=torch.bool)
    for at, (prompt, completion) in enumerate(batch):
        ids[at, : len(prompt) + len(completion)] = torch.tensor(prompt + completion)
        mask[at, : len(prompt) + len(completion)] = 1
        wanted[at, len(prompt) - 1 - first : len(prompt) - 1 - first + len(completion)] = True
    tokens = torch.tensor([token for _, completion in batch for token in completion], dtype=torch.long)

    def read() -> Any:
        inputs = {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}
        return model(**inputs, use_cache=False, logits_to_keep=longest - first).logits

    logps = iter(_chunked(model, read, wanted, tokens, temperature))
    yield from ([next(logps) for _ in completion] for _, completion in batch)


def _chunked(model: Any, read: Callable[[], Any], wanted: Any, tokens: Any, temperature: float) -> list[float]:
    """Return log p of each wanted token; a model that changes its head's logits is read again, with logits whole."""
    head = model.get_output_embeddings()
    chunked = _ChunkedHead(head.forward, wanted, tokens, temperature)
    with _in_place_of_head(head, chunked):
        logits = read()
    if chunked.logps is not None:
        if chunked.stands_for(logits):
            return chunked.logps
        logits = read()
    kept = logits[:, -wanted.shape[1] :]
    places = wanted.to(kept.device)
    return _by_chunks(lambda rows, columns: kept[rows, columns], places, tokens.to(kept.device), temperature)


def _by_chunks(logits_of: Callable[[Any, Any], Any], wanted: Any, tokens: Any, temperature: float) -> list[float]:
    logps: list[float] = []
    for places, chosen in zip(wanted.nonzero().split(CHUNK), tokens.split(CHUNK), strict=True):
        logits = logits_of(places[:, 0], places[:, 1]).float() / temperature
        logps += logits.log_softmax(dim=-1).gather(1, chosen[:, None])[:, 0].tolist()
    return logps
