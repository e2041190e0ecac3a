"""An NLI model of real architecture that has learnt a small corpus of ours; `python -m tests.tiny_nli` has taught it.

It is a DeBERTa-v2 of two layers with a tokenizer of the corpus' words. A fact has a subject and a value: the same fact
in other words is entailed, another value contradicts, another subject or another respect is neutral. It reads pairs of
facts that it has not been shown, and knows nothing of anything else.

Its weights lie beside this file. What a model learns differs with the processor and its libraries, so that one which
was taught where the tests run would read some pairs otherwise on each machine.
"""

import random
from collections.abc import Callable
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file

from benchmarks.experiments.partition.reader_nli import LABELS, Pair, learn_pairs, nli_model, nli_tokenizer

_COUNTRIES = "Qatar Kenya Chile Japan Norway Peru Egypt Cuba France Spain Italy Ghana Nepal Iran Iraq Poland".split()
_CITIES = (
    "Doha Nairobi Santiago Tokyo Oslo Lima Cairo Havana Paris Madrid Rome Accra Kathmandu Tehran Baghdad Warsaw".split()
)
_NAMES = "Ada Ben Carla Dan Eva Finn Gita Hugo Ida Jon Kira Leo Mara Nils Olga Paul".split()
_WORK = "nurse baker pilot judge farmer singer teacher sailor tailor miner painter writer".split()
_YEARS = [str(year) for year in range(1900, 1948, 3)]
_NUMBERS = [str(number) for number in range(2, 18)]

# Subjects, values, and the two ways in which a fact is told.
_KINDS = (
    (_COUNTRIES, _CITIES, ("The capital of {} is {}.", "{1} is the capital of {0}.")),
    (_NAMES, _YEARS, ("{} was born in {}.", "In {1} {0} was born.")),
    (_NAMES, _WORK, ("{} is a {}.", "The {1} is {0}.")),
    (_NAMES, _NUMBERS, ("{} has {} apples.", "{1} apples has {0}.")),
)
_BATCH, _STEPS = 48, 3_000
# At first each fact is told in one way only, which makes it plain what matters; a course ends at this loss.
_COURSES = ((1, 0.3), (2, 0.002))
_WEIGHTS = Path(__file__).with_suffix(".safetensors")


class _Fact(NamedTuple):
    kind: int
    subject: str
    value: str

    def sentence(self, way: int) -> str:
        return _KINDS[self.kind][2][way].format(self.subject, self.value)


def tiny_nli(folder: Path) -> Path:
    """Save the model with its tokenizer, and return the folder."""
    tokenizer = _tokenizer()
    model = nli_model(tokenizer)
    model.load_state_dict({name: weight.float() for name, weight in load_file(_WEIGHTS).items()})
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def teach() -> None:
    """Train the model on pairs that `held_out` does not have, and write its weights in half precision."""
    torch.manual_seed(0)
    tokenizer = _tokenizer()
    model = nli_model(tokenizer)
    _train(model, tokenizer)
    save_file({name: weight.half().contiguous() for name, weight in model.state_dict().items()}, _WEIGHTS)


def held_out(count: int = 400) -> list[Pair]:
    """Pairs that the model is not trained on, the same ones each time."""
    draw = random.Random(0)
    return [_example(draw, ways=2) for _ in range(count)]


def _example(draw: random.Random, ways: int) -> Pair:
    label = draw.choice(LABELS)
    fact = _fact(draw)
    other = {"entailment": lambda: fact, "contradiction": lambda: _at_odds(draw, fact)}
    hypothesis = other.get(label, lambda: _beside(draw, fact))()
    return Pair(fact.sentence(draw.randrange(ways)), hypothesis.sentence(draw.randrange(ways)), label)


def _fact(draw: random.Random) -> _Fact:
    kind = draw.randrange(len(_KINDS))
    return _Fact(kind, draw.choice(_KINDS[kind][0]), draw.choice(_KINDS[kind][1]))


def _at_odds(draw: random.Random, fact: _Fact) -> _Fact:
    return fact._replace(value=draw.choice([value for value in _KINDS[fact.kind][1] if value != fact.value]))


def _beside(draw: random.Random, fact: _Fact) -> _Fact:
    """A fact of another subject, often with the same value, or of the same one in another respect."""
    if draw.random() < 0.3:
        other = _fact(draw)
        same = other._replace(subject=fact.subject) if fact.kind and other.kind else other
        return same if same.kind != fact.kind else _beside(draw, fact)
    subjects, values, _ = _KINDS[fact.kind]
    subject = draw.choice([subject for subject in subjects if subject != fact.subject])
    return _Fact(fact.kind, subject, fact.value if draw.random() < 0.5 else draw.choice(values))


def _tokenizer() -> Any:
    """A tokenizer of the corpus' words."""
    words = " ".join(way.format("", "").rstrip(".") for *_, ways in _KINDS for way in ways).split()
    return nli_tokenizer([*words, *(word for subjects, values, _ in _KINDS for word in (*subjects, *values))])


def _train(model: Any, tokenizer: Any) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several threads wait for each other where another process has their core
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.01)
    warming = torch.optim.lr_scheduler.LinearLR(optimizer, 0.02, total_iters=50)
    batches = _batches(random.Random(1))
    for ways, goal in _COURSES:
        loss = 1.0
        while loss > goal:
            loss += 0.05 * (learn_pairs(model, tokenizer, batches(ways)) - loss)
            optimizer.step()
            optimizer.zero_grad()
            warming.step()
    model.eval()
    torch.set_num_threads(threads)


def _batches(draw: random.Random) -> Callable[[int], list[Pair]]:
    """What draws a batch of examples that are not held out, and gives up after so many."""
    without, budget = set(held_out()), iter(range(_STEPS))

    def batch(ways: int) -> list[Pair]:
        assert next(budget, None) is not None, f"The model has not learnt its corpus in {_STEPS} steps."
        fresh = (example for _ in repeat(None) if (example := _example(draw, ways)) not in without)
        return list(islice(fresh, _BATCH))

    return batch


if __name__ == "__main__":
    teach()
