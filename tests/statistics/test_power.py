"""Power: every outcome that there can be, weighed by its probability, is the witness."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, multinomial, norm

from eldgr_dspy.statistics import mcnemar, mcnemar_power, questions_needed
from eldgr_dspy.statistics.power import _most_losses
from tests.refusing import refused


@cache
def p_value(wins: int, losses: int) -> float:
    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def enumerated(n: int, gain: float, discordant: float, alpha: float = 0.05) -> float:
    """The probability of all outcomes of n questions on which the rule leads and the test rejects."""
    rates = [(discordant + gain) / 2, (discordant - gain) / 2, 1 - discordant]
    splits = [(wins, losses) for wins in range(n + 1) for losses in range(min(wins, n - wins + 1))]
    seen = [(wins, losses, n - wins - losses) for wins, losses in splits if p_value(wins, losses) <= alpha]
    return float(multinomial(n, rates).pmf(seen).sum()) if seen else 0.0


@pytest.mark.parametrize("n", [1, 5, 6, 20, 60])
@pytest.mark.parametrize(("gain", "discordant"), [(0.0, 0.3), (0.1, 0.3), (0.3, 0.3), (0.5, 0.9), (0.5, 1.0)])
def test_power_is_the_sum_over_all_outcomes(n: int, gain: float, discordant: float) -> None:
    assert mcnemar_power(n, gain, discordant) == pytest.approx(enumerated(n, gain, discordant), abs=1e-12)


def test_a_level_that_a_split_has_to_the_digit_is_reached() -> None:
    for alpha, losses in ((0.0625, 0), (0.03125, -1), (0.25, 0), (0.375, 1)):
        assert _most_losses(np.array([5]), alpha).tolist() == [losses]
        assert mcnemar_power(9, 0.5, 0.9, alpha=alpha) == pytest.approx(enumerated(9, 0.5, 0.9, alpha), abs=1e-12)


@given(st.integers(0, 400), st.sampled_from([1e-9, 0.01, 0.0125, 0.05, 0.3, 0.99]))
def test_the_test_rejects_up_to_the_narrowest_significant_lead(discordant: int, alpha: float) -> None:
    leads = (losses for losses in reversed(range((discordant + 1) // 2)))
    expected = next((losses for losses in leads if p_value(discordant - losses, losses) <= alpha), -1)
    assert _most_losses(np.array([discordant]), alpha).tolist() == [expected]


def test_the_narrowest_significant_lead_among_ten_million() -> None:
    (losses,) = _most_losses(np.array([10**7]), 0.05).tolist()
    assert mcnemar(10**7 - losses, losses) <= 0.05 < mcnemar(10**7 - losses - 1, losses + 1)


def test_many_questions_are_summed_over_as_exactly_as_few() -> None:
    n, gain, discordant = 20_000, 0.003, 0.04
    counts = range(500, 1_200)
    powers = binom.cdf(_most_losses(np.array(counts), 0.05), counts, 0.4625)
    expected = float((binom.pmf(counts, n, discordant) * powers).sum())
    assert mcnemar_power(n, gain, discordant) == pytest.approx(expected, abs=1e-10)


def test_a_million_questions_have_the_power_of_the_normal_approximation() -> None:
    n, gain, discordant = 10**6, 0.0007, 0.06
    z = gain * (n / (discordant - gain**2)) ** 0.5
    assert mcnemar_power(n, gain, discordant) == pytest.approx(norm.sf(norm.ppf(0.975) - z), abs=0.002)


@pytest.mark.parametrize(
    ("gain", "discordant", "power", "alpha"),
    [(0.02, 0.06, 0.8, 0.05), (0.1, 0.3, 0.9, 0.0125), (0.05, 0.05, 0.5, 0.05), (0.2, 1.0, 0.8, 0.05)],
)
def test_with_one_question_less_the_power_is_too_small(
    gain: float, discordant: float, power: float, alpha: float
) -> None:
    n = questions_needed(gain, discordant, power=power, alpha=alpha)
    less = mcnemar_power(n - 1, gain, discordant, alpha=alpha)
    assert less < power <= mcnemar_power(n, gain, discordant, alpha=alpha)


def test_where_few_are_discordant_no_smaller_number_will_do() -> None:
    n = questions_needed(0.1, 0.2)
    assert n == 168
    assert [one for one in range(1, n + 1) if mcnemar_power(one, 0.1, 0.2) >= 0.8] == [n]
    assert mcnemar_power(n, 0.1, 0.2) == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: questions_needed(0.0, 0.06), "gain must be above 0; got 0.0."),
        (lambda: questions_needed(0.08, 0.06),
         "gain must be from 0 to discordant=0.06, since wins minus losses are at most"),
        (lambda: questions_needed(-0.1, 0.06), "gain must be from 0 to discordant=0.06"),
        (lambda: questions_needed(float("nan"), 0.06), "gain must be from 0 to discordant=0.06"),
        (lambda: questions_needed(1e-5, 0.06), "A gain of 0.001 % with 6 % discordant needs more than 10,000,000"),
        (lambda: questions_needed(0.02, 0.06, power=1.0), "power must be strictly between 0 and 1; got 1.0"),
        (lambda: mcnemar_power(0, 0.02, 0.06), "n must be a whole number from 1 to 10,000,000; got 0."),
        (lambda: mcnemar_power(9, 0.0, 0.0),
         "discordant must be above 0 and at most 1; got 0.0. Give the share of"),
        (lambda: mcnemar_power(10**8, 0.0, 0.1),
         "n must be a whole number from 1 to 10,000,000; got 100000000."),
        (lambda: mcnemar_power(9, 0.0, 0.1, alpha=0), "alpha must be strictly between 0 and 1; got 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(call: Any, message: str) -> None:
    assert refused(lambda: call()).startswith(message)
