"""Holm's method is the closure of Bonferroni's: every subset of the family is the witness."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.statistics import holm
from tests.refusing import refused


def closure(probabilities: list[float]) -> list[float]:
    """The adjusted p of each test is the largest Bonferroni p of all families that it is a member of."""
    indices = range(len(probabilities))
    families = [set(one) for size in range(1, len(probabilities) + 1) for one in combinations(indices, size)]
    bonferroni = [(family, min(1.0, len(family) * min(probabilities[i] for i in family))) for family in families]
    return [max(p for family, p in bonferroni if index in family) for index in indices]


@given(st.lists(st.floats(0, 1), max_size=7))
@example([0.0026, 0.0357, 0.1435])
@example([0.05, 0.05])
def test_it_is_the_closed_test_of_bonferroni(probabilities: list[float]) -> None:
    assert holm(probabilities) == pytest.approx(closure(probabilities))


def test_the_contrasts_of_the_paper_on_one_data_set() -> None:
    assert holm([0.0026, 0.0357, 0.1435]) == pytest.approx((0.0078, 0.0714, 0.1435))


@pytest.mark.parametrize("value", [None, float("nan"), -0.1, 1.1, "0.5"], ids=repr)
def test_what_is_not_a_probability_is_named_by_its_position(value: Any) -> None:
    assert refused(lambda: holm([0.5, value])) == (
        f"probabilities[1] must be from 0 to 1; got {value!r}. Leave out a contrast without a p."
    )
