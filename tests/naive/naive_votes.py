"""The formulas over ballots, the obvious way: exact fractions, and 60 digits where there is a root or a power of e."""

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

ADDITIVE = ("weighted_best_of_n", "borda", "cisc", "bcrl_vote")
"""The formulas whose weights are added by class."""

PARAMETERS: Mapping[str, str] = {"borda": "0.5", "cisc": "1", "bcrl_abstaining": "0.5"}


def prefer(formula: str, keys: Sequence[str | None], values: Sequence[str | None]) -> int | str:
    """Return the preferred candidate, or why there is none: `none`, `missing INDEX`, `negative INDEX`, `low`, `empty`.

    Args:
        formula: `NAME` or `NAME:PARAMETER`.
        keys: The class of each candidate, None for one that does not vote.
        values: What is stated of each, as a decimal; None where nothing is.
    """
    with localcontext() as context:
        context.prec = 60
        return _prefer(formula, keys, values)


def _prefer(formula: str, keys: Sequence[str | None], values: Sequence[str | None]) -> int | str:
    name, _, parameter = formula.partition(":")
    voters = [index for index, key in enumerate(keys) if key is not None]
    if not voters:
        return "empty"
    if all(value is None for value in values):
        return "none"
    for index in voters:
        if values[index] is None:
            return f"missing {index}"
    exact = {index: Fraction(str(values[index])) for index in voters}
    if name == "weighted_best_of_n" and min(exact.values()) < 0:
        return f"negative {min(exact, key=lambda index: (exact[index], index))}"
    weights = weigh(name, parameter or PARAMETERS.get(name, "0"), exact)
    votes = {key: [keys[index] for index in voters].count(key) for key in keys}
    ahead = sorted(voters, key=lambda i: (-weights[i], -votes[keys[i]], i))
    if name in ADDITIVE:
        sums = {key: near(sum((weights[i] for i in voters if keys[i] == key), Decimal(0))) for key in keys}
        first = {key: next(i for i in voters if keys[i] == key) for key in keys if key is not None}
        winner = sorted(first, key=lambda key: (-sums[key], -votes[key], first[key]))[0]
        ahead = [index for index in ahead if keys[index] == winner]
    if name == "bcrl_abstaining" and exact[ahead[0]] < Fraction(parameter or PARAMETERS[name]):
        return "low"
    return ahead[0]


def weigh(name: str, parameter: str, exact: Mapping[int, Fraction]) -> dict[int, Decimal]:
    """Return the weight of each candidate."""
    decimals = {index: Decimal(of.numerator) / Decimal(of.denominator) for index, of in exact.items()}
    if name == "cisc":
        powers = {index: (of / Decimal(parameter)).exp() for index, of in decimals.items()}
        return {index: power / sum(powers.values()) for index, power in powers.items()}
    if name != "borda":
        return decimals
    # The points of each rank, first to last; equal candidates share theirs.
    order = sorted(exact, key=lambda index: -exact[index])
    points = [Decimal(len(order) - rank) ** Decimal(parameter) for rank in range(len(order))]
    shares = {
        value: [point for point, index in zip(points, order, strict=True) if exact[index] == value]
        for value in exact.values()
    }
    return {index: sum(shares[of], Decimal(0)) / len(shares[of]) for index, of in exact.items()}


def near(value: Decimal) -> Decimal:
    """Round, so that sums of the same weights in another order are the same."""
    return round(value, 40)
