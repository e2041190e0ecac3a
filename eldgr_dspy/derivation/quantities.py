"""Read the quantities that a question states: one for each amount, with every number that it may mean.

`20%` is one quantity that may mean a fifth, the remaining part (0.8) or the whole plus a fifth (1.2). `50 cents` may
mean 50 or a half; `3/4` and `three quarters` are one quantity each. A share or a word such as "twice" only multiplies
or divides. An amount of money is marked, so that it is never added to hours.

It reads the same words as `tracing`, which says what a single operand may be. The choice of words is ours.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from eldgr_dspy.derivation import tracing
from eldgr_dspy.derivation.arithmetic import Exact, simplify

_MULTIPLIERS: Final = (
    "half halve halves halved twice double doubled doubling both pair couple twin thrice triple tripled tripling"
    " triplet quadruple quadrupled".split()
)
_USUAL: Final = {"week": 7, "weekly": 7, "year": 12, "yearly": 12, "hour": 60, "percent": 100, "percentage": 100}
_EDGE: Final = " "  # what is before the first token of a question, and after the last
_SIGNS_OF_MONEY: Final = frozenset("$€£")
_WORDS_OF_MONEY: Final = frozenset({"dollar", "euro", "cent", "¢", "pence"})


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount that a question states once: the numbers that it may mean, all above zero.

    A `factor` only multiplies or divides, as a share or "twice" does; `money` is an amount of money.
    """

    readings: frozenset[Exact]
    factor: bool = False
    money: bool = False


def quantities_of(question: str) -> list[Quantity]:
    """Return the quantities of a question in reading order. An amount of zero is left out."""
    tokens = [_EDGE, *tracing.tokens_of(question), _EDGE]
    quantities, position = list[Quantity | None](), 1
    while position < len(tokens) - 1:
        amount, after = tracing.amount_at(tokens, position)
        if amount is None:
            quantity, position = _of_a_word(*tokens[position - 1 : position + 2]), position + 1
        else:
            quantity, position = _of_an_amount(amount, tokens, position, after)
        quantities.append(quantity)
    return [quantity for quantity in quantities if quantity and quantity.readings]


def conversions_of(question: str) -> frozenset[Exact]:
    """Return the constants for conversions: what two words of the question license, and what one usually means."""
    words = set(tracing.tokens_of(question)).difference(_MULTIPLIERS, tracing.SCALES, tracing.PARTS)
    constants = Counter(value for word in words for value in tracing.TABLE.get(word, ()) if value > 1)
    usual = {_USUAL[word] for word in words if word in _USUAL}
    # So "minutes" and "hours" together give 60, and so does "hour" alone; "minutes" alone does not.
    return frozenset(simplify(value) for value, times in constants.items() if times > 1 or value in usual)


def _of_a_word(before: str, word: str, following: str) -> Quantity | None:
    """Return what a word alone states: twice, dozen, a third, a quarter of; "the third month" states no quantity."""
    if word in tracing.SCALES:
        return _quantity(Fraction(tracing.SCALES[word]))
    if word in _MULTIPLIERS:
        return _quantity(tracing.TABLE[word][0], factor=True)
    return _share(tracing.TABLE[word][0]) if word in tracing.PARTS and (before == "a" or following == "of") else None


def _of_an_amount(amount: Fraction, tokens: list[str], position: int, after: int) -> tuple[Quantity, int]:
    if tokens[after] in tracing.SCALES:
        amount *= tracing.SCALES[tokens[after]]
        after += 1
    if (following := tokens[after]) in tracing.PERCENT:
        return _share(amount / 100), after + 1
    if following in tracing.HUNDREDTHS:
        return _quantity(amount, amount / 100, money=True), after + 1
    if following in tracing.PARTS:
        return _share(amount * tracing.TABLE[following][0]), after + 1
    if following == "/" and (divisor := tracing.numeral_at(tokens, after + 1)):
        return _share(amount / divisor), after + 2
    money = tokens[position - 1] in _SIGNS_OF_MONEY or following in _WORDS_OF_MONEY
    if (part := tracing.fraction_at(tokens[after : after + 4])) is not None:  # "two and a half", "2 1/2"
        return _quantity(amount + part, money=money), after + 3
    return _quantity(amount, money=money), after


def _share(share: Fraction) -> Quantity:
    """Return a share of a whole: itself, the rest of the whole, and the whole plus the share."""
    return _quantity(share, 1 - share, 1 + share, factor=True)


def _quantity(*readings: Fraction, factor: bool = False, money: bool = False) -> Quantity:
    return Quantity(frozenset(simplify(value) for value in readings if value > 0), factor, money)
