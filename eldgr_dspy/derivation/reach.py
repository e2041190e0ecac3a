"""Find the numbers that a question reaches: those that its own quantities give with few detours.

Without a detour, every quantity that the question states (`eldgr_dspy.derivation.quantities`) is used once, in reading
order, and neighbours are added or multiplied. The distance of a number is the smallest number of detours that gives it:

* one for a subtraction, a division, joining quantities that are not neighbours, and each quantity that is left out;
* two for a result that is not whole, for adding or subtracting a quantity of the number once more, and for multiplying
  or dividing by a constant, such as 7 for "week".

Money is added to money only, and two amounts of money are not multiplied. A difference of quantities, or of what they
give, may be below zero, but is not used further. All numbers up to `NEAR` detours are within reach, and farther ones as
long as there are at most `FEW` in all. The search stops after `MOST_PAIRS` pairs of numbers, and drops the distance
that it could not finish.

It is not a solver: it does not know which of the numbers answers the question. The rule and its limits are ours. They
were chosen on gsm8k-openai4; `python -m benchmarks.derivation_levels` measures them there and on svamp-codex8.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Final

from eldgr_dspy.derivation.arithmetic import Exact, simplify
from eldgr_dspy.derivation.quantities import Quantity, conversions_of, quantities_of

NEAR: Final = 3  # detours
FARTHEST: Final = 5
FEW: Final = 150  # numbers
MOST_PAIRS: Final = 13_000
MOST_QUANTITIES: Final = 8
_FEW_QUANTITIES: Final = 6  # quantities; of more, ones and repetitions are not tried

_EXTRA: Final = 2  # detours for a result that is not whole, for a quantity taken again, and for a conversion

_Numbers = tuple[set[Exact], set[Exact]]  # plain numbers, and amounts of money


@lru_cache(maxsize=16)
def reach(question: str, near: int = NEAR, few: int = FEW) -> frozenset[Exact]:
    """Return the numbers within reach of a question, without zero.

    The result is empty if the question states no quantity, or more than `MOST_QUANTITIES` of them.

    Args:
        question: The question as asked; apart from reading it once, time and memory are bounded for any text.
        near: Up to how many detours all numbers are within reach.
        few: How many numbers may be within reach if farther ones are among them.
    """
    quantities = _limit(quantities_of(question))
    numbers: set[Exact] = set()
    if not quantities or len(quantities) > MOST_QUANTITIES:
        return frozenset()
    search = _Search(quantities, conversions_of(question))
    for detours in range(FARTHEST + 1):
        try:
            farther = numbers | search.numbers(detours)
        except _ExhaustedError:
            break
        if detours > near and len(farther) > few:
            break
        numbers = farther
    return frozenset(numbers)


def _limit(quantities: list[Quantity]) -> list[Quantity]:
    """Return the quantities. If there are too many, without ones, and then without repetitions."""
    first = {quantity.readings: place for place, quantity in reversed([*enumerate(quantities)])}
    ones = [place for place, quantity in enumerate(quantities) if quantity.readings == {1}]
    repeats = [place for place, quantity in enumerate(quantities) if first[quantity.readings] < place]
    excess = set(list(dict.fromkeys([*ones, *repeats]))[: max(len(quantities) - _FEW_QUANTITIES, 0)])
    return [quantity for place, quantity in enumerate(quantities) if place not in excess]


@dataclass(slots=True)
class _Group:
    """Some of the quantities, and the numbers that they give together, in a list by the detours that each takes."""

    members: tuple[Quantity, ...]
    gap: int
    left_out: int
    halves: list[tuple["_Group", "_Group"]]
    levels: list[_Numbers] = field(default_factory=list)
    below: list[set[Exact]] = field(default_factory=list)
    _numbers: _Numbers = field(default_factory=lambda: (set(), set()))
    _later: dict[int, _Numbers] = field(default_factory=dict)

    @property
    def is_factor(self) -> bool:
        return len(self.members) == 1 and self.members[0].factor

    def terms(self, money: bool) -> list[Exact]:
        """Return the readings of the group's quantities that may be added to a number."""
        return [
            term for member in self.members if not member.factor and member.money == money for term in member.readings
        ]

    def settle(self, detours: int, results: _Numbers, due: _Numbers) -> None:
        """Finish a number of detours. Results that are not whole wait, and those found before are dropped."""
        self._later[detours + _EXTRA] = waiting = (set[Exact](), set[Exact]())
        for money in (False, True):
            for number in results[money] - self._numbers[money]:
                (due if number.denominator == 1 else waiting)[money].add(simplify(number))
            due[money].difference_update(self._numbers[money])
            self._numbers[money].update(due[money])
        below = {number for kind in due for number in kind if number < 0}
        self.below.append(below)
        self.levels.append((due[0] - below, due[1] - below))

    def due(self, detours: int) -> _Numbers:
        """Return the results that waited for this many detours. Without a detour, a quantity's own readings."""
        numbers = self._later.pop(detours, (set(), set()))
        if not detours and len(self.members) == 1:
            numbers[self.members[0].money].update(self.members[0].readings)
        return numbers


class _ExhaustedError(Exception):
    """A search has reached its limit of pairs."""


class _Search:
    """The groups of a question's quantities, each after its parts, and how many pairs of numbers may still be tried."""

    def __init__(self, quantities: list[Quantity], conversions: frozenset[Exact]) -> None:
        self._conversions = conversions
        self._budget = MOST_PAIRS
        self._groups = _groups(quantities)

    def numbers(self, detours: int) -> set[Exact]:
        """Return the numbers that take this many detours, from 0 on; raises if more pairs are needed than are left."""
        for group in self._groups:
            results: _Numbers = (set(), set())
            due = group.due(detours)
            for left, right in group.halves:
                self._join(left, right, detours - group.gap, results, due)
            if detours >= _EXTRA:
                self._take_again(group, group.levels[detours - _EXTRA], results)
                if not group.is_factor:
                    self._convert(group.levels[detours - _EXTRA], results)
            group.settle(detours, results, due)
        numbers: set[Exact] = set()
        for group in self._groups:
            if group.left_out <= detours:
                numbers.update(*group.levels[detours - group.left_out], group.below[detours - group.left_out])
        return numbers

    def _join(self, left: _Group, right: _Group, detours: int, results: _Numbers, due: _Numbers) -> None:
        """Combine the numbers of two groups; theirs and the operation's detours add up to `detours`."""
        sums = not left.is_factor and not right.is_factor
        for depth, first in enumerate(left.levels[: max(detours + 1, 0)]):
            if not _size(first):
                continue
            for cost, combine, into in ((0, _multiply, results), (1, _divide, results), (1 + _EXTRA, _split, due)):
                remaining = detours - depth - cost
                if remaining >= 0 and _size(right.levels[remaining]):
                    self._try(_size(first) * _size(right.levels[remaining]))
                    combine(first, right.levels[remaining], sums, into)

    def _take_again(self, group: _Group, source: _Numbers, results: _Numbers) -> None:
        for money, numbers in enumerate(source):
            terms = group.terms(bool(money))
            self._try(len(numbers) * len(terms))
            for number in numbers:
                results[money].update(number + term for term in terms)
                results[money].update(max(number - term, term - number) for term in terms if number != term)

    def _convert(self, source: _Numbers, results: _Numbers) -> None:
        factors = [*self._conversions, *(Fraction(1, constant) for constant in self._conversions)]
        self._try(_size(source) * len(factors))
        for money, numbers in enumerate(source):
            results[money].update(number * factor for number in numbers for factor in factors)

    def _try(self, pairs: int) -> None:
        self._budget -= pairs
        if self._budget < 0:
            raise _ExhaustedError


def _groups(quantities: list[Quantity]) -> list[_Group]:
    groups: dict[int, _Group] = {}
    for mask in sorted(range(1, 1 << len(quantities)), key=lambda mask: (mask.bit_count(), mask)):
        places = [place for place in range(len(quantities)) if mask >> place & 1]
        left_out = len(quantities) - len(places)
        gap = int(places[-1] - places[0] >= len(places))
        halves = [(groups[part], groups[mask ^ part]) for part in _parts(mask)]
        groups[mask] = _Group(tuple(quantities[place] for place in places), gap, left_out, halves)
    return list(groups.values())


def _parts(mask: int) -> Iterator[int]:
    """Yield the parts of a group that hold its first member, except the group itself."""
    part = (mask - 1) & mask
    while part:
        if part & mask & -mask:
            yield part
        part = (part - 1) & mask


def _multiply(first: _Numbers, second: _Numbers, sums: bool, results: _Numbers) -> None:
    for (kind, left), (other, right) in product(enumerate(first), enumerate(second)):
        if not (kind and other):
            results[kind or other].update(x * y for x in left for y in right)
        if sums and kind == other:
            results[kind].update(x + y for x in left for y in right)


def _divide(first: _Numbers, second: _Numbers, sums: bool, results: _Numbers) -> None:
    for (kind, left), (other, right) in product(enumerate(first), enumerate(second)):
        if kind >= other:
            results[kind - other].update(x // y for x in left for y in right if not x % y)
        if other >= kind:
            results[other - kind].update(y // x for x in left for y in right if not y % x)
        if sums and kind == other:
            results[kind].update(x - y for x in left for y in right if x != y)
            results[kind].update(y - x for x in left for y in right if x != y)


def _split(first: _Numbers, second: _Numbers, _sums: bool, results: _Numbers) -> None:
    for (kind, left), (other, right) in product(enumerate(first), enumerate(second)):
        if kind >= other:
            results[kind - other].update(Fraction(x, y) for x in left for y in right if x % y)
        if other >= kind:
            results[other - kind].update(Fraction(y, x) for x in left for y in right if y % x)


def _size(numbers: _Numbers) -> int:
    return len(numbers[0]) + len(numbers[1])
