"""Which rules pass: those under which any judge costs at most a given number of points on new questions."""

from collections.abc import Mapping

from typing_extensions import TypedDict

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.results.summary import Price
from eldgr_dspy.rule.authority_order import chains
from eldgr_dspy.statistics import passing, questions_without_loss
from eldgr_dspy.words import Task


class Allowed(TypedDict):
    """The rules that pass.

    Attributes:
        worst: The most that a judge may lose, in percentage points.
        chains: The rules in the order in which they were tested, from narrow to wide.
        passing: The widest rule of each chain that passes; empty if none does, so that only majority is left.
        questions: The distinct scored questions. needed: how many it takes for a rule that loses none of them to pass.
    """

    worst: float
    chains: list[list[str]]
    passing: list[str]
    questions: int
    needed: int


def allowed(prices: Mapping[str, Price | None], worst: float, task: Task = "retrieval") -> Allowed:
    """Return which rules pass; `majority`, which loses nothing against itself, is not tested.

    Args:
        prices: The price of each rule, see `figures.authority.price_of`.
        worst: In percentage points, between 0 and 100.
        task: `arithmetic` where a derivation certifies, else `retrieval`.

    Raises:
        ArgumentError: `worst` is out of range.
    """
    if not 0 < worst < 100:
        raise ArgumentError(f"worst must be between 0 and 100 percentage points; got {worst!r}. Give 2 for 2 points.")
    tested, share = chains(prices, task), worst / 100
    measured = {rule: price for rule, price in prices.items() if price}
    lost = {rule: measured[rule]["lost"] if rule in measured else 0 for rule in prices}
    n = max((price["of"] for price in measured.values()), default=0)
    return {
        "worst": worst,
        "chains": tested,
        "passing": [chain[-1] for chain in passing(tested, lost, n, share) if chain],
        "questions": n,
        "needed": questions_without_loss(share, chains=len(tested)),
    }
