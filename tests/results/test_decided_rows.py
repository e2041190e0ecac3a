"""The table of decided questions does not depend on their order; what ships if uncertified answers abstain."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.decision import Choice, Steps
from eldgr_dspy.figures.authority import QuestionBounds, bounds_of, question_bounds
from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome, RoleColumns, reply_marks
from eldgr_dspy.figures.distinct import Column, Units, counts_by, text_key
from eldgr_dspy.figures.scored import shipment
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.statistics import proportion_upper_bound
from eldgr_dspy.tables.pool import shipping_table
from tests.capitals import EVIDENCE, row, write_pool
from tests.memory import memory_of
from tests.results.audited import ARITHMETIC, OPEN, RETRIEVAL, Entry, figures, outcome, retrieval
from tests.results.demo_pools import ARTIFACTS

OWN = "tests.results.test_decided_rows:repairing"


@settings(max_examples=10)
@given(st.permutations(RETRIEVAL))
def test_figures_do_not_depend_on_the_order_of_the_questions(entries: Any) -> None:
    one, other = (json.dumps(figures("retrieval", of), sort_keys=True) for of in (entries, RETRIEVAL))
    assert one == other
    assert figures("arithmetic", ARITHMETIC[::-1]) == figures("arithmetic", ARITHMETIC)


def test_what_a_rule_used_is_its_cost_and_a_certificate_costs_only_the_rules_that_ask_it() -> None:
    case, rows = retrieval(OPEN), DecidedRows("retrieval", ("judge", "eldgr"))
    replies = [
        Consultation("p", "q", role, "ok", content={}, calls=2, prompt_tokens=3, completion_tokens=4, seconds=0.5)
        for role in ("judge", "certificate")
    ]
    decision = case.record(Choice("consensus", case.consensus), {})
    rows.add(case, ["Doha"], {name: Outcome(decision, None, replies) for name in rows.rules}, ())
    rules = pool_figures(rows)["rules"]
    assert rules["judge"]["asked"] == {"judge": 1, "deriver": 0, "repairer": 0, "certificate": 0}
    assert (rules["judge"]["seconds"], rules["eldgr"]["seconds"]) == (0.5, 1.0)
    assert rules["eldgr"]["calls"] == {"judge": 2, "deriver": 0, "repairer": 0, "certificate": 2}
    assert rules["eldgr"]["tokens"] == {"judge": 7, "deriver": 0, "repairer": 0, "certificate": 7}


def repairing(case: Case) -> Steps:
    """A rule that asks the repairer on the question of Rome alone, on which no bound covers it."""
    reply = (yield "repairer") if "Rome" in case.question.text else None
    return Choice("consensus", case.consensus if reply is None else case.repaired(reply))


def units_of(*questions: str) -> Units[QuestionBounds]:
    cases = [Case(Row.model_validate(row(1, question=text)).to_question()) for text in questions]
    return Column(question_bounds([OWN], case, ["Paris"]) for case in cases).units(np.arange(len(cases)))


def test_what_one_question_leaves_without_bounds_is_without_bounds_in_the_pool() -> None:
    one, both = units_of("Where is Paris?"), units_of("Where is Paris?", "Where is Rome?")
    assert bounds_of("retrieval", [OWN], one)["bounds_any_span"] == {OWN: [0.0, 0.0]}
    assert bounds_of("retrieval", [OWN], both)["bounds"] == {OWN: [0.0, 0.0]}
    assert bounds_of("retrieval", [OWN], both)["bounds_any_span"] == {OWN: None}
    assert bounds_of("retrieval", [OWN], one, withheld=True)["bounds"] == {OWN: None}
    rows = DecidedRows("retrieval", ("first", "eldgr"))
    assert (pool_figures(rows)["n"], pool_figures(rows)["audit"]) == (0, figures("retrieval", [])["audit"])
    texts = np.array([text_key(text) for text in ("Who?", "who?  ", "WHO?", "When?")])
    assert Column("aaaa").units(texts) == {("a", "a", "a"): 1, ("a",): 1}


def fill(n: int) -> None:
    column, costs = Column[bool](), RoleColumns()
    one = Consultation("p", "q", "judge", "ok", None, {}, calls=1, prompt_tokens=3, completion_tokens=4, seconds=0.5)
    marks = reply_marks(one, None)
    for place in range(n):
        column.append(place % 2 == 0)
        costs.append(place, one, marks)
    assert column.counts() == {True: n // 2, False: n // 2}
    assert costs.sums(column.each(bool))[:3] == (n // 2, n // 2, 7 * n // 2)


def test_a_question_takes_a_few_bytes_a_column_and_a_consultation() -> None:
    few, many = (memory_of(fill, n).peak for n in (20_000, 120_000))
    assert (many - few) / 100_000 < 100  # the arrays that a sum looks at included


values = st.lists(st.sampled_from("abc"), max_size=20)


@given(values, st.data())
def test_columns_hold_the_values_of_the_questions(texts: list[str], data: Any) -> None:
    column = Column(texts)
    others = data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts)))
    mask = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    assert column.each(str.upper).tolist() == [value.upper() for value in texts]
    assert column.counts(np.array(mask, bool)) == Counter(one for one, here in zip(texts, mask, strict=True) if here)
    pairs = column.beside(Column(others))
    assert [[*pairs][code] for code in pairs.codes()] == [*zip(texts, others, strict=True)]
    assert counts_by(column.counts(), ord) == Counter(map(ord, texts))


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc")), max_size=40))
@example([])
@example([(1, "a"), (1, "b"), (2, "b"), (2, "a"), (3, "a")])
@example([(1, "a"), (1, "a"), (1, "b"), (2, "a")])
def test_a_unit_is_the_values_of_all_copies_of_a_question(questions: list[tuple[int, str]]) -> None:
    copies = defaultdict[int, list[str]](list)
    for text, marks in questions:
        copies[text].append(marks)
    texts = np.array([text_key(f"Question {text}?") for text, _ in questions], np.int64)
    result = Column(marks for _, marks in questions).units(texts)
    sorted_units = Counter({tuple(sorted(unit)): n for unit, n in result.items()})
    assert sorted_units == Counter(tuple(sorted(marks)) for marks in copies.values())
    assert len(sorted_units) == len(result)  # each kind once


ships = st.lists(st.tuples(st.booleans(), st.sampled_from((None, False, True)), st.integers(0, 3)), max_size=12)


@given(ships)
@example([])
@example([(True, None, 0)])
@example([(True, False, 0)] * 100 + [(True, True, text) for text in range(1, 101)])
def test_the_point_is_a_count_question_by_question(questions: list[tuple[bool, bool | None, int]]) -> None:
    """Each question: whether it ships, whether its answer is right or nobody knows, and which text it has."""
    golden = [(one, right, text) for one, right, text in questions if right is not None]
    units = Column((one, right) for one, right, _ in golden).units(np.array([text for *_, text in golden], np.int64))
    result: Any = shipment(sum(one for one, _, _ in questions), len(questions), units)
    marks = [(right, text) for one, right, text in questions if one and right is not None]
    texts, wrong = {text for _, text in marks}, {text for right, text in marks if not right}
    assert result["questions"] == sum(one for one, _, _ in questions)
    assert result["coverage"] == (pytest.approx(100 * result["questions"] / len(questions)) if questions else None)
    assert result["scored"] == len(marks)
    if marks:
        errors = sum(not right for right, _ in marks)
        bound = 100 * max(errors / len(marks), proportion_upper_bound(len(texts), len(wrong)))
        assert (result["wrong"], result["risk"]) == (errors, pytest.approx(100 * errors / len(marks)))
        assert result["risk_at_most"] == pytest.approx(bound)
    else:
        assert (result["wrong"], result["risk"], result["risk_at_most"]) == (None, None, None)


def test_copies_narrow_no_bound() -> None:
    rows = DecidedRows("retrieval", ("majority",))
    for case, gold, replies, _ in [RETRIEVAL[0]] * 50 + [RETRIEVAL[1]]:
        question = replace(case.question, text=gold[0])  # the same text for the fifty, another one for the last
        same = type(case)(question, case.settings)
        rows.add(same, gold, {"majority": outcome(same, "majority", replies)}, ())
    result = pool_figures(rows)["shipping"]["majority"]["abstain"]
    assert (result["scored"], result["wrong"]) == (51, 1)
    assert result["risk_at_most"] == pytest.approx(100 * proportion_upper_bound(2, 1))


@pytest.mark.parametrize(("task", "questions"), [("retrieval", RETRIEVAL), ("arithmetic", ARITHMETIC)])
def test_where_all_have_an_answer_shipping_all_errs_where_the_rule_does(task: Any, questions: list[Entry]) -> None:
    result = figures(task, questions)
    for rule, shipping in result["shipping"].items():
        everything = shipping["consensus"]
        assert (everything["questions"], everything["coverage"]) == (result["n"], 100.0)
        assert everything["risk"] == pytest.approx(100.0 - result["rules"][rule]["em"])
        assert shipping["abstain"]["questions"] <= everything["questions"]


async def certified(answer: str, evidence: Any) -> bool | None:
    if answer == "Nice":
        raise ConnectionError("refused")
    return {"Doha": True, "Dubai": False}.get(answer)


def test_a_run_counts_as_shipped_what_a_selector_that_abstains_ships(tmp_path: Path) -> None:
    """Each answer is given twice: Doha is certified, Dubai is not, asking about Nice fails, and none applies to yes."""
    gold = {"Doha": "Doha", "Dubai": "Doha", "Nice": "Nice", "yes": "no"}
    rows = [row(at, answers=[answer] * 2, gold=[right]) for at, (answer, right) in enumerate(gold.items())]
    plan = Plan([write_pool(tmp_path / "pool.jsonl", rows)], tmp_path / "run", ["majority"], max_failures=1)
    summary: Any = evaluate(Selector(certificate=certified), plan)
    table = shipping_table("pool", summary["pools"]["pool"])
    assert table and table.rows == (
        ("majority", "4", "100.00", "2", "50.00", "90.24"),
        ("majority, certified only", "2", "50.00", "1", "50.00", "97.47"),
    )
    select = Selector(certificate=certified, rule="majority", uncertified="abstain", on_failure="abstain")
    answers = [select(question="Where?", candidates=[answer] * 2, evidence=EVIDENCE).answer for answer in gold]
    assert answers == ["Doha", None, None, "yes"]


def test_conflicts_are_counted_and_noted_in_the_decisions_of_a_run(tmp_path: Path) -> None:
    plan = Plan([ARTIFACTS / "demo-retrieval.jsonl"], tmp_path / "run", ["majority"])
    summary = evaluate(heuristic_selector(), plan)
    lines = (tmp_path / "run" / "decisions.jsonl").read_text("utf-8").splitlines()
    notes = [line for line in lines if "different answers are certified" in line]
    assert summary["pools"]["demo-retrieval"]["conflicts"] == len(notes) > 0
