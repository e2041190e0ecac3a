"""Which rules pass: those under which any judge costs at most a given number of points on new questions."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from typing_extensions import TypedDict

from eldgr_dspy.authority_order import chains
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.results.summary import Price
from eldgr_dspy.statistics import passing, passing_on_average, questions_without_loss
from eldgr_dspy.words import Task

Guarantee = Literal["worst", "average"]


class Allowed(TypedDict):
    """The rules that pass.

    Attributes:
        worst: The most that a judge may lose, in percentage points. guarantee: which one is given.
        chains: The rules in the order in which they were tested, from narrow to wide.
        passing: The widest rule of each chain that passes; empty if none does, so that only majority is left.
        questions: The distinct scored questions. needed: how many it takes for a rule that loses none of them to pass.
    """

    worst: float
    guarantee: Guarantee
    chains: list[list[str]]
    passing: list[str]
    questions: int
    needed: int


def allowed(
    prices: Mapping[str, Price | None], worst: float, guarantee: Guarantee = "worst", task: Task = "retrieval"
) -> Allowed:
    """Return which rules pass; `majority`, which loses nothing against itself, is not tested.

    Args:
        prices: The price of each rule, see `figures.authority.price_of`.
        worst: In percentage points, between 0 and 100.
        guarantee: `worst`: with 95 % confidence, see `statistics.passing`; `average`: see
            `statistics.passing_on_average`.
        task: `arithmetic` where a derivation certifies, else `retrieval`.

    Raises:
        ArgumentError: `worst` is out of range, or `average` is asked for and the rules do not form one chain.
    """
    if not 0 < worst < 100:
        raise ArgumentError(f"worst must be between 0 and 100 percentage points; got {worst!r}. Give 2 for 2 points.")
    tested, share = chains(prices, task), worst / 100
    known = {rule: price for rule, price in prices.items() if price}
    lost = {rule: known[rule]["lost"] if rule in known else 0 for rule in prices}
    n = max((price["of"] for price in known.values()), default=0)
    if guarantee == "average":
        passed = [passing_on_average(_one_chain(tested), lost, n, share)]
        needed = math.ceil(round(1 / share - 1, 9))
    else:
        passed, needed = passing(tested, lost, n, share), questions_without_loss(share, chains=len(tested))
    widest = [chain[-1] for chain in passed if chain]
    return {
        "worst": worst,
        "guarantee": guarantee,
        "chains": tested,
        "passing": widest,
        "questions": n,
        "needed": needed,
    }


def _one_chain(tested: Sequence[Sequence[str]]) -> Sequence[str]:
    if len(tested) > 1:
        listed = "; ".join(", ".join(chain) for chain in tested)
        raise ArgumentError(
            "guarantee='average' needs rules that form one chain, in which each allows a judge all that the one before "
            f"allows; these form {len(tested)}: {listed}. Leave rules out, or use guarantee='worst'."
        )
    return tested[0] if tested else ()
