"""Proportions, bounds on them, what is promised of their errors, and families of tests."""

import math
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from eldgr_dspy import statistics
from eldgr_dspy.statistics import holm, passing, proportion_upper_bound, questions_without_loss
from tests.case_tables import each_case
from tests.refusing import refusal, says

counts = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(counts, st.sampled_from((0.5, 0.9, 0.95, 0.999)))
@example((1, 0), 0.95)
@example((1, 1), 0.95)
def test_it_is_the_bound_of_scipy_and_of_statsmodels(of: tuple[int, int], level: float) -> None:
    proportion: Any = import_module("statsmodels.stats.proportion")
    n, count = of
    result = proportion_upper_bound(n, count, level=level)
    exact = stats.binomtest(count, n, alternative="less").proportion_ci(level, "exact").high
    _, other = proportion.proportion_confint(count, n, alpha=2 * (1 - level), method="beta")
    assert result == pytest.approx(exact, abs=1e-9)
    assert result == pytest.approx(1.0 if count == n else other, abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 20, 60])
@pytest.mark.parametrize("p", [0.001, 0.05, 0.3, 0.5, 0.9, 0.999])
def test_it_is_below_the_probability_in_at_most_one_sample_of_twenty(n: int, p: float) -> None:
    below = [count for count in range(n + 1) if proportion_upper_bound(n, count) < p]
    assert stats.binom.pmf(below, n, p).sum() <= 0.05 + 1e-12


@given(counts)
def test_more_events_raise_it_and_more_questions_without_one_lower_it(of: tuple[int, int]) -> None:
    n, count = of
    bound = proportion_upper_bound(n, count)
    assert count / n < bound <= 1 or count == n
    assert proportion_upper_bound(n + 1, count + 1) >= bound >= proportion_upper_bound(n + 1, count)


@each_case("statistics", "proportions", nan=lambda: math.nan)
def test_impossible_numbers_are_refused(call: str, options: dict[str, Any], message: str) -> None:
    assert says(message, refusal(lambda: getattr(statistics, call)(**options)))


def closure(probabilities: list[float]) -> list[float]:
    """The largest Bonferroni p of all families that a test is a member of."""
    indices = range(len(probabilities))
    families = [set(one) for size in range(1, len(probabilities) + 1) for one in combinations(indices, size)]
    bonferroni = [(family, min(1.0, len(family) * min(probabilities[i] for i in family))) for family in families]
    return [max(p for family, p in bonferroni if index in family) for index in indices]


@given(st.lists(st.floats(0, 1), max_size=7))
@example([0.0026, 0.0357, 0.1435])
@example([0.05, 0.05])
def test_it_is_the_closed_test_of_bonferroni(probabilities: list[float]) -> None:
    assert holm(probabilities) == pytest.approx(closure(probabilities))


def test_the_contrasts_of_the_paper_on_one_data_set_and_what_statsmodels_finds() -> None:
    assert holm([0.0026, 0.0357, 0.1435]) == pytest.approx((0.0078, 0.0714, 0.1435))
    multitest: Any = import_module("statsmodels.stats.multitest")
    probabilities = [0.0357, 0.0026, 0.1435, 0.0357, 0.9, 0.0]
    assert holm(probabilities) == pytest.approx(multitest.multipletests(probabilities, method="holm")[1])


shares = st.sampled_from((0.001, 0.01, 0.02, 0.05, 0.3, 0.5, 0.9))
CHAIN = ("narrow", "middle", "wide")


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), shares)
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
    groups, none = [[str(chain)] for chain in range(chains)], {str(chain): 0 for chain in range(chains)}
    assert passing(groups, none, n, share) == groups
    assert n == 1 or passing(groups, none, n - 1, share) == [[] for _ in groups]
    assert chains > 1 or share != 0.02 or n == 149


def test_the_upper_bound_covers_the_truth_as_often_as_it_says_and_is_three_in_n_without_an_event() -> None:
    assert proportion_upper_bound(100, 0) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert proportion_upper_bound(10**12, 0) == pytest.approx(3e-12, rel=0.01)
    random = np.random.default_rng(1)
    for truth in (0.002, 0.01, 0.05):
        events = random.binomial(400, truth, 4000)
        bounds = {count: proportion_upper_bound(400, count) for count in map(int, np.unique(events))}
        assert np.mean([bounds[int(count)] >= truth for count in events]) >= 0.95 - 0.0104  # three standard errors


def test_a_wrong_rule_passes_in_at_most_one_sample_of_twenty() -> None:
    # The narrow rule loses .5 % of the questions, the others more than the 2 % allowed; losses are nested.
    random = np.random.default_rng(2)
    wrong = 0
    for _ in range(2000):
        draws = random.random(400)
        losses = {name: int((draws < p).sum()) for name, p in zip(CHAIN, (0.005, 0.0201, 0.03), strict=True)}
        two = [list(CHAIN[:2]), ["wide"]]
        wrong += any("middle" in chain or "wide" in chain for chain in passing(two, losses, 400, 0.02))
    assert wrong / 2000 <= 0.05 + 0.0147
