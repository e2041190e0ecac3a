"""Time an NLI model: `python -m benchmarks.nli_times`, about two minutes of one core.

A model of the shape of cross-encoder/nli-deberta-v3-small (6 layers, 768 wide, 12 heads, 128,100 words) with random
weights and a cheap tokenizer. Only speed is measured, not what it would read. Processor time of one thread. Pairs have
about 150 tokens, a document and a step, and differ in length. A group is 16 completions of six steps. Each is compared
with five documents and once with the steps before it, and again with its meaning changed: 1,056 pairs, a quarter of
which repeat others.
"""

import tempfile
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, DebertaV2Tokenizer

from benchmarks._timing import cpu, line
from eldgr_dspy.channels.protocols import NLI
from eldgr_dspy.programs.scoring.cross_encoder import LABELS, CrossEncoderNLI
from eldgr_dspy.programs.scoring.nli import CachedNLI

WORDS = 128_100 - 7
GROUP = 1_056 * 3 // 4
PAIRS, ROUNDS = 16, 2

SHAPE: dict[str, Any] = {
    "vocab_size": WORDS + 7,
    "num_hidden_layers": 6,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3_072,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
    "id2label": dict(enumerate(LABELS)),
    "label2id": {label: column for column, label in enumerate(LABELS)},
}
"""Settings of the configuration of cross-encoder/nli-deberta-v3-small."""

Pairs = list[tuple[str, str]]


def model_of_real_shape(folder: Path, **changes: Any) -> Path:
    """Save a model with random weights, and return its folder; `changes` replaces settings of its shape."""
    special = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
    vocab = [*((token, 0.0) for token in special), *((f"▁w{number}", -1.0) for number in range(WORDS)), (".", -1.0)]
    tokenizer = DebertaV2Tokenizer(vocab=vocab, model_max_length=512)
    factory: Any = DebertaV2Config
    config = factory(**{**SHAPE, **changes})
    torch.manual_seed(0)
    DebertaV2ForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def random_pairs(count: int, seed: int) -> Pairs:
    """Pairs of a premise of 90 to 150 words and a hypothesis of 20 to 40."""
    words = Random(seed)
    bounds = ((90, 150), (20, 40))
    return [
        (
            " ".join(f"w{words.randrange(WORDS)}" for _ in range(words.randint(*bounds[0]))),
            " ".join(f"w{words.randrange(WORDS)}" for _ in range(words.randint(*bounds[1]))),
        )
        for _ in range(count)
    ]


def rate(name: str, nli: NLI, pairs: Pairs) -> None:
    """Print how many pairs a reader reads in a second, and the seconds of a group."""
    seconds = cpu(partial(nli.probabilities, pairs), rounds=ROUNDS) / len(pairs)
    line(f"{name}: pairs a second", 1 / seconds, "/s")
    line(f"{name}: a group of {GROUP} pairs", seconds * GROUP, "s")


def over_the_bare_one(nli: CrossEncoderNLI, pairs: Pairs) -> None:
    """Print the time relative to `CrossEncoder.predict` on the same pairs, and the time of our own work."""
    bare = partial(nli.encoder.predict, pairs, batch_size=16, show_progress_bar=False, apply_softmax=True)
    works = (bare, partial(nli.probabilities, pairs))
    times = [[cpu(work, rounds=1) for work in works] for _ in range(3)]  # by turns, as others use the machine too
    line("over the bare CrossEncoder", min(ours for _, ours in times) / min(theirs for theirs, _ in times), "x", "1.1")
    ours = cpu(partial(nli.reader.probabilities, pairs, lambda batch: np.zeros((len(batch), 3)), (0, 1, 2)))
    line("our own work: checks, softmax, labels, a pair", ours / len(pairs) * 1e3, "ms")


def with_cache(nli: NLI) -> None:
    """Print what a remembered pair costs."""
    pairs = random_pairs(PAIRS, seed=1)
    cache = CachedNLI(nli)
    cache.probabilities(pairs)
    line("a pair that is remembered", cpu(partial(cache.probabilities, pairs * 100)) / len(pairs) * 1e4, "us")


def main() -> None:
    torch.set_num_threads(1)
    pairs = random_pairs(PAIRS, seed=0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = model_of_real_shape(Path(scratch) / "model")
        nli = CrossEncoderNLI(folder)
        over_the_bare_one(nli, pairs)
        with_cache(nli)
        rate("torch, float32", nli, pairs)
        rate("torch, bfloat16", CrossEncoderNLI(folder, dtype="bfloat16"), pairs)


if __name__ == "__main__":
    main()
