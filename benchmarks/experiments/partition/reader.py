"""The NLI model of a seed: taught on pairs of the task, saved as a cross-encoder, and tried on pairs held out."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.experiments.partition.problems import GREATEST
from benchmarks.experiments.partition.reader_nli import Pair, learn_pairs, nli_model, nli_tokenizer
from benchmarks.experiments.partition.reader_pairs import KINDS, Pairs
from benchmarks.experiments.partition.sizes import Size
from benchmarks.experiments.partition.task import Questions
from benchmarks.experiments.partition.worlds import FORMS, NAMES, TEXTS
from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI

RATE: Final = 1.5e-3
N_TRIALS: Final = 200
"""Pairs of each kind that the model is tried on."""

_WARMING: Final = 50
_COLUMNS: Final = ("contradiction", "neutral", "entailment")  # of what a model reads; see `NLI`


def teach_reader(folder: Path, questions: Questions, size: Size, seed: int) -> dict[str, float]:
    """Teach a model, save it, and return the share of pairs held out that it reads right, by the kind of pair.

    The word problems in its pairs are those that starts are taught. Those in the pairs that it is tried on are the ones
    for validation, of templates that it has not read.
    """
    import torch

    torch.manual_seed(seed)
    steps, pairs = size.reader
    tokenizer = nli_tokenizer(_words(questions))
    model = nli_model(tokenizer).to(size.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, (at + 1) / _WARMING) * (1 - at / steps))
    source = Pairs(questions["arithmetic", "taught"], random.Random(f"pairs {seed}"))
    for _ in range(steps):
        learn_pairs(model, tokenizer, source.batch(pairs))
        optimizer.step()
        optimizer.zero_grad()
        rates.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return accuracy(folder, questions, seed, size.device)


def accuracy(folder: Path, questions: Questions, seed: int, device: str) -> dict[str, float]:
    """Return the share of pairs on which a saved model's likeliest label is the right one, by the kind of pair."""
    nli = CrossEncoderNLI(folder, device=device)
    source = Pairs(questions["arithmetic", "validation"], random.Random(f"tried {seed}"))
    trials = {kind: [source.of(kind) for _ in range(N_TRIALS)] for kind in KINDS}
    return {kind: _right(nli, pairs) for kind, pairs in trials.items()}


def _right(nli: CrossEncoderNLI, pairs: list[Pair]) -> float:
    columns = nli.probabilities([(pair.premise, pair.hypothesis) for pair in pairs]).argmax(axis=1)
    return sum(_COLUMNS[at] == pair.label for at, pair in zip(columns, pairs, strict=True)) / len(pairs)


def _words(questions: Questions) -> Iterator[str]:
    """Yield every word that a pair may have, each number up to the greatest as one."""
    yield from (name for names in NAMES.values() for name in names)
    yield from map(str, range(GREATEST + 11))
    texts = [*FORMS.values(), *TEXTS.values(), *(one.question for one in questions["arithmetic", "taught"])]
    yield from {word for text in texts for word in re.findall(r"[^\W\d]+", text)}
