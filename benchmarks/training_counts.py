"""Count the work of a training step without running it: `python -m benchmarks.training_counts`, seconds of one core.

The recipe `ra_msd` on the shapes of Qwen2.5-3B and nli-deberta-v3-small. Parameters are counted on models without
weights, on torch's meta device. Operations of PyTorch are counted on models with the same layers and almost no width.
Floating-point operations and bytes follow from the formulas below. Nothing here was timed on a GPU. Each part of a step
gets three lower bounds on a card with the numbers of `CARD`: by arithmetic, by memory, and by operations started one
after the other. The longest of them bounds it.

Assumed: prompts of 100 tokens; completions of 128, the most that the recipe allows, in lines of 20, so 6.4 steps each;
NLI pairs of 150 tokens, as many a step as `python -m benchmarks.channel_times` counts on its two workloads; and 10
microseconds from the start of one operation of PyTorch to the start of the next, which is an estimate.
"""

import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, Qwen2ForCausalLM

from benchmarks._shapes import COMPLETIONS, SHAPES, policy_config
from benchmarks._timing import line
from benchmarks.nli_times import SHAPE as NLI_SHAPE
from benchmarks.training import AIM
from eldgr_dspy.training.grpo import Recipe, parse_arguments
from eldgr_dspy.training.policy import CHUNK

PROMPT, LINE, PAIR, NLI_BATCH = 100, 20, 150, 16
PAIRS: Final = {"own passages": 7.6, "one corpus": 11.4}
BEGINNING = 10e-6

CARD: Final = {"bfloat16": 989e12, "float32": 67e12, "bytes": 3.35e12}
"""Operations and bytes a second of an H100 SXM, dense, from its data sheet."""

GIGA, HALF, WHOLE = 1e9, 2, 4


class Work(NamedTuple):
    """The work of one part of a step.

    Attributes:
        flops: Floating-point operations.
        traffic: Bytes that are read for weights and cache.
        starts: Operations of PyTorch that are started.
        precision: Of the arithmetic.
    """

    flops: float
    traffic: float
    starts: float
    precision: str = "bfloat16"

    def seconds(self) -> tuple[float, float, float]:
        """Return the lower bounds by arithmetic, by memory and by operations started."""
        return self.flops / CARD[self.precision], self.traffic / CARD["bytes"], self.starts * BEGINNING


class Counts(NamedTuple):
    """The numbers that are counted on models.

    Attributes:
        policy: Parameters of the policy.
        adapter: Parameters of the adapter, the only ones trained.
        nli: Parameters of the NLI model.
        decoding: Operations of PyTorch for a token.
        reading: Operations for a forward pass.
        updating: Operations for a forward pass with checkpoints and the backward pass.
        judging: Operations for a batch of the NLI model.
    """

    policy: int
    adapter: int
    nli: int
    decoding: int
    reading: int
    updating: int
    judging: int


class Starts(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types for it
    """Counts operations that compute something; views do not."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view and func is not torch.ops.aten._unsafe_view.default
        return func(*args, **(kwargs or {}))


def count_starts(work: Callable[[], object]) -> int:
    """Return how many operations a piece of work starts."""
    counting: Any = Starts
    with counting() as mode:
        work()
    count: int = mode.count
    return count


def counts_of(recipe: Recipe) -> Counts:
    """Return the counts on the models of a recipe."""
    with torch.device("meta"):
        policy, judge = _policy(recipe, {}), _judge({})
        sizes = [sum(param.numel() for param in model.parameters()) for model in (policy, judge)]
        adapter = sum(param.numel() for param in policy.parameters() if param.requires_grad)
    narrow = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32}
    return Counts(sizes[0] - adapter, adapter, sizes[1], *_passes(_policy(recipe, narrow)), _judging(narrow))


def _policy(recipe: Recipe, changes: dict[str, int]) -> Any:
    import peft
    import trl

    adapting: Any = peft
    library: Any = trl
    config = policy_config(SHAPES["qwen2.5-3b"])
    config.update(changes)
    return adapting.get_peft_model(Qwen2ForCausalLM(config).bfloat16(), library.get_peft_config(recipe.model))


def _judge(changes: dict[str, int]) -> Any:
    config: Any = DebertaV2Config
    factory: Any = DebertaV2ForSequenceClassification
    return factory(config(**{**NLI_SHAPE, **changes})).eval()


def _passes(policy: Any) -> tuple[int, int, int]:
    """Operations for a token, for a forward pass, and for an update."""
    ids = torch.ones((2, 4), dtype=torch.long)
    with torch.no_grad():
        # The cache is the only other output; transformers 5.24 renamed it from `past_key_values` to `cache`.
        cache = {name: output for name, output in policy(input_ids=ids, use_cache=True).items() if name != "logits"}
        decoding = count_starts(lambda: policy(input_ids=ids[:, :1], use_cache=True, **cache))
        reading = count_starts(lambda: policy(input_ids=ids, use_cache=False))
    policy.train()
    policy.gradient_checkpointing_enable()
    policy.enable_input_require_grads()
    return decoding, reading, count_starts(lambda: policy(input_ids=ids, use_cache=False).logits.sum().backward())


def _judging(narrow: dict[str, int]) -> int:
    ids = torch.ones((2, 4), dtype=torch.long)
    judge = _judge({**narrow, "hidden_size": 24})
    with torch.no_grad():
        return count_starts(lambda: judge(input_ids=ids, attention_mask=ids))


def works(counts: Counts, completions: int, length: int, pairs: float) -> dict[str, Work]:
    """Return the parts of a step; `pairs` is the number that the NLI model reads in it."""
    tokens = completions * (PROMPT + length)
    weights = HALF * counts.policy
    cache = completions * (PROMPT + length / 2) * _cache_bytes()
    batches = pairs / NLI_BATCH
    return {
        "generation": Work(2 * counts.policy * tokens, length * (weights + cache), length * counts.decoding),
        "confidence": Work(2 * counts.policy * tokens, weights, counts.reading),
        "reward": Work(
            pairs * _pair_flops() + batches * _batch_flops(),
            batches * WHOLE * _encoder(),
            batches * counts.judging,
            "float32",
        ),
        "update": Work(6 * counts.policy * tokens, 3 * weights, counts.updating),
    }


def _cache_bytes() -> int:
    """Bytes of the cache for a token: a key and a value in each layer."""
    shape = SHAPES["qwen2.5-3b"].policy
    width = shape["hidden_size"] // shape["num_attention_heads"] * shape["num_key_value_heads"]
    return int(2 * shape["num_hidden_layers"] * width * HALF)


def _encoder() -> int:
    """Parameters of the NLI model that multiply: 4 d^2 + 2 d f a layer. Its embeddings are looked up."""
    width, layers, inner, _ = _nli()
    return layers * (4 * width**2 + 2 * width * inner)


def _pair_flops() -> int:
    """2 a parameter and token; attention to contents, 4 n^2 d, and to positions both ways, 4 n r d, a layer."""
    width, layers, _, positions = _nli()
    return 2 * PAIR * _encoder() + layers * (4 * PAIR**2 * width + 4 * PAIR * positions * width)


def _batch_flops() -> int:
    """The positions themselves are projected once a batch: 4 r d^2 a layer."""
    width, layers, _, positions = _nli()
    return 4 * layers * positions * width**2


def _nli() -> tuple[int, int, int, int]:
    """Width d, layers, inner width f, and relative positions r, as far forwards as backwards."""
    width, layers, inner = (NLI_SHAPE[name] for name in ("hidden_size", "num_hidden_layers", "intermediate_size"))
    return width, layers, inner, 2 * NLI_SHAPE["position_buckets"]


def memory(counts: Counts, completions: int, length: int) -> dict[str, float]:
    """Return the memory used on the card, in bytes; entries that exist only at one time are marked."""
    shape, tokens = SHAPES["qwen2.5-3b"].policy, completions * (PROMPT + length)
    width, layers, inner = (shape[name] for name in ("hidden_size", "num_hidden_layers", "intermediate_size"))
    return {
        "weights of the policy, bfloat16": HALF * counts.policy,
        "adapter, its gradients and two moments, float32": 4 * WHOLE * counts.adapter,
        "weights of the NLI model, float32": WHOLE * counts.nli,
        "in generation: the cache": tokens * _cache_bytes(),
        "in the confidence: logits, bfloat16": completions * length * shape["vocab_size"] * HALF,
        "in the confidence: a chunk of them, twice, float32": 2 * CHUNK * shape["vocab_size"] * WHOLE,
        "in the update: a checkpoint a layer": tokens * width * layers * HALF,
        "in the update: one layer, made again": tokens * (4 * inner + 8 * width) * HALF,
    }


def show(parts: dict[str, Work]) -> None:
    """Print the parts of a step, and the reward's share of it by these bounds."""
    print(f"{'':<12}{'TFLOP':>8}{'GB':>8}{'started':>10}   seconds by each of them")
    for name, work in parts.items():
        bounds = "".join(f"{bound:>8.3f}" for bound in work.seconds())
        print(f"{name:<12}{work.flops / 1e12:>8.1f}{work.traffic / GIGA:>8.1f}{work.starts:>10,.0f}   {bounds}")
    least = {name: max(work.seconds()) for name, work in parts.items()}
    line("a step at least", sum(least.values()), "s")
    line("share of the reward, by these bounds", 100 * least["reward"] / sum(least.values()), "%", f"under {AIM:g}")
    least["generation"] = max(parts["generation"].seconds()[:2])
    share = 100 * least["reward"] / sum(least.values())
    line("  where generation does not wait for operations, as by vLLM", share, "%", f"under {AIM:g}")


def main() -> None:
    warnings.simplefilter("ignore", FutureWarning)  # TRL uses names of transformers that it will soon drop
    recipe = parse_arguments(["--config", "ra_msd", "--use_cpu", "true", "--bf16", "false"])
    completions, length = COMPLETIONS, recipe.training.max_completion_length
    counts = counts_of(recipe)
    for name, value in counts._asdict().items():
        print(f"{name:<12}{value:>16,}")
    for name, a_step in PAIRS.items():
        pairs = completions * length / LINE * a_step
        print(f"\n{name}: {completions} completions, {a_step} pairs a reasoning step, {pairs:,.0f} pairs in all")
        show(works(counts, completions, length, pairs))
    print()
    for name, size in memory(counts, completions, length).items():
        line(name, size / GIGA, "GB")


if __name__ == "__main__":
    main()
