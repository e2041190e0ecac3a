"""Which numbers a question reaches, the obvious way: every number of every group of quantities, with its distance."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple

from eldgr_dspy.derivation.tracing import TABLE
from tests.naive.naive_tracing import PARTS, SCALES, amount_at, fraction_in, numeral, words_of

TIMES = {
    **dict.fromkeys(["half", "halve", "halves", "halved"], Fraction(1, 2)),
    **dict.fromkeys(["twice", "double", "doubled", "doubling", "both", "pair", "couple", "twin"], Fraction(2)),
    **dict.fromkeys(["thrice", "triple", "tripled", "tripling", "triplet"], Fraction(3)),
    **dict.fromkeys(["quadruple", "quadrupled"], Fraction(4)),
}
FARTHEST = 5


class Quantity(NamedTuple):
    """What an amount may stand for, whether it only multiplies, and whether it is money."""

    readings: frozenset[Fraction]
    factor: bool = False
    money: bool = False


Number = tuple[Fraction, bool]
"""A number, and whether it is money."""

Distances = dict[Number, int]


def within(question: str, detours: int) -> set[Fraction]:
    """The numbers that take at most so many detours."""
    return {number for number, distance in distances(question).items() if distance <= detours}


def farthest(question: str) -> int:
    """The number of detours up to which numbers are within reach: three, or more while the numbers are few."""
    return max(most for most in range(FARTHEST + 1) if most <= 3 or len(within(question, most)) <= 150)


def quantities(question: str) -> list[Quantity]:
    words = words_of(question)
    results: list[Quantity] = []
    at = 0
    while at < len(words):
        amount, after = amount_at(words, at)
        if amount is None:
            results += word_alone(words, at)
            at += 1
            continue
        if words[after : after + 1] and words[after] in SCALES:
            amount, after = amount * SCALES[words[after]], after + 1
        quantity, at = with_what_follows(amount, words, at, after)
        results.append(quantity)
    return [quantity for quantity in results if quantity.readings]


def word_alone(words: list[str], at: int) -> list[Quantity]:
    word = words[at]
    if word in SCALES:
        return [stands_for(Fraction(SCALES[word]))]
    if word in TIMES:
        return [stands_for(TIMES[word], factor=True)]
    if word in PARTS and ((at and words[at - 1] == "a") or words[at + 1 : at + 2] == ["of"]):
        return [share(Fraction(1, PARTS[word]))]
    return []


def with_what_follows(amount: Fraction, words: list[str], at: int, after: int) -> tuple[Quantity, int]:
    rest = [*words[after : after + 4], ""]
    money = (at > 0 and words[at - 1] in "$€£") or rest[0] in ("dollar", "euro", "cent", "¢", "pence")
    if rest[0] in ("%", "percent"):
        return share(amount / 100), after + 1
    if rest[0] in ("cent", "¢"):
        return stands_for(amount, amount / 100, money=True), after + 1
    if rest[0] in PARTS:
        return share(amount / PARTS[rest[0]]), after + 1
    if rest[0] == "/" and numeral(rest[1]):
        return share(amount / (numeral(rest[1]) or 1)), after + 2
    fraction = fraction_in(rest[:-1])
    if fraction is not None:
        return stands_for(amount + fraction, money=money), after + 3
    return stands_for(amount, money=money), after


def share(part: Fraction) -> Quantity:
    return stands_for(part, 1 - part, 1 + part, factor=True)


def stands_for(*readings: Fraction, factor: bool = False, money: bool = False) -> Quantity:
    return Quantity(frozenset(one for one in readings if one > 0), factor, money)


def conversions(question: str) -> set[Fraction]:
    words = {word for word in words_of(question) if word not in TIMES and word not in SCALES and word not in PARTS}
    rates = [value for word in words for value in TABLE.get(word, ()) if value > 1]
    usual = {"week": 7, "weekly": 7, "year": 12, "yearly": 12, "hour": 60, "percent": 100, "percentage": 100}
    return {
        value for value in rates if rates.count(value) > 1 or value in [usual[word] for word in words if word in usual]
    }


def choose(values: list[Quantity]) -> list[Quantity]:
    """Of more than six, ones go first and then repetitions, from the left, until six are left."""
    readings = [quantity.readings for quantity in values]
    ones = [place for place, one in enumerate(readings) if one == {1}]
    repeats = [place for place, one in enumerate(readings) if one in readings[:place] and place not in ones]
    drop = [*ones, *repeats][: max(len(values) - 6, 0)]
    return [quantity for place, quantity in enumerate(values) if place not in drop]


def distances(question: str) -> dict[Fraction, int]:
    """The smallest distance of each number."""
    numbers = choose(quantities(question))
    groups: dict[tuple[int, ...], Distances] = {}
    away: dict[Fraction, int] = {}
    for size in range(1, len(numbers) + 1):
        for group in combinations(range(len(numbers)), size):
            groups[group] = of_a_group(group, numbers, conversions(question), groups)
            for (number, _), distance in groups[group].items():
                distance += len(numbers) - size
                away[number] = min(away.get(number, distance), distance)
    return away


def of_a_group(
    group: tuple[int, ...], values: list[Quantity], constants: set[Fraction], groups: dict[tuple[int, ...], Distances]
) -> Distances:
    """The numbers that some quantities give together, each with its distance."""
    result: Distances = {}
    if len(group) == 1:
        quantity = values[group[0]]
        result = {(reading, quantity.money): 0 for reading in quantity.readings}
    gap = int(group[-1] - group[0] >= len(group))
    for left, right in halves(group):
        sums = not lone_factor(left, values) and not lone_factor(right, values)
        for (one, far), (other, away) in product(positive(groups[left]), positive(groups[right])):
            for number, cost in join(one, other, sums):
                put(result, number, far + away + gap + cost)
    vary(group, values, constants, result)
    return result


def vary(group: tuple[int, ...], values: list[Quantity], constants: set[Fraction], result: Distances) -> None:
    """Add what the numbers of a group give with a quantity taken again or a conversion, until nothing is new."""
    terms = [
        (reading, values[place].money)
        for place in group
        if not values[place].factor
        for reading in values[place].readings
    ]
    before: Distances = {}
    while before != result:
        before = dict(result)
        for (number, money), far in positive(before):
            for term in [term for term, of_money in terms if of_money == money]:
                for other in (number + term, abs(number - term)):
                    put(result, (other, money), far + 2)
            for constant in () if lone_factor(group, values) else constants:
                put(result, (number * constant, money), far + 2)
                put(result, (number / constant, money), far + 2)


def positive(result: Distances) -> list[tuple[Number, int]]:
    """The numbers above zero: only these are used further."""
    return [(number, distance) for number, distance in result.items() if number[0] > 0]


def halves(group: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The ways to part a group in two; the first half has its first member."""
    for size in range(len(group) - 1):
        for rest in combinations(group[1:], size):
            left = (group[0], *rest)
            yield left, tuple(place for place in group if place not in left)


def lone_factor(group: tuple[int, ...], values: list[Quantity]) -> bool:
    return len(group) == 1 and values[group[0]].factor


def join(one: Number, other: Number, sums: bool) -> Iterator[tuple[Number, int]]:
    """What two numbers give by one operation, and what that costs; money is added to money and not multiplied by it."""
    (x, money), (y, also) = one, other
    if sums and money == also:
        yield (x + y, money), 0
        yield (x - y, money), 1
        yield (y - x, money), 1
    if not (money and also):
        yield (x * y, money or also), 0
    if money >= also:
        yield (x / y, money and not also), 1
    if also >= money:
        yield (y / x, also and not money), 1


def put(result: Distances, number: Number, distance: int) -> None:
    """Note a result; one that is not whole is two detours farther, and zero and what is too far are not noted."""
    distance += 2 * (number[0].denominator != 1)
    if number[0] != 0 and distance <= FARTHEST:
        result[number] = min(result.get(number, FARTHEST), distance)
