"""The tables of a run: contrasts with both intervals and both probabilities, and the audit in full."""

import re
from copy import deepcopy
from typing import Any

import pytest

from eldgr_dspy.base.formatting import UNDEFINED
from eldgr_dspy.programs.commands.console import text_of
from eldgr_dspy.tables.pool import outcomes_table, shipping_table
from eldgr_dspy.tables.run import contrasts_table, pool_tables, tables_of
from eldgr_dspy.tables.table import Table
from tests.figures import summary_figures
from tests.results.audited import ARITHMETIC, RETRIEVAL, UNSCORED, figures


@pytest.fixture(scope="module")
def summary() -> Any:
    return summary_figures({"open": figures("retrieval", RETRIEVAL), "sums": figures("arithmetic", ARITHMETIC)})


def table_of(result: Table | None) -> Table:
    assert result is not None
    return result


def test_contrasts_have_their_interval_both_probabilities_and_the_order_of_the_summary(summary: Any) -> None:
    pool = summary["pools"]["open"]
    pool["contrasts"][0] |= {"delta": 2.4, "ci": [0.4, 4.4], "p": 0.0357, "p_holm": 0.0714}
    table = table_of(contrasts_table("open", summary["pools"]["open"]))
    assert table.title == "open: contrasts in EM, percentage points"
    assert table.headers == ("contrast", "Δ", "95% CI", "exact p", "Holm p", "wins–losses")
    assert table.rows[0] == ("eldgr − first", "+2.40", "[0.40, 4.40]", ".0357", ".0714", "3–2")
    assert [row[0] for row in table.rows] == [f"{one['rule']} − {one['against']}" for one in pool["contrasts"]]
    expected = "sums: contrasts in accuracy, percentage points"
    assert table_of(contrasts_table("sums", summary["pools"]["sums"])).title == expected


def test_what_keeps_a_contrast_from_saying_much_stands_below_it(summary: Any) -> None:
    pool = deepcopy(summary["pools"]["open"]) | {"n_scored": 60, "n_distinct": 12}
    for one in pool["contrasts"]:
        one["notes"] = []
    pool["contrasts"][0]["notes"], pool["contrasts"][1]["notes"] = ["There is one."], ["There is one.", "Nothing."]
    first, second = (f"{one['rule']} − {one['against']}" for one in pool["contrasts"][:2])
    assert table_of(contrasts_table("p", pool)).notes[-3:] == (
        "60 questions have 12 different texts: a text that stands several times counts once in a contrast, with the "
        "mean of its outcomes.",
        f"{first}, {second}: There is one.",
        f"{second}: Nothing.",
    )


def test_what_shipped_is_a_row_a_decision_and_certificate(summary: Any) -> None:
    shipped = table_of(outcomes_table("open", summary["pools"]["open"]))
    assert shipped.headers == ("decision", "lost", "won", "wrong", "right", "questions")
    assert ("judge, exact", "1", "1", "1", "0", "3") in shipped.rows
    assert ("consensus, inapplicable", "0", "0", "1", "0", "1") in shipped.rows
    assert sum(int(row[-1]) for row in shipped.rows) == 13


def test_risk_and_coverage_have_a_row_for_all_and_one_for_the_certified(summary: Any) -> None:
    table = table_of(shipping_table("open", summary["pools"]["open"]))
    assert table.title == "open: risk and coverage if uncertified answers abstain"
    assert table.headers == ("rule", "ships", "coverage %", "wrong", "risk %", "at most %")
    assert table.rows[-2:] == (
        ("eldgr", "13", "100.00", "7", "53.85", "77.60"),
        ("eldgr, certified only", "10", "76.92", "5", "50.00", "77.76"),
    )
    expected = ["Certified only", "At most", "Several answers are certified on 7 of 13 questions"]
    assert [note.partition(":")[0] for note in table.notes] == expected
    assert table.title in [one.title for one in tables_of(summary)]


def test_a_risk_of_nothing_is_a_dash_and_copies_of_a_question_are_noted(summary: Any) -> None:
    sums = table_of(shipping_table("sums", summary["pools"]["sums"]))
    assert sums.rows[1] == ("first, certified only", "0", "0.00", UNDEFINED, UNDEFINED, UNDEFINED)
    assert sums.notes[0] == "—: no question that ships has a gold answer, so its risk is undefined."
    assert "only if its derivation is checked" in sums.notes[1]
    copies = table_of(shipping_table("p", summary["pools"]["open"] | {"n_scored": 60}))
    assert any(note.startswith("The bound counts a text that stands several times once") for note in copies.notes)
    unscored = figures("retrieval", UNSCORED)
    assert table_of(shipping_table("p", unscored)).notes[2].startswith("—: no question has a gold answer")
    assert shipping_table("p", unscored | {"shipping": {}}) is None


def test_without_gold_answers_outcomes_are_unscored() -> None:
    pool = figures("retrieval", UNSCORED)
    table = table_of(outcomes_table("p", pool))
    assert (table.headers, table.notes) == (("decision", "unscored", "questions"), ())
    assert contrasts_table("p", pool) is None


def test_a_run_without_eldgr_has_no_audit_in_full() -> None:
    pool = figures("retrieval", RETRIEVAL, ("first", "majority"))
    assert outcomes_table("p", pool) is None
    assert "p: contrasts in EM, percentage points" not in [table.title for table in pool_tables("p", pool)]


def test_a_pool_without_questions_has_tables(summary: Any) -> None:
    for table in pool_tables("p", figures("retrieval", [])):
        assert all(len(row) == len(table.headers) for row in table.rows)


def test_no_table_is_wider_than_a_hundred_columns_but_for_sentences(summary: Any) -> None:
    drawn = text_of({}, tables_of(summary), "text", terminal=False).splitlines()
    assert max(len(line) for line in drawn if line[:1] in "┏┃┡│└") <= 100


def test_every_format_shows_holm(summary: Any) -> None:
    for form in ("text", "markdown", "latex"):
        text = text_of({}, tables_of(summary), form, terminal=False)
        assert "Holm p" in text
        assert re.search(r"what shipped, by decision", text)
