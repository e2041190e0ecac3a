"""The table of decided questions: its figures do not depend on its order, it stays small, and copies are a unit."""

import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.decision import Choice, Steps
from eldgr_dspy.figures.authority import QuestionBounds, bounds_of, question_bounds
from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome, RoleColumns, reply_marks
from eldgr_dspy.figures.distinct import Column, Units, counts_by, text_key
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation
from tests.capitals import row
from tests.memory import memory_of
from tests.results.audited import ARITHMETIC, OPEN, RETRIEVAL, figures, retrieval

OWN = "tests.results.test_decided_rows:repairing"


@settings(max_examples=10)
@given(st.permutations(RETRIEVAL))
def test_figures_do_not_depend_on_the_order_of_the_questions(asked: Any) -> None:
    assert json.dumps(figures("retrieval", asked), sort_keys=True) == json.dumps(
        figures("retrieval", RETRIEVAL), sort_keys=True
    )
    assert figures("arithmetic", ARITHMETIC[::-1]) == figures("arithmetic", ARITHMETIC)


def test_a_pool_without_rows_has_figures() -> None:
    rows = DecidedRows("retrieval", ("first", "eldgr"))
    assert (pool_figures(rows)["n"], pool_figures(rows)["audit"]) == (0, figures("retrieval", [])["audit"])


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


def bounded(*questions: str) -> Units[QuestionBounds]:
    cases = [Case(Row.model_validate(row(1, question=text)).to_question()) for text in questions]
    return Column(question_bounds([OWN], case, ["Paris"]) for case in cases).units(np.arange(len(cases)))


def test_what_one_question_leaves_without_bounds_is_without_bounds_in_the_pool() -> None:
    covered, uncovered = bounded("Where is Paris?"), bounded("Where is Paris?", "Where is Rome?")
    assert bounds_of("retrieval", [OWN], covered)["bounds_any_span"] == {OWN: [0.0, 0.0]}
    assert bounds_of("retrieval", [OWN], uncovered)["bounds"] == {OWN: [0.0, 0.0]}
    assert bounds_of("retrieval", [OWN], uncovered)["bounds_any_span"] == {OWN: None}
    assert bounds_of("retrieval", [OWN], covered, withheld=True)["bounds"] == {OWN: None}


# -- memory -----------------------------------------------------------------------------------------------------------


def fill(n: int) -> None:
    column, spent = Column[bool](), RoleColumns()
    consultation = Consultation(
        "p", "q", "judge", "ok", None, {}, calls=1, prompt_tokens=3, completion_tokens=4, seconds=0.5
    )
    marks = reply_marks(consultation, None)
    for place in range(n):
        column.append(place % 2 == 0)
        spent.append(place, consultation, marks)
    assert column.counts() == {True: n // 2, False: n // 2}
    assert spent.sums(column.each(bool))[:3] == (n // 2, n // 2, 7 * n // 2)


def test_a_question_takes_a_few_bytes_a_column_and_a_consultation() -> None:
    few, many = (memory_of(fill, n).peak for n in (20_000, 120_000))
    assert (many - few) / 100_000 < 100  # the arrays that a sum looks at included


# -- columns ----------------------------------------------------------------------------------------------------------

values = st.lists(st.sampled_from("abc"), max_size=20)


@given(values, st.data())
def test_columns_hold_the_values_of_the_questions(given_: list[str], data: Any) -> None:
    column = Column(given_)
    others = data.draw(st.lists(st.integers(0, 2), min_size=len(given_), max_size=len(given_)))
    kept = data.draw(st.lists(st.booleans(), min_size=len(given_), max_size=len(given_)))
    assert column.each(str.upper).tolist() == [value.upper() for value in given_]
    assert column.counts(np.array(kept, bool)) == Counter(one for one, here in zip(given_, kept, strict=True) if here)
    pairs = column.beside(Column(others))
    assert [[*pairs][code] for code in pairs.codes()] == [*zip(given_, others, strict=True)]
    assert counts_by(column.counts(), ord) == Counter(map(ord, given_))


# -- units ------------------------------------------------------------------------------------------------------------

copied = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc")), max_size=40)


@given(copied)
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


def test_a_copy_is_a_question_with_the_same_folded_text() -> None:
    texts = np.array([text_key(text) for text in ("Who?", "who?  ", "WHO?", "When?")])
    assert Column("aaaa").units(texts) == {("a", "a", "a"): 1, ("a",): 1}
