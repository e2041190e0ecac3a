"""Tables as text: the figures of the paper as printed, and a dash with its reason where a figure is undefined."""

import math
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.base.formatting import UNDEFINED, figure, interval, probability, with_sign
from eldgr_dspy.programs.commands.console import text_of
from eldgr_dspy.tables.formats import as_latex, as_markdown
from eldgr_dspy.tables.plan_tables import ANY_DERIVER
from eldgr_dspy.tables.pool import audit_table, bounds_table, cost_table, headline, paper_table
from eldgr_dspy.tables.run import tables_of
from eldgr_dspy.tables.table import Table, difference, record
from tests.figures import AUDITED, contrast_figures, pool_figures, rule_figures, summary_figures
from tests.listed_contrasts import from_counts

WITHHELD = "—: withheld, or not computable for this rule or without gold answers."
OUTSIDE = "The bounds{} hold with repairer and deriver silent; {} asked them, and may be outside."


def contrast(against: str, wins: int, losses: int, n: int) -> Any:
    result = from_counts(n, wins, losses, unit=100)
    figures = {"delta": result.delta, "ci": list(result.interval), "p": result.p, "wins": wins, "losses": losses}
    return contrast_figures("eldgr", against, **figures)


def arithmetic_pool(**changed: Any) -> Any:
    """The paper's GSM8K rows, as a part of summary.json."""
    rules = {
        "first": rule_figures(55.4),
        "majority": rule_figures(55.8),
        "judge": rule_figures(56.8, judge=148),
        "eldgr": rule_figures(58.2, deriver=155),
    }
    audit = {"preserved": 472, "judge_overrides": 0, "repair_overrides": 28, "correct_to_incorrect": 8}
    audit |= {"incorrect_to_correct": 20, "abstentions": 3, "homogeneous": 352, "certified_consensus": 97}
    bounds = {"first": [55.4, 55.4], "majority": [55.8, 55.8], "judge": [50.0, 70.2], "eldgr": [55.8, 55.8]}
    pairs = (("first", 17, 3), ("majority", 20, 8), ("judge", 12, 5))
    figures = {
        "n": 500,
        "task": "arithmetic",
        "rules": rules,
        "contrasts": [contrast(*pair, n=500) for pair in pairs],
        "bounds": bounds,
        "bounds_any_span": dict.fromkeys(bounds),
        "audit": audit,
        "decided": AUDITED,
    }
    return pool_figures(**figures | changed)


def table_of(build: Any, pool: Any) -> Table:
    table = build("gsm8k", pool)
    assert isinstance(table, Table)
    return table


def test_the_paper_table_reads_as_the_paper_prints_it() -> None:
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


def test_retrieval_has_a_column_for_f1() -> None:
    pool = arithmetic_pool() | {
        "task": "retrieval",
        "rules": {"first": rule_figures(15.33333, 22.974), "eldgr": rule_figures(17.3, 25.456)},
    }
    table = table_of(paper_table, pool)
    assert table.headers[:3] == ("rule", "EM %", "F1 %")
    assert [row[:3] for row in table.rows] == [("first", "15.33", "22.97"), ("eldgr", "17.30", "25.46")]


def test_each_pool_has_its_tables_in_the_order_of_the_summary() -> None:
    summary = summary_figures({"b": arithmetic_pool(), "a": arithmetic_pool()})
    names = [table.title.split(":")[0] for table in tables_of(summary)]
    assert names == sorted(names, reverse=True)
    assert set(names) == {"a", "b"}


def unscored(pool: Any) -> Any:
    unknown = {"correct_to_incorrect": None, "incorrect_to_correct": None}
    pool = deepcopy(pool) | {"contrasts": [], "bounds": dict.fromkeys(pool["bounds"]), "n_scored": 0}
    pool["audit"] |= unknown
    pool["decided"]["flips"] = dict.fromkeys(pool["decided"]["flips"], unknown)
    for figures in pool["rules"].values():
        figures["em"] = None
    return pool


def test_without_gold_answers_scores_are_dashes_and_the_reason_is_given() -> None:
    table = table_of(paper_table, unscored(arithmetic_pool()))
    assert table.rows[2] == ("judge", UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, "0.30")
    assert table.notes == ("—: no question has a gold answer, so nothing is scored.",)
    audit = table_of(audit_table, unscored(arithmetic_pool()))
    assert ("correct to incorrect, against majority", UNDEFINED, UNDEFINED) in audit.rows  # and not 0
    assert ("repair overrides", "28", "5.60") in audit.rows
    assert audit.notes == table.notes


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"n_scored": 498}, "Scores and contrasts are over the 498 questions that have a gold answer, of 500."),
        ({"n_failed": 1}, "1 question had a call that did not come through and decided as with a silent role."),
        ({"remarks": ["The judge slept."]}, "The judge slept."),
        (
            {"withheld": {"near(1)": {"judge": 1_156, "repairer": 1}}},
            "near(1): withheld, since the judge was never asked on 1,156 questions and the repairer was never asked on "
            "1 question where this rule needs it; the same command without --replay, with --judge MODEL --repairer "
            "MODEL, asks.",
        ),
    ],
    ids=["gold", "failed", "remarks", "withheld"],
)
def test_what_a_reader_must_know_stands_below_the_first_table(changed: Any, note: str) -> None:
    table = table_of(paper_table, arithmetic_pool(**changed))
    assert table.notes == (note,)
    assert ("withheld" in changed) is (table.rows[-1] == ("near(1)", *[UNDEFINED] * 5))


def test_without_eldgr_there_is_no_difference_and_the_reason_is_given() -> None:
    pool = arithmetic_pool() | {"contrasts": [], "audit": None}
    del pool["rules"]["eldgr"]
    assert table_of(paper_table, pool).notes == ("— under Δ: eldgr has no result here to set against the others.",)
    assert table_of(audit_table, pool).notes == ("There is no audit: eldgr has no result here.",)


def test_a_pool_without_questions_has_dashes_for_shares() -> None:
    audit = dict.fromkeys(arithmetic_pool()["audit"], 0)
    pool = unscored(arithmetic_pool()) | {"n": 0, "audit": audit}
    assert table_of(paper_table, pool).rows[0] == ("first", *[UNDEFINED] * 5)
    assert table_of(audit_table, pool).rows[0] == ("consensus preserved", "0", UNDEFINED)


def test_the_audit_counts_questions_and_their_share() -> None:
    table = table_of(audit_table, arithmetic_pool())
    assert table.rows == (
        ("consensus preserved", "472", "94.40"),
        ("judge overrides", "0", "0.00"),
        ("repair overrides", "28", "5.60"),
        ("questions with an abstention", "3", "0.60"),
        ("questions with one class of answers", "352", "70.40"),
        ("consensus that a checked derivation confirms", "97", "19.40"),
        ("correct to incorrect, against majority", "8", "1.60"),
        ("incorrect to correct, against majority", "20", "4.00"),
    )
    assert table.notes == ()


def test_the_audit_in_full_has_flips_against_each_rule() -> None:
    names = ("correct_to_incorrect", "incorrect_to_correct")
    flips = {"first": dict.fromkeys(names, 0), "judge": dict(zip(names, (1, 10), strict=True))}
    pool = arithmetic_pool(decided=AUDITED | {"flips": flips})
    table = table_of(audit_table, pool)
    assert table.rows[-4:] == (
        ("correct to incorrect, against first", "0", "0.00"),
        ("incorrect to correct, against first", "0", "0.00"),
        ("correct to incorrect, against judge", "1", "0.20"),
        ("incorrect to correct, against judge", "10", "2.00"),
    )
    assert table.notes == ()
    undefined = table_of(audit_table, unscored(pool))
    assert [row[1] for row in undefined.rows[-6:]] == [UNDEFINED] * 6


def test_the_authority_bound_is_the_first_thing_that_a_pool_says() -> None:
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


DERIVERS = {"majority": [45.0, 45.0], "eldgr": [25.0, 80.0], "support": [25.0, 55.0], "judge": [25.0, 60.0]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"bounds": {"eldgr": [58.2, 58.2], "majority": [46.0, 46.0]}},
            "Whatever the judge says (repairer and deriver silent), eldgr scores 58.20 % here. "
            "Majority vote scores 46 %.",
        ),
        (
            {"bounds": {"judge": [1.0, 2.0]}},
            "Whatever the judge says (repairer and deriver silent), the judge alone could score 1–2 %.",
        ),
        ({"bounds": {"first": [1.0, 1.0], "eldgr": None, "mine:rule": [2.0, 3.0]}}, ""),
        ({"bounds": {}}, ""),
        (
            {"bounds_any_deriver": DERIVERS},
            "Whatever judge and deriver say, eldgr scores 25–80 % here; support 25–55 %; the judge alone could score "
            "25–60 %. Majority vote scores 45 %.",
        ),
        ({"bounds": {"eldgr": None}}, ""),
    ],
)
def test_the_headline_says_what_is_known(changed: dict[str, Any], message: str) -> None:
    assert headline(arithmetic_pool(**changed)) == message


def test_bounds_stand_beside_what_was_measured() -> None:
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


def test_a_rule_that_asks_more_than_a_judge_is_said_to_leave_its_bound() -> None:
    pool = arithmetic_pool()
    for rule in ("judge", "eldgr"):
        pool["rules"][rule] |= {"asked": {"judge": 3, "deriver": 0, "repairer": 0}}
    assert table_of(bounds_table, pool | {"task": "retrieval"}).notes == ()
    for rule in ("majority", "eldgr"):
        pool["rules"][rule] |= {"asked": {"judge": 3, "deriver": 0, "repairer": 2}}
    told = OUTSIDE.format("", "majority and eldgr")
    assert table_of(bounds_table, pool | {"task": "retrieval"}).notes == (told,)


def test_rules_that_leave_their_bound_are_listed_once_however_many_judges_they_have() -> None:
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


@pytest.mark.parametrize(
    ("p", "printed"),
    [
        (0.03125, ".0313"),  # half up, as the paper; half to even would print .0312
        (0.0703125, ".0703"),
        (0.125, ".1250"),
        (1.0, "1.0000"),
        (0.00005, ".0001"),
        (1e-9, "<.0001"),
        (0.0, "<.0001"),
        (None, UNDEFINED),
        (float("nan"), UNDEFINED),
    ],
)
def test_a_probability_has_four_digits_and_no_leading_zero(p: float | None, printed: str) -> None:
    assert probability(p) == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (2.4, "+2.40"),
        (-13.333, "-13.33"),
        (0.0, "0.00"),
        (-0.0, "0.00"),
        (-0.001, "0.00"),
        (0.004, "0.00"),
        (-0.005, "-0.01"),
        (None, UNDEFINED),
        (float("inf"), UNDEFINED),
    ],
)
def test_a_difference_has_a_sign_unless_it_rounds_to_nothing(value: float | None, printed: str) -> None:
    assert with_sign(value) == printed


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
        (1e308, "1.000e+308"),
        (-1e15, "-1.000e+15"),
        (10**400, "1.000e+400"),
        (999_999_999_999.0, "999999999999.00"),
        (math.nan, UNDEFINED),
    ],
    ids=["the largest", "negative", "an integer that no float holds", "a large one", "none"],
)
def test_a_number_that_no_run_measures_is_printed_too(value: float, printed: str) -> None:
    assert figure(value) == printed
    assert interval([value, value]) == (UNDEFINED if printed == UNDEFINED else f"[{printed}, {printed}]")


def test_intervals_and_calls_are_undefined_where_a_part_is() -> None:
    assert interval(None) == interval([float("nan"), 1.0]) == UNDEFINED
    assert difference({"delta": 1.0, "ci": [float("nan"), 2.0]}) == "+1.00"
    assert record({"wins": 1_200, "losses": 3}) == "1,200–3"
