"""The authority bound of a pool and its price: every judge and every span, tried one by one, are the witnesses."""

import random
from collections import Counter
from functools import reduce
from itertools import combinations, product
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import exact_match
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import RULES, drive
from eldgr_dspy.figures import bounds
from eldgr_dspy.figures.authority import allowance, pool_authority, price_of
from eldgr_dspy.figures.bounds import answers_over_any, ends_of, extreme_spans, sways
from eldgr_dspy.figures.distinct import Column, Units, text_key
from eldgr_dspy.pools import Row, open_pool
from eldgr_dspy.rule.authority_order import at_most
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Repair, Reply, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import POLICIES, Policy, Task
from tests.capitals import row
from tests.case_tables import each_case, each_example
from tests.results.demo_pools import ARTIFACTS

SILENT = Abstention("silent")

words = "Oslo the no Yes Paris, 7 - 1,000 art U.S. a A, <b> n\u200bo -7 /Paris 's C++ T.H.E A- “Day” ½ 東京 İ".split()
gaps = st.sampled_from((" ", " ", ""))
texts = st.lists(st.tuples(st.sampled_from(words), gaps).map("".join), max_size=4).map("".join)
given_answers = "Oslo no Paris 7 Rome US 1000 - C A -7 “Day” 東京 İ".split()
cases = st.builds(
    lambda answers, passages, policy: Case(
        Question("Q", "retrieval", tuple(answers), (), tuple(Passage(*one) for one in passages)),
        Settings(certificate=policy),
    ),
    st.lists(st.none() | st.sampled_from(given_answers), min_size=1, max_size=4),
    st.lists(st.tuples(texts, texts), max_size=2),
    st.sampled_from(POLICIES),
)
golds = st.lists(st.sampled_from([*given_answers[:6], *given_answers[8:], "Oslo Paris", "The"]), min_size=1, max_size=2)


def case(answers: list[str | None], text: str, policy: Policy = "folded") -> Case:
    return Case(Question("Q", "retrieval", tuple(answers), (), (Passage("", text),)), Settings(certificate=policy))


def judges(one: Case) -> list[Reply]:
    return [SILENT, *(Verdict(index) for index, key in enumerate(one.vote.classes) if key is not None)]


def repairs(one: Case) -> list[Reply]:
    """Every run of characters of the evidence."""
    sources = [source for passage in one.question.passages for source in (passage.title, passage.text)]
    spans = [source[i:j] for source in sources for i, j in combinations(range(len(source) + 1), 2)]
    return [SILENT, *map(Repair, dict.fromkeys(spans))]


def ship(one: Case, rule: str, judge: Reply, repair: Reply) -> str | None:
    replies: dict[Any, Reply] = {"judge": judge, "repairer": repair, "deriver": SILENT}
    answer: str | None = drive(one.rule(rule)(one), replies.__getitem__).answer
    return answer


@given(cases, golds)
@each_example("results", "bounds over every span", case=case)
def test_the_bound_is_what_every_judge_and_every_span_give(one: Case, gold: list[str]) -> None:
    def correct(answer: str | None) -> bool:
        return exact_match(answer, gold)

    pairs = product(judges(one), repairs(one))
    results = {correct(ship(one, "eldgr", *pair)) for pair in pairs}
    answers = answers_over_any(one.rule("eldgr"), one, spans=extreme_spans(one, gold, correct))
    assert ends_of(answers, correct) == (min(results), max(results))
    for rule in RULES:
        outcomes = {correct(ship(one, rule, judge, SILENT)) for judge in judges(one)}
        assert ends_of(answers_over_any(one.rule(rule), one), correct) == (min(outcomes), max(outcomes))


@given(cases)
@example(case(["Rome", "Rome", "Oslo"], "Oslo, Paris"))
@example(case([None], "yes no"))
@example(case(["Rome", "Rome", "Oslo"], "Oslo"))  # a repair that the certified majority ships anyway
def test_a_role_can_change_what_ships_where_two_of_its_replies_lead_to_two_answers(one: Case) -> None:
    for rule in (*RULES, "near(0)", "near(1)"):
        by_judge = {ship(one, rule, judge, SILENT) for judge in judges(one)}
        by_repairer = {ship(one, rule, SILENT, repair) for repair in repairs(one)}
        assert bounds.differ(one, answers_over_any(one.rule(rule), one)) == differ(one, by_judge)
        assert sways(one.rule(rule), one, "repairer") == differ(one, by_repairer)


def differ(one: Case, answers: set[str | None]) -> bool:
    return any(a is None or not one.same(a, b) for a, b in product(answers, answers) if a != b)


def authority(
    golds: list[list[str]], task: Task = "retrieval", answers: Any = ("Nice", "Nice", "Paris"), **settings: Any
) -> Any:
    evidence = [{"text": "Lyon lies on the Rhone, Paris on the Seine."}]
    common = {"question": "?", "task": task, "candidates": [{"answer": answer} for answer in answers]}
    rows = read(*({**common, "id": f"q{n}", "evidence": evidence, "gold": gold} for n, gold in enumerate(golds)))
    return pool_authority(rows, task, Settings(**settings))


@each_case("results", "authority")
def test_accuracy_is_bounded_over_questions_with_gold_answers_and_change_over_all(
    pool: dict[str, Any], expected: dict[str, Any]
) -> None:
    result = authority(**pool)
    assert {path: reduce(getitem, path.split("/"), result) for path in expected} == expected


@pytest.mark.parametrize("name", ["demo-retrieval", "demo-arithmetic"])
@pytest.mark.parametrize("certificate", POLICIES)
def test_an_interval_is_no_wider_than_the_share_that_a_judge_can_change(name: str, certificate: Policy) -> None:
    pool = open_pool(ARTIFACTS / f"{name}.jsonl")
    result: Any = pool_authority(pool.rows(), pool.task, Settings(certificate=certificate))
    for rule, (worst, best) in result["bounds"].items():
        assert best - worst <= result["can_change"][rule]["judge"] + 1e-9


def test_the_reference_values(pools_dir: Path) -> None:
    pool = open_pool(pools_dir / "hotpotqa-reflexion12.jsonl.gz")
    result = pool_authority(pool.rows(), pool.task, rules=tuple(RULES))
    assert result["bounds"] == {
        "first": [32.0, 32.0], "majority": [58.0, 58.0], "certified": [62.0, 62.0], "judge": [14.0, 78.0],
        "eldgr": [58.0, 69.0], "eldgr_certified": [58.0, 69.0], "support": [58.0, 69.0],
    }  # fmt: skip
    assert (result["bounds_any_span"]["eldgr"], result["bounds_any_span"]["majority"]) == ([58.0, 81.0], [58.0, 58.0])
    assert result["can_change"]["eldgr"] == {"judge": 20.0, "repairer": 23.0}
    assert result["can_change"]["judge"] == {"judge": 86.0, "repairer": 0.0}
    price = {rule: (of["lost"], of["of"]) for rule, of in result["price"].items() if of}
    assert (price["majority"], price["judge"], price["eldgr"]) == ((0, 100), (44, 100), (0, 100))


RULE_NAMES = ("first", "majority", "certified", "eldgr", "near(0)", "near(1)", "judge")
CITIES = ("Paris", "Nice", "Lyon", None)

pools_of_cities = st.lists(st.lists(st.sampled_from(CITIES), min_size=1, max_size=5), min_size=1, max_size=4)


def read(*rows: dict[str, Any]) -> list[Row]:
    return [Row.model_validate(one) for one in rows]


def loses(one: Row, rule: str) -> bool:
    """Whether majority is right, and some judge, tried candidate by candidate, makes the rule ship what is not."""
    case = Case(one.to_question())
    answers = [ship(case, rule, judge, SILENT) for judge in judges(case)]
    return exact_match(case.consensus, one.gold) and not all(exact_match(answer, one.gold) for answer in answers)


@given(pools_of_cities)
def test_a_question_is_lost_where_some_judge_ships_what_is_wrong_and_majority_is_right(pools: list[Any]) -> None:
    rows = read(*(row(number, answers=answers) for number, answers in enumerate(pools)))
    price: Any = pool_authority(rows, "retrieval", rules=RULE_NAMES)["price"]
    for rule in RULE_NAMES:
        assert (price[rule]["lost"], price[rule]["of"]) == (sum(loses(one, rule) for one in rows), len(rows))
    for wide in RULE_NAMES:
        assert all(price[rule]["lost"] <= price[wide]["lost"] for rule in RULE_NAMES if at_most(rule, wide))


def test_a_text_counts_once_in_the_price_and_majority_costs_nothing() -> None:
    lost_under = {"Who?": {"judge"}, "who? ": {"eldgr"}, "When?": set[str](), "WHO?": set[str]()}
    units = Column(map(frozenset, lost_under.values())).units(np.array([*map(text_key, lost_under)]))
    results: Any = [price_of(rule, units) for rule in ("eldgr", "judge")]
    assert [(of["lost"], of["of"]) for of in results] == [(1, 2), (1, 2)]
    sums = authority([["1"], ["2"]], "arithmetic", ["1", "1", "2"], derivation="executed")["price"]
    assert sums["eldgr"] == sums["judge"]
    bare = pool_authority(read(row(0, gold=[])), "retrieval", rules=RULE_NAMES)["price"]
    assert bare == dict.fromkeys(RULE_NAMES)
    assert price_of("eldgr", {}) is None
    assert allowance(bare, 50)["passing"] == []
    result: Any = pool_authority(read(row(0)), "retrieval", rules=("majority", "eldgr"))["price"]
    assert (result["majority"]["at_most"], result["eldgr"]["at_most"]) == (0.0, pytest.approx(95.0))
    for x, n, points in [(0, 100, 2.95), (13, 2298, 0.90), (5, 400, 2.61)]:
        price = price_of("eldgr", {(frozenset({"eldgr"}),): x, (frozenset(),): n - x})
        assert price
        assert (price["lost"], price["of"], round(price["at_most"], 2)) == (x, n, points)


def test_the_price_is_no_lower_than_what_new_questions_cost_as_often_as_promised() -> None:
    """400 pools of 60 questions, of which a judge can lose 10 %: up to three standard errors, 95 % of prices hold."""
    kinds = read(row(0, answers=("Paris", "Paris", "Paris")), row(0, answers=("Paris", "Paris", "Nice")))
    under = [frozenset(["judge"] * loses(kind, "judge")) for kind in kinds]
    assert under == [frozenset(), {"judge"}]
    chance, count = random.Random(4), 0
    for _ in range(400):
        units: Units[frozenset[str]] = Counter((under[chance.random() < 0.1],) for _ in range(60))
        price = price_of("judge", units)
        count += price is not None and price["at_most"] >= 10.0
    assert count / 400 >= 0.95 - 0.033
