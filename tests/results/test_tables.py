"""Tables of a pool and of a run: the figures as printed, and a dash with its reason where a figure is undefined."""

import math
import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.base.formatting import UNDEFINED, figure, interval, probability, with_sign
from eldgr_dspy.programs.commands.console import text_of
from eldgr_dspy.tables.formats import as_latex, as_markdown
from eldgr_dspy.tables.plan_tables import ANY_DERIVER
from eldgr_dspy.tables.pool import (
    audit_table,
    bounds_table,
    cost_table,
    headline,
    outcomes_table,
    paper_table,
    shipping_table,
)
from eldgr_dspy.tables.run import contrasts_table, pool_tables, tables_of
from eldgr_dspy.tables.table import Table, difference, record
from tests.case_tables import each_case
from tests.figures import AUDITED, contrast_figures, pool_figures, rule_figures, summary_figures
from tests.listed_contrasts import from_counts
from tests.results.audited import ARITHMETIC, RETRIEVAL, UNSCORED, figures

WITHHELD = "—: withheld, or not computable for this rule or without gold answers."
OUTSIDE = "The bounds{} hold with repairer and deriver silent; {} asked them, and may be outside."


def contrast(against: str, wins: int, losses: int, n: int) -> Any:
    result = from_counts(n, wins, losses, unit=100)
    figures = {"delta": result.delta, "ci": list(result.interval), "p": result.p, "wins": wins, "losses": losses}
    return contrast_figures("eldgr", against, **figures)


def arithmetic_pool(**changed: Any) -> Any:
    """The paper's GSM8K rows, as a part of summary.json."""
    rules = {
        "first": rule_figures(55.4), "majority": rule_figures(55.8), "judge": rule_figures(56.8, judge=148),
        "eldgr": rule_figures(58.2, deriver=155),
    }  # fmt: skip
    audit = {"preserved": 472, "judge_overrides": 0, "repair_overrides": 28, "correct_to_incorrect": 8}
    audit |= {"incorrect_to_correct": 20, "abstentions": 3, "homogeneous": 352, "certified_consensus": 97}
    bounds = {"first": [55.4, 55.4], "majority": [55.8, 55.8], "judge": [50.0, 70.2], "eldgr": [55.8, 55.8]}
    pairs = (("first", 17, 3), ("majority", 20, 8), ("judge", 12, 5))
    figures = {
        "n": 500, "task": "arithmetic", "rules": rules, "contrasts": [contrast(*pair, n=500) for pair in pairs],
        "bounds": bounds, "bounds_any_span": dict.fromkeys(bounds), "audit": audit, "decided": AUDITED,
    }  # fmt: skip
    return pool_figures(**figures | changed)


def table_of(build: Any, pool: Any) -> Table:
    table = build("gsm8k", pool)
    assert isinstance(table, Table)
    return table


def test_the_paper_table_reads_as_the_paper_prints_it_below_the_authority_bound() -> None:
    table = table_of(paper_table, arithmetic_pool())
    assert table.title == "gsm8k: arithmetic, 500 questions"
    assert table.headers == ("rule", "accuracy %", "Δ [95% CI]", "exact p", "wins–losses", "LM calls / question")
    assert table.rows == (
        ("first", "55.40", "+2.80 [1.20, 4.60]", ".0026", "17–3", "0.00"),
        ("majority", "55.80", "+2.40 [0.40, 4.40]", ".0357", "20–8", "0.00"),
        ("judge", "56.80", "+1.40 [-0.20, 3.00]", ".1435", "12–5", "0.30"),
        ("eldgr", "58.20", "", "", "", "0.31"),
    )
    assert table.notes == ()
    pool = arithmetic_pool() | {
        "task": "retrieval",
        "rules": {"first": rule_figures(15.33333, 22.974), "eldgr": rule_figures(17.3, 25.456)},
    }
    table = table_of(paper_table, pool)
    assert table.headers[:3] == ("rule", "EM %", "F1 %")
    assert [row[:3] for row in table.rows] == [("first", "15.33", "22.97"), ("eldgr", "17.30", "25.46")]
    summary = summary_figures({"b": arithmetic_pool(), "a": arithmetic_pool()})
    names = [table.title.split(":")[0] for table in tables_of(summary)]
    assert names == sorted(names, reverse=True)
    assert set(names) == {"a", "b"}
    bounds = {"first": [32.0, 32.0], "majority": [58.0, 58.0], "judge": [14.0, 78.0], "eldgr": [58.0, 69.0]}
    pool = arithmetic_pool() | {"bounds": bounds}
    title, reply = "gsm8k: arithmetic, 500 questions", headline(pool)
    assert reply == (
        "Whatever the judge says (repairer and deriver silent), eldgr scores 58–69 % here; the judge alone could score "
        "14–78 %. Majority vote scores 58 %."
    )
    table = table_of(paper_table, pool)
    assert text_of({}, [table], "text", terminal=False).splitlines()[:2] == [title, reply]
    assert as_markdown([table]).split("\n\n")[:2] == [f"### {title}", reply]
    percent = reply.replace("%", r"\%")
    assert rf"\caption{{{title}. {percent}}}" in as_latex([table])


def unscored(pool: Any) -> Any:
    unknown = {"correct_to_incorrect": None, "incorrect_to_correct": None}
    pool = deepcopy(pool) | {"contrasts": [], "bounds": dict.fromkeys(pool["bounds"]), "n_scored": 0}
    pool["audit"] |= unknown
    pool["decided"]["flips"] = dict.fromkeys(pool["decided"]["flips"], unknown)
    for one in pool["rules"].values():
        one["em"] = None
    return pool


def test_without_gold_answers_eldgr_or_questions_there_are_dashes_and_the_reason() -> None:
    table = table_of(paper_table, unscored(arithmetic_pool()))
    assert table.rows[2] == ("judge", UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, "0.30")
    assert table.notes == ("—: no question has a gold answer, so nothing is scored.",)
    audit = table_of(audit_table, unscored(arithmetic_pool()))
    assert ("correct to incorrect, against majority", UNDEFINED, UNDEFINED) in audit.rows  # and not 0
    assert ("repair overrides", "28", "5.60") in audit.rows
    assert audit.notes == table.notes
    pool = arithmetic_pool() | {"contrasts": [], "audit": None}
    del pool["rules"]["eldgr"]
    assert table_of(paper_table, pool).notes == ("— under Δ: eldgr has no result here to set against the others.",)
    assert table_of(audit_table, pool).notes == ("There is no audit: eldgr has no result here.",)
    pool = unscored(arithmetic_pool()) | {"n": 0, "audit": dict.fromkeys(arithmetic_pool()["audit"], 0)}
    assert table_of(paper_table, pool).rows[0] == ("first", *[UNDEFINED] * 5)
    assert table_of(audit_table, pool).rows[0] == ("consensus preserved", "0", UNDEFINED)


@each_case("results", "notes below the first table")
def test_what_a_reader_must_know_stands_below_the_first_table(changed: Any, note: str) -> None:
    table = table_of(paper_table, arithmetic_pool(**changed))
    assert table.notes == (note,)
    assert ("withheld" in changed) is (table.rows[-1] == ("near(1)", *[UNDEFINED] * 5))


def test_the_audit_counts_questions_their_share_and_flips_against_each_rule() -> None:
    table = table_of(audit_table, arithmetic_pool())
    assert table.rows == (
        ("consensus preserved", "472", "94.40"), ("judge overrides", "0", "0.00"), ("repair overrides", "28", "5.60"),
        ("questions with an abstention", "3", "0.60"), ("questions with one class of answers", "352", "70.40"),
        ("consensus that a checked derivation confirms", "97", "19.40"),
        ("correct to incorrect, against majority", "8", "1.60"),
        ("incorrect to correct, against majority", "20", "4.00"),
    )  # fmt: skip
    assert table.notes == ()
    names = ("correct_to_incorrect", "incorrect_to_correct")
    flips = {"first": dict.fromkeys(names, 0), "judge": dict(zip(names, (1, 10), strict=True))}
    pool = arithmetic_pool(decided=AUDITED | {"flips": flips})
    table = table_of(audit_table, pool)
    assert table.rows[-4:] == (
        ("correct to incorrect, against first", "0", "0.00"), ("incorrect to correct, against first", "0", "0.00"),
        ("correct to incorrect, against judge", "1", "0.20"), ("incorrect to correct, against judge", "10", "2.00"),
    )  # fmt: skip
    assert table.notes == ()
    undefined = table_of(audit_table, unscored(pool))
    assert [row[1] for row in undefined.rows[-6:]] == [UNDEFINED] * 6


@each_case("results", "headlines")
def test_the_headline_says_what_is_known(changed: dict[str, Any], message: str) -> None:
    assert headline(arithmetic_pool(**changed)) == message


def test_bounds_stand_beside_what_was_measured_and_rules_that_leave_them_are_listed_once() -> None:
    pool = arithmetic_pool() | {"task": "retrieval", "bounds_any_span": {"eldgr": [58.0, 81.0]}}
    table = table_of(bounds_table, pool)
    assert table.headers == ("rule", "measured", "any judge", "any judge, any span as repair")
    expected = (("judge", "56.80", "[50.00, 70.20]", UNDEFINED), ("eldgr", "58.20", "[55.80, 55.80]", "[58.00, 81.00]"))
    assert table.rows[2:] == expected
    assert table.notes == (WITHHELD, OUTSIDE.format("", "eldgr"))
    derived = table_of(bounds_table, arithmetic_pool() | {"bounds_any_deriver": {"eldgr": [12.0, 81.0]}})
    assert derived.headers == ("rule", "measured", "any judge", "any judge, any deriver")
    assert derived.rows[3] == ("eldgr", "58.20", "[55.80, 55.80]", "[12.00, 81.00]")
    assert derived.notes == (WITHHELD, OUTSIDE.format(" under any judge", "eldgr"), ANY_DERIVER)
    pool = arithmetic_pool()
    for rule in ("judge", "eldgr"):
        pool["rules"][rule] |= {"asked": {"judge": 3, "deriver": 0, "repairer": 0}}
    assert table_of(bounds_table, pool | {"task": "retrieval"}).notes == ()
    for rule in ("majority", "eldgr"):
        pool["rules"][rule] |= {"asked": {"judge": 3, "deriver": 0, "repairer": 2}}
    told = OUTSIDE.format("", "majority and eldgr")
    assert table_of(bounds_table, pool | {"task": "retrieval"}).notes == (told,)
    pool, asked = arithmetic_pool(), {"asked": {"judge": 3, "deriver": 0, "repairer": 2}}
    figures = pool["rules"]["eldgr"] | asked
    names = ("eldgr[a]", "eldgr[b]", "near(0)[a]", "near(0)[b]", "near(1)[a]")
    rules, bounds = dict.fromkeys(names, figures), dict.fromkeys(names, pool["bounds"]["eldgr"])
    spans = dict.fromkeys(names, None)
    several = pool | {"task": "retrieval", "rules": rules, "bounds": bounds, "bounds_any_span": spans}
    notes = " ".join(table_of(bounds_table, several).notes)
    assert "deriver silent; eldgr, near(0) and near(1) asked them" in notes


def test_cost_is_in_total_for_roles_that_were_asked_and_unknown_where_a_server_did_not_report_it() -> None:
    pool = arithmetic_pool()
    table = table_of(cost_table, pool)
    assert table.headers == ("rule", "judge asked", "deriver asked", "LM calls", "tokens", "seconds")
    assert table.rows[-2:] == (("judge", "148", "0", "148", "0", "1.50"), ("eldgr", "0", "155", "155", "0", "1.50"))
    assert table.notes == ()
    for rule, tokens in zip(pool["rules"], (0, 0, None, 1_200), strict=True):
        pool["rules"][rule]["tokens"] = {"judge": tokens, "deriver": 34, "repairer": 0}
    table = table_of(cost_table, pool)
    assert [row[-2] for row in table.rows] == ["34", "34", UNDEFINED, "1,234"]
    assert table.notes == ("—: a server did not report it.",)


@each_case("results", "probabilities")
def test_a_probability_has_four_digits_and_no_leading_zero(p: float | None, printed: str) -> None:
    assert probability(p) == printed  # half up, as the paper
    assert probability(math.nan) == UNDEFINED


@each_case("results", "differences")
def test_a_difference_has_a_sign_unless_it_rounds_to_nothing(value: float | None, printed: str) -> None:
    assert with_sign(value) == printed
    assert with_sign(float("inf")) == UNDEFINED


@given(st.floats(-1e4, 1e4), st.integers(0, 4))
@example(1.005, 2)
@example(46.01971190295678, 2)
def test_a_figure_is_within_half_a_unit_of_its_value(value: float, places: int) -> None:
    printed = figure(value, places)
    assert abs(float(printed) - value) <= 0.5 * 10.0**-places * (1 + 1e-3)
    assert len(printed.partition(".")[2]) == places


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (1e308, "1.000e+308"), (-1e15, "-1.000e+15"), (10**400, "1.000e+400"), (999_999_999_999.0, "999999999999.00"),
        (math.nan, UNDEFINED),
    ],
    ids=["the largest", "negative", "an integer that no float holds", "a large one", "none"],
)  # fmt: skip
def test_a_number_that_no_run_measures_is_printed_too(value: float, printed: str) -> None:
    assert figure(value) == printed
    assert interval([value, value]) == (UNDEFINED if printed == UNDEFINED else f"[{printed}, {printed}]")


def test_intervals_and_calls_are_undefined_where_a_part_is() -> None:
    assert interval(None) == interval([float("nan"), 1.0]) == UNDEFINED
    assert difference({"delta": 1.0, "ci": [float("nan"), 2.0]}) == "+1.00"
    assert record({"wins": 1_200, "losses": 3}) == "1,200–3"


@pytest.fixture(scope="module")
def summary() -> Any:
    return summary_figures({"open": figures("retrieval", RETRIEVAL), "sums": figures("arithmetic", ARITHMETIC)})


def present(result: Table | None) -> Table:
    assert result is not None
    return result


def test_contrasts_decisions_and_risks_have_their_rows_and_notes_in_every_format(summary: Any) -> None:
    pool = summary["pools"]["open"]
    pool["contrasts"][0] |= {"delta": 2.4, "ci": [0.4, 4.4], "p": 0.0357, "p_holm": 0.0714}
    table = present(contrasts_table("open", summary["pools"]["open"]))
    assert table.title == "open: contrasts in EM, percentage points"
    assert table.headers == ("contrast", "Δ", "95% CI", "exact p", "Holm p", "wins–losses")
    assert table.rows[0] == ("eldgr − first", "+2.40", "[0.40, 4.40]", ".0357", ".0714", "3–2")
    assert [row[0] for row in table.rows] == [f"{one['rule']} − {one['against']}" for one in pool["contrasts"]]
    expected = "sums: contrasts in accuracy, percentage points"
    assert present(contrasts_table("sums", summary["pools"]["sums"])).title == expected
    pool = deepcopy(summary["pools"]["open"]) | {"n_scored": 60, "n_distinct": 12}
    for one in pool["contrasts"]:
        one["notes"] = []
    pool["contrasts"][0]["notes"], pool["contrasts"][1]["notes"] = ["There is one."], ["There is one.", "Nothing."]
    first, second = (f"{one['rule']} − {one['against']}" for one in pool["contrasts"][:2])
    assert present(contrasts_table("p", pool)).notes[-3:] == (
        "60 questions have 12 different texts: a text that stands several times counts once in a contrast, with the "
        "mean of its outcomes.",
        f"{first}, {second}: There is one.",
        f"{second}: Nothing.",
    )
    shipped = present(outcomes_table("open", summary["pools"]["open"]))
    assert shipped.headers == ("decision", "lost", "won", "wrong", "right", "questions")
    assert ("judge, exact", "1", "1", "1", "0", "3") in shipped.rows
    assert ("consensus, inapplicable", "0", "0", "1", "0", "1") in shipped.rows
    assert sum(int(row[-1]) for row in shipped.rows) == 13
    table = present(shipping_table("open", summary["pools"]["open"]))
    assert table.title == "open: risk and coverage if uncertified answers abstain"
    assert table.headers == ("rule", "ships", "coverage %", "wrong", "risk %", "at most %")
    assert table.rows[-2:] == (
        ("eldgr", "13", "100.00", "7", "53.85", "77.60"),
        ("eldgr, certified only", "10", "76.92", "5", "50.00", "77.76"),
    )
    beginnings = ["Certified only", "At most", "Several answers are certified on 7 of 13 questions"]
    assert [note.partition(":")[0] for note in table.notes] == beginnings
    assert table.title in [one.title for one in tables_of(summary)]
    sums = present(shipping_table("sums", summary["pools"]["sums"]))
    assert sums.rows[1] == ("first, certified only", "0", "0.00", UNDEFINED, UNDEFINED, UNDEFINED)
    assert sums.notes[0] == "—: no question that ships has a gold answer, so its risk is undefined."
    assert "only if its derivation is checked" in sums.notes[1]
    copies = present(shipping_table("p", summary["pools"]["open"] | {"n_scored": 60}))
    assert any(note.startswith("The bound counts a text that stands several times once") for note in copies.notes)
    unscored = figures("retrieval", UNSCORED)
    assert present(shipping_table("p", unscored)).notes[2].startswith("—: no question has a gold answer")
    assert shipping_table("p", unscored | {"shipping": {}}) is None
    drawn = text_of({}, tables_of(summary), "text", terminal=False).splitlines()
    assert max(len(line) for line in drawn if line[:1] in "┏┃┡│└") <= 100
    for form in ("text", "markdown", "latex"):
        text = text_of({}, tables_of(summary), form, terminal=False)
        assert "Holm p" in text
        assert re.search(r"what shipped, by decision", text)


def test_pools_without_gold_answers_eldgr_or_questions_have_the_tables_that_they_can(summary: Any) -> None:
    pool = figures("retrieval", UNSCORED)
    table = present(outcomes_table("p", pool))
    assert (table.headers, table.notes) == (("decision", "unscored", "questions"), ())
    assert contrasts_table("p", pool) is None
    pool = figures("retrieval", RETRIEVAL, ("first", "majority"))
    assert outcomes_table("p", pool) is None
    assert "p: contrasts in EM, percentage points" not in [table.title for table in pool_tables("p", pool)]
    for table in pool_tables("p", figures("retrieval", [])):
        assert all(len(row) == len(table.headers) for row in table.rows)
