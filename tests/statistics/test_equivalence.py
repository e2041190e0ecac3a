"""Two one-sided tests: SciPy's t tests, a likelihood maximised numerically, and enumeration are the witnesses."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm, ttest_1samp

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics import Equivalence, contrast_from_counts, equivalence, equivalence_from_counts
from tests.refusing import refused

counts = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 200)).filter(sum)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(0.01, 1), st.floats(0.01, 0.4))
def test_graded_scores_are_tested_by_two_t_tests(gaps: list[float], margin: float, alpha: float) -> None:
    assume(np.ptp(gaps) > 1e-3)
    found = equivalence(gaps, np.zeros(len(gaps)), margin, alpha=alpha)
    below: Any = ttest_1samp(gaps, -margin, alternative="greater")
    above: Any = ttest_1samp(gaps, margin, alternative="less")
    assert (found.p_below, found.p_above) == pytest.approx((below.pvalue, above.pvalue), abs=1e-12)
    assert found.p == max(found.p_below, found.p_above)
    assert found.equivalent == (found.p <= alpha)
    around: Any = ttest_1samp(gaps, 0.0)
    expected = around.confidence_interval(1 - 2 * alpha)
    assert found.interval == pytest.approx(tuple(expected), abs=1e-9)


def variance_at(n: int, wins: int, losses: int, difference: float) -> float:
    """The variance of wins minus losses where the likelihood is greatest among all that have this difference."""

    def unlikelihood(of_losses: float) -> float:
        shares = (of_losses + difference, of_losses, 1 - difference - 2 * of_losses)
        seen = (wins, losses, n - wins - losses)
        return -sum(count * math.log(share) for count, share in zip(seen, shares, strict=True) if count)

    least, most = max(0.0, -difference), (1 - difference) / 2
    within = (least + 1e-13, most - 1e-13)
    share = minimize_scalar(unlikelihood, bounds=within, method="bounded", options={"xatol": 1e-13}).x
    return float(n * (2 * share + difference - difference**2))


@pytest.mark.parametrize(
    "split", [(500, 20, 8), (300, 6, 0), (300, 0, 6), (30, 2, 0), (40, 10, 11), (50, 12, 2)], ids=str
)
@pytest.mark.parametrize("margin", [0.01, 0.05, 0.3])
def test_right_and_wrong_are_tested_by_two_score_tests(split: tuple[int, int, int], margin: float) -> None:
    n, wins, losses = split
    found = equivalence_from_counts(n, wins, losses, margin)
    z = [(wins - losses - n * end) / math.sqrt(variance_at(n, wins, losses, end)) for end in (-margin, margin)]
    assert (found.p_below, found.p_above) == pytest.approx((norm.sf(z[0]), norm.cdf(z[1])), rel=1e-4)


def test_at_a_margin_of_next_to_nothing_it_is_mcnemars_score_test() -> None:
    found = equivalence_from_counts(500, 20, 8, 1e-12)
    assert found.p_below == pytest.approx(norm.sf(12 / math.sqrt(28)), rel=1e-6)


def test_without_a_discordant_question_the_interval_says_what_so_few_leave_open() -> None:  # hazards 103, and 109
    z = norm.ppf(0.95)
    for n in (1, 10, 300):
        found = equivalence_from_counts(n, 0, 0, 0.02)
        assert found.interval == pytest.approx((-(z**2) / (n + z**2), z**2 / (n + z**2)))
        assert found.equivalent == (n == 300)


@given(counts, st.floats(0.001, 0.9), st.floats(0.001, 0.49))
@example((0, 0, 1), 0.5, 0.05)
@example((5, 0, 0), 0.5, 0.05)
@example((0, 5, 0), 0.5, 0.05)
def test_the_arms_are_equivalent_if_the_interval_lies_within_the_margins(
    split: tuple[int, int, int], margin: float, alpha: float
) -> None:
    wins, losses, _ = split
    n = sum(split)
    found = equivalence_from_counts(n, wins, losses, margin, alpha=alpha)
    low, high = found.interval
    assert -1 <= low <= found.delta <= high <= 1
    assume(min(abs(low + margin), abs(high - margin)) > 1e-9)
    assert found.equivalent == (-margin < low and high < margin)
    swapped = equivalence_from_counts(n, losses, wins, margin, alpha=alpha)
    assert (swapped.p_below, swapped.p_above) == pytest.approx((found.p_above, found.p_below))
    assert swapped.interval == pytest.approx((-high, -low))


def test_percentage_points_are_a_hundred_times_shares() -> None:
    share, percent = equivalence_from_counts(500, 20, 8, 0.05), equivalence_from_counts(500, 20, 8, 5, unit=100)
    assert (percent.p_below, percent.p_above, percent.equivalent) == (share.p_below, share.p_above, share.equivalent)
    assert (percent.delta, *percent.interval) == pytest.approx([100 * end for end in (share.delta, *share.interval)])
    assert percent.delta == pytest.approx(contrast_from_counts(500, 20, 8, unit=100).delta)


@pytest.mark.parametrize("discordant", [0.06, 0.2])
def test_the_chance_of_a_false_claim_is_near_alpha(discordant: float) -> None:
    """Enumerated: 200 questions, the rule worse by exactly the margin of five points."""
    n, margin = 200, 0.05
    rates = ((discordant - margin) / 2, (discordant + margin) / 2)
    falsely = 0.0
    for wins in range(40):
        for losses in range(80):
            seen = (wins, losses, n - wins - losses)
            chance = math.factorial(n) // math.prod(map(math.factorial, seen))
            if equivalence_from_counts(n, wins, losses, margin).p_below <= 0.05:
                falsely += chance * rates[0] ** wins * rates[1] ** losses * (1 - discordant) ** seen[2]
    assert 0.03 < falsely < 0.06


@pytest.mark.parametrize(
    ("rule", "against"), [([1, 0, 1], [1, 0, 1]), ([0.3], [0.1]), ([0.3, 0.5], [0.1, 0.3])], ids=str
)
def test_differences_without_spread_are_refused_with_what_to_do(rule: list[float], against: list[float]) -> None:
    """Hazards 103 and 109: a t test of identical arms would be certain of anything."""  # hazards 103, and 109
    with pytest.raises(ArgumentError, match="have no spread, so a t test is impossible; for right and wrong give"):
        equivalence(rule, against, 0.05)


@pytest.mark.parametrize(
    ("margin", "options", "message"),
    [
        (0.0, {}, "margin must be a positive number; got 0.0. Give the largest difference that does not matter"),
        (float("nan"), {}, "margin must be a positive number; got nan"),
        (0.05, {"alpha": 0.5}, "alpha must be below .5; got 0.5. Give 0.05 for a 5% chance of a false claim."),
        (
            0.05,
            {"alpha": 0},
            "alpha must be strictly between 0 and 1; got 0. Give 0.05 for a 5% chance of a false claim.",
        ),
        (1.0, {}, "margin must be less than unit=1.0, the value of one question; got 1.0."),
        (5, {"unit": -1}, "unit must be a positive number; got -1. Give 1 for shares or 100 for percentage points."),
    ],
)
def test_options_out_of_range_are_refused(margin: float, options: dict[str, Any], message: str) -> None:
    assert refused(lambda: equivalence_from_counts(10, 1, 1, margin, **options)).startswith(message)


def test_a_claim_names_its_figures() -> None:
    found = equivalence([0.5, 0.6, 0.4, 0.5], [0.5, 0.5, 0.5, 0.5], 0.2)
    assert isinstance(found, Equivalence)
    assert (found.n, found.margin, found.equivalent) == (4, 0.2, True)
    assert found.delta == pytest.approx(0.0)
