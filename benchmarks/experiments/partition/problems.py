"""Word problems of three to five steps, whose order of operators is taught or held out, never both.

A story tells what happens to a number of things, a sentence a step. A template is a sequence of operators. Every
template belongs to one side: a policy that answers a held-out one has learnt to work through a story.
"""

import random
from collections.abc import Sequence
from itertools import product
from typing import Final

from benchmarks.experiments.partition.exercises import Exercise

_NAMES: Final = "Ada Ben Carla Dan Eva Finn Gita Hugo".split()
_THINGS: Final = "pens cards plums shells stamps eggs".split()

SENTENCES: Final = {
    "+": ("{name} buys {number} more.", "{name} finds {number} more."),
    "-": ("{name} loses {number}.", "{name} sells {number}."),
    "*": ("{name} swaps each for {number}.",),
}
"""The sentences that tell of an operator."""

_BACK: Final = {"+": "-", "-": "+", "*": "/"}
_OPERANDS: Final = {"+": range(2, 10), "-": range(2, 10), "*": range(2, 4)}
GREATEST: Final = 60
"""Every number of a problem is between 1 and this."""

TEMPLATES: Final[Sequence[str]] = [
    "".join(signs) for length in (3, 4, 5) for signs in product("+-*", repeat=length) if signs.count("*") <= 2
]
"""Sequences of operators; more than two products would exceed the greatest number."""


def held_out() -> frozenset[str]:
    """Return the templates that no policy learns from: a fifth of each length; the same for every seed."""
    rng = random.Random("held out")
    own = [[template for template in TEMPLATES if len(template) == length] for length in (3, 4, 5)]
    return frozenset(template for group in own for template in rng.sample(group, len(group) // 5))


def problems(split: str, count: int, seed: int, *, fresh: bool) -> list[Exercise]:
    """Return problems, as many of three steps as of four and five; the same for the same arguments.

    Those that are `fresh` have templates that are held out.
    """
    rng, out = random.Random(f"{split} problems {seed}"), held_out()
    templates = [template for template in TEMPLATES if (template in out) == fresh]
    by_length = [[template for template in templates if len(template) == length] for length in (3, 4, 5)]
    return [_problem(f"{split}-a{at + 1}", rng.choice(by_length[at % 3]), rng) for at in range(count)]


def _problem(id: str, template: str, rng: random.Random) -> Exercise:
    name, thing = rng.choice(_NAMES), rng.choice(_THINGS)
    numbers, steps = _work_out(template, rng)
    events = [
        rng.choice(SENTENCES[sign]).format(name=name, number=number)
        for sign, number in zip(template, numbers[1:], strict=True)
    ]
    story = " ".join([f"{name} has {numbers[0]} {thing}.", *events, f"How many {thing} has {name} now?"])
    return Exercise(id, story, "arithmetic", template, (*steps, _check(steps[-1])), steps[-1].rpartition(" ")[2])


def _check(equation: str) -> str:
    """Return the equation that works back from the result of another one."""
    left, sign, right, _, result = equation.split()
    return f"Check: {result} {_BACK[sign]} {right} = {left}"


def _work_out(template: str, rng: random.Random) -> tuple[list[int], list[str]]:
    """Return the numbers of a problem, the first one of the story and an operand a step, and the equations."""
    while True:
        total = rng.randrange(2, 21)
        numbers, steps = [total], list[str]()
        for sign in template:
            operand = rng.choice(_OPERANDS[sign])
            result = apply(sign, total, operand)
            numbers.append(operand)
            steps.append(f"{total} {sign} {operand} = {result}")
            total = result
            if not 1 <= total <= GREATEST:
                break
        else:
            return numbers, steps


def apply(sign: str, left: int, right: int) -> int:
    return {"+": left + right, "-": left - right, "*": left * right}[sign]
