"""Word problems in four templates, each solved in two equations and checked by a third that works back from the answer.

The numbers of a problem belong to no other one of its template, so that a held-out problem cannot have been seen under
other names.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from eldgr_dspy.training.miniature.solved import Solved

_NAMES: Final = "Ada Ben Carla Dan Eva Finn Gita Hugo".split()
_THINGS: Final = "pens cards plums shells stamps eggs".split()


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of problem.

    Attributes:
        story: With places for name, thing and the numbers a, b and c.
        first: The operator of the first equation, on a and b.
        second: The operator of the second one, on what the first gives and c.
        numbers: What a, b and c may be.
    """

    story: str
    first: str
    second: str
    numbers: tuple[Sequence[int], Sequence[int], Sequence[int]]


_DIGITS: Final = range(2, 10)

TEMPLATES: Final = (
    Template(
        "{name} has {a} boxes of {b} {thing} and finds {c} more {thing}. How many {thing} has {name}?",
        *("*", "+", (_DIGITS, _DIGITS, _DIGITS)),
    ),
    Template(
        "{name} has {a} boxes of {b} {thing} and loses {c} {thing}. How many {thing} has {name}?",
        *("*", "-", (_DIGITS, _DIGITS, _DIGITS)),
    ),
    Template(
        "{name} has {a} {thing}, buys {b} and sells {c}. How many {thing} has {name}?",
        *("+", "-", (range(10, 40), _DIGITS, _DIGITS)),
    ),
    Template(
        "{name} buys {a} {thing} and then {b} more {thing} at {c} coins each. How many coins does {name} pay?",
        *("+", "*", (range(2, 8), range(2, 8), _DIGITS)),
    ),
)

BACK: Final = {"+": "-", "-": "+", "*": "/"}


def problems(seed: int, most: int = 9) -> list[Solved]:
    """Return every problem once, in the order and with the names and things that the seed draws.

    Args:
        seed: Which order.
        most: The greatest number of two and more that a problem has, except the one that items are bought up to.
    """
    drawn = random.Random(f"problems {seed}")
    instances = [(template, *numbers) for template in TEMPLATES for numbers in _allowed(template, most)]
    drawn.shuffle(instances)
    return [_solved(*instance, name=drawn.choice(_NAMES), thing=drawn.choice(_THINGS)) for instance in instances]


def apply(operator: str, left: int, right: int) -> int:
    """Return what an operator of a template gives."""
    return {"+": left + right, "-": left - right, "*": left * right}[operator]


def equations(template: Template, a: int, b: int, c: int) -> tuple[str, str, str]:
    """Return the two equations of a problem and the check."""
    between = apply(template.first, a, b)
    end = apply(template.second, between, c)
    return (
        f"{a} {template.first} {b} = {between}",
        f"{between} {template.second} {c} = {end}",
        f"Check: {end} {BACK[template.second]} {c} = {between}",
    )


def _solved(template: Template, a: int, b: int, c: int, name: str, thing: str) -> Solved:
    steps = equations(template, a, b, c)
    story = template.story.format(name=name, thing=thing, a=a, b=b, c=c)
    kind = f"{template.first} {template.second}"
    return Solved(story, "arithmetic", kind, steps, steps[1].rpartition(" ")[2])


def _allowed(template: Template, most: int) -> Iterator[tuple[int, int, int]]:
    """Return the numbers of a template: results have at most two digits, and the answer is not an earlier number."""
    for a, b, c in product(*template.numbers):
        between = apply(template.first, a, b)
        end = apply(template.second, between, c)
        if 1 < end < 100 and len({a, b, c, between, end}) == 5 and max(b, c) <= most:
            yield a, b, c


def otherwise(equation: str, drawn: random.Random) -> str:
    """Return an equation with another number on its right side, at most ten away."""
    left, _, right = equation.rpartition(" ")
    near = [number for number in range(max(1, int(right) - 10), int(right) + 11) if number != int(right)]
    return f"{left} {drawn.choice(near)}"
