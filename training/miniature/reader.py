"""The NLI model of a miniature: taught on pairs of the task, saved as a cross-encoder, and tried on pairs held out."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI
from eldgr_dspy.training.miniature.nli import Pair, learn_pairs, nli_model, nli_tokenizer
from eldgr_dspy.training.miniature.pairs import KINDS, Pairs
from eldgr_dspy.training.miniature.task import Questions
from eldgr_dspy.training.miniature.world import ASKED, TOLD

BATCH: Final = 48
RATE: Final = 1.5e-3
TRIED: Final = 200
"""Pairs of each kind that the model is tried on."""

_WARMING: Final = 50
_COLUMNS: Final = ("contradiction", "neutral", "entailment")  # of what a model reads; see `NLI`


def teach_reader(folder: Path, questions: Questions, steps: int, seed: int) -> dict[str, float]:
    """Teach a model this many batches of pairs, save it, and return how often it is right for each kind of pair.

    The word problems in its pairs are those that policies are taught, and those in its test pairs are those that
    policies are trained on: it has read none of the evaluation questions.

    Args:
        folder: Where it is saved.
        questions: Of the miniature.
        steps: Batches.
        seed: Of weights and pairs.
    """
    import torch

    torch.manual_seed(seed)
    tokenizer = nli_tokenizer(_words(questions))
    model = nli_model(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, (at + 1) / _WARMING) * (1 - at / steps))
    pairs = Pairs(questions.world, questions.parts["arithmetic", "taught"], random.Random(f"pairs {seed}"))
    for _ in range(steps):
        learn_pairs(model, tokenizer, pairs.batch(BATCH))
        optimizer.step()
        optimizer.zero_grad()
        rates.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return accuracy(folder, questions, seed)


def accuracy(folder: Path, questions: Questions, seed: int) -> dict[str, float]:
    """Return the share of pairs on which a saved model's likeliest label is the right one, by the kind of pair."""
    nli = CrossEncoderNLI(folder)
    drawn = Pairs(questions.world, questions.parts["arithmetic", "trained"], random.Random(f"tried {seed}"))
    tried = {kind: [drawn.of(kind) for _ in range(TRIED)] for kind in KINDS}
    return {kind: _right(nli, pairs) for kind, pairs in tried.items()}


def _right(nli: CrossEncoderNLI, pairs: list[Pair]) -> float:
    read = nli.probabilities([(pair.premise, pair.hypothesis) for pair in pairs]).argmax(axis=1)
    return sum(_COLUMNS[at] == pair.label for at, pair in zip(read, pairs, strict=True)) / len(pairs)


def _words(questions: Questions) -> Iterator[str]:
    """Return every word that a pair may have, each number up to a hundred as one."""
    world = questions.world
    yield from (name for own in (*world.subjects, *world.values.values()) for name in own)
    yield from map(str, range(101))
    asked = [*ASKED.values(), *TOLD.values(), *(solved.question for solved in questions.parts["arithmetic", "taught"])]
    yield from {word for text in asked for word in re.findall(r"[^\W\d]+", text)}
    yield "check"
