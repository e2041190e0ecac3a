"""What passes a test in a fixed order loses little, as often as promised: by SciPy, by counting and by simulation."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics import (
    passing,
    proportion_upper_bound,
    questions_without_loss,
)

counts = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
shares = st.sampled_from((0.001, 0.01, 0.02, 0.05, 0.3, 0.5, 0.9))
CHAIN = ("narrow", "middle", "wide")


@given(counts, shares)
@example((1, 0), 0.5)
@example((1, 1), 0.5)
@example((2298, 13), 0.009)
def test_one_rule_passes_where_so_few_losses_would_be_unlikely(of: tuple[int, int], share: float) -> None:
    n, count = of
    tail = stats.binom.cdf(count, n, share)
    if not math.isclose(tail, 0.05, rel_tol=1e-9):
        assert passing([["rule"]], {"rule": count}, n, share) == ([["rule"]] if tail < 0.05 else [[]])


def test_a_chain_is_tested_up_to_its_first_failure() -> None:
    losses = {"narrow": 0, "middle": 9, "wide": 1}
    assert passing([CHAIN], losses, 200, 0.02) == [["narrow"]]
    assert passing([CHAIN], losses, 100, 0.02) == [[]]
    assert passing([CHAIN, ["other"]], losses | {"other": 0}, 200, 0.02) == [["narrow"], ["other"]]
    assert passing([["wide"]], losses, 300, 0.02) == [["wide"]]
    assert passing([], {}, 0, 0.02) == []
    assert passing([CHAIN], dict.fromkeys(CHAIN, 0), 0, 0.02) == [[]]


@pytest.mark.parametrize("share", [0.001, 0.01, 0.02, 0.05, 0.5])
@pytest.mark.parametrize("chains", [1, 2, 5])
def test_the_questions_needed_are_the_fewest_that_pass(share: float, chains: int) -> None:
    n = questions_without_loss(share, chains=chains)
    tried, none = [[str(chain)] for chain in range(chains)], {str(chain): 0 for chain in range(chains)}
    assert passing(tried, none, n, share) == tried
    assert n == 1 or passing(tried, none, n - 1, share) == [[] for _ in tried]
    assert chains > 1 or share != 0.02 or n == 149


def test_the_upper_bound_covers_the_truth_as_often_as_it_says() -> None:
    """4,000 samples of 400 questions: a share below 95 % by more than three standard errors (1 point) fails."""
    random = np.random.default_rng(1)
    for truth in (0.002, 0.01, 0.05):
        drawn = random.binomial(400, truth, 4000)
        bounds = {count: proportion_upper_bound(400, count) for count in map(int, np.unique(drawn))}
        assert np.mean([bounds[int(count)] >= truth for count in drawn]) >= 0.95 - 0.0104


def test_a_wrong_rule_passes_in_at_most_one_sample_of_twenty() -> None:
    """The narrow rule loses .5 % of the questions, the others more than the 2 % allowed; losses are nested."""
    random = np.random.default_rng(2)
    wrong = 0
    for _ in range(2000):
        draws = random.random(400)
        losses = {name: int((draws < p).sum()) for name, p in zip(CHAIN, (0.005, 0.0201, 0.03), strict=True)}
        two = [list(CHAIN[:2]), ["wide"]]
        wrong += any("middle" in chain or "wide" in chain for chain in passing(two, losses, 400, 0.02))
    assert wrong / 2000 <= 0.05 + 0.0147


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: passing([["a"]], {"a": 6}, 5, 0.5),
            "count must be a whole number from 0 to 5; got",
        ),
        (lambda: passing([["a"]], {"a": 0}, 5, 0), "share must be strictly between 0 and 1; got 0"),
        (lambda: questions_without_loss(math.nan), "share must be strictly between 0 and 1; got nan"),
    ],
)
def test_impossible_numbers_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{message}"):
        call()
