"""The price of authority: which questions a judge can lose, each text once, and what that bounds on new ones."""

import random
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import exact_match
from eldgr_dspy.decision import drive
from eldgr_dspy.figures.authority import allowed, pool_authority, price_of
from eldgr_dspy.figures.distinct import Column, Units, text_key
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.rule.authority_order import at_most
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Reply, Verdict
from eldgr_dspy.words import Role
from tests.capitals import row

RULES = ("first", "majority", "certified", "eldgr", "near(0)", "near(1)", "judge")
CITIES = ("Paris", "Nice", "Lyon", None)

pools = st.lists(st.lists(st.sampled_from(CITIES), min_size=1, max_size=5), min_size=1, max_size=4)


def read(*rows: dict[str, Any]) -> list[Row]:
    return [Row.model_validate(one) for one in rows]


def said(judge: Reply, role: Role) -> Reply:
    return judge if role == "judge" else Abstention("silent")


def lost(one: Row, rule: str) -> bool:
    """Whether majority is right, and some judge, tried candidate by candidate, makes the rule ship what is not."""
    case = Case(one.to_question())
    judges: list[Reply] = [
        Abstention("none"),
        *(Verdict(index) for index, answer in enumerate(case.question.answers) if answer),
    ]
    shipped = [drive(case.rule(rule)(case), partial(said, judge)).answer for judge in judges]
    return exact_match(case.consensus, one.gold) and not all(exact_match(answer, one.gold) for answer in shipped)


@given(pools)
def test_a_question_is_lost_where_some_judge_ships_what_is_wrong_and_majority_is_right(given_: list[Any]) -> None:
    rows = read(*(row(number, answers=answers) for number, answers in enumerate(given_)))
    price: Any = pool_authority(rows, "retrieval", rules=RULES)["price"]
    for rule in RULES:
        assert (price[rule]["lost"], price[rule]["of"]) == (sum(lost(one, rule) for one in rows), len(rows))
    for wide in RULES:
        assert all(price[rule]["lost"] <= price[wide]["lost"] for rule in RULES if at_most(rule, wide))


@pytest.mark.parametrize(("x", "n", "points"), [(0, 100, 2.95), (13, 2298, 0.90), (5, 400, 2.61)])
def test_the_reference_values(x: int, n: int, points: float) -> None:
    units: Units[frozenset[str]] = {(frozenset({"eldgr"}),): x, (frozenset(),): n - x}
    price = price_of("eldgr", units)
    assert price
    assert (price["lost"], price["of"], round(price["at_most"], 2)) == (x, n, points)


def test_a_text_counts_once_and_is_lost_where_any_of_its_copies_is() -> None:
    lost_under = {"Who?": {"judge"}, "who? ": {"eldgr"}, "When?": set[str](), "WHO?": set[str]()}
    units = Column(map(frozenset, lost_under.values())).units(np.array([*map(text_key, lost_under)]))
    results: Any = [price_of(rule, units) for rule in ("eldgr", "judge")]
    assert [(of["lost"], of["of"]) for of in results] == [(1, 2), (1, 2)]


def test_without_a_scored_question_there_is_no_price() -> None:
    result = pool_authority(read(row(0, gold=[])), "retrieval", rules=RULES)
    assert result["price"] == dict.fromkeys(RULES)
    assert price_of("eldgr", {}) is None
    assert allowed(result["price"], 50)["passing"] == []


def test_majority_costs_nothing_against_itself() -> None:
    result: Any = pool_authority(read(row(0)), "retrieval", rules=("majority", "eldgr"))["price"]
    assert (result["majority"]["at_most"], result["eldgr"]["at_most"]) == (0.0, pytest.approx(95.0))


def test_the_price_is_no_lower_than_what_new_questions_cost_as_often_as_promised() -> None:
    """400 pools of 60 questions, of which a judge can lose 10 %: up to three standard errors, 95 % of prices hold."""
    kinds = read(row(0, answers=("Paris", "Paris", "Paris")), row(0, answers=("Paris", "Paris", "Nice")))
    under = [frozenset(["judge"] * lost(kind, "judge")) for kind in kinds]
    assert under == [frozenset(), {"judge"}]
    chance, held = random.Random(4), 0
    for _ in range(400):
        drawn: Units[frozenset[str]] = Counter((under[chance.random() < 0.1],) for _ in range(60))
        price = price_of("judge", drawn)
        held += price is not None and price["at_most"] >= 10.0
    assert held / 400 >= 0.95 - 0.033
