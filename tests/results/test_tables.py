"""Tables of a pool and of a run: the figures as printed, and a dash with its reason where a figure is undefined."""

import json
import math
from copy import deepcopy
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.base.formatting import UNDEFINED, figure, interval, probability, with_sign
from eldgr_dspy.programs.commands.console import text_of
from eldgr_dspy.tables import pool as tables_of_pool
from eldgr_dspy.tables.formats import as_latex, as_markdown
from eldgr_dspy.tables.pool import headline, outcomes_table, paper_table, shipping_table
from eldgr_dspy.tables.run import contrasts_table, pool_tables, tables_of
from eldgr_dspy.tables.table import difference, record
from tests.case_tables import each_case
from tests.figures import AUDIT, contrast_figures, pool_figures, rule_figures, summary_figures
from tests.listed_contrasts import from_counts
from tests.results.audited import ARITHMETIC, NO_GOLD, POOLS, RETRIEVAL, figures


def contrast(against: str, wins: int, losses: int, n: int) -> Any:
    result = from_counts(n, wins, losses, unit=100)
    figures = {"delta": result.delta, "ci": list(result.interval), "p": result.p, "wins": wins, "losses": losses}
    return contrast_figures("eldgr", against, **figures)


def arithmetic_pool(**changes: Any) -> Any:
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
        "bounds": bounds, "bounds_any_span": dict.fromkeys(bounds), "audit": audit, "decided": AUDIT,
    }  # fmt: skip
    return pool_figures(**figures | changes)


def without_gold(**changes: Any) -> Any:
    """The same without gold answers."""
    nothing = {"correct_to_incorrect": None, "incorrect_to_correct": None}
    pool = arithmetic_pool()
    pool |= {"contrasts": [], "bounds": dict.fromkeys(pool["bounds"]), "n_scored": 0, "audit": pool["audit"] | nothing}
    pool["rules"] = {rule: one | {"em": None} for rule, one in pool["rules"].items()}
    return pool | changes


def with_roles(em: float, requests: dict[str, int], **calls: int) -> Any:
    return rule_figures(em, **calls) | {"asked": requests}


def with_tokens(em: float, tokens: int | None, **calls: int) -> Any:
    return rule_figures(em, **calls) | {"tokens": {"judge": tokens, "deriver": 34, "repairer": 0}}


TABLES: dict[str, Any] = {**vars(tables_of_pool), "contrasts_table": contrasts_table}


WORDS: dict[str, Any] = {"FIGURES": rule_figures, "ASKED": with_roles, "TOKENS": with_tokens}


@each_case("results", "tables of a pool", GSM8K=arithmetic_pool, UNSCORED=without_gold, **POOLS, **WORDS)
def test_a_table_of_a_pool_reads_as_the_paper_prints_it_with_dashes_and_their_reasons(
    build: str, pool: Any, expected: dict[str, Any]
) -> None:
    table = TABLES[build]("gsm8k", pool)
    assert json.loads(json.dumps({part: getattr(table, part) for part in expected})) == expected


def test_pools_stand_in_their_order_and_the_paper_table_below_the_authority_bound() -> None:
    summary = summary_figures({"b": arithmetic_pool(), "a": arithmetic_pool()})
    names = [table.title.split(":")[0] for table in tables_of(summary)]
    assert names == sorted(names, reverse=True) and {*names} == {"a", "b"}
    bounds = {"first": [32.0, 32.0], "majority": [58.0, 58.0], "judge": [14.0, 78.0], "eldgr": [58.0, 69.0]}
    pool = arithmetic_pool() | {"bounds": bounds}
    title, reply = "gsm8k: arithmetic, 500 questions", headline(pool)
    assert reply == (
        "Whatever the judge says (repairer and deriver silent), eldgr scores 58–69 % here; the judge alone could score "
        "14–78 %. Majority vote scores 58 %."
    )
    table = paper_table("gsm8k", pool)
    assert text_of({}, [table], "text", terminal=False).splitlines()[:2] == [title, reply]
    assert as_markdown([table]).split("\n\n")[:2] == [f"### {title}", reply]
    percent = reply.replace("%", r"\%")
    assert rf"\caption{{{title}. {percent}}}" in as_latex([table])


@each_case("results", "notes below the first table")
def test_what_a_reader_must_know_stands_below_the_first_table(changes: Any, note: str) -> None:
    table = paper_table("gsm8k", arithmetic_pool(**changes))
    assert table.notes == (note,)
    assert ("withheld" in changes) is (table.rows[-1] == ("near(1)", *[UNDEFINED] * 5))


@each_case("results", "headlines")
def test_the_headline_says_what_is_known(changes: dict[str, Any], message: str) -> None:
    assert headline(arithmetic_pool(**changes)) == message


PRINTERS = {one.__name__: one for one in (probability, with_sign, interval, difference, record)}
UNUSUAL: dict[str, Any] = {"nan": lambda: math.nan, "inf": lambda: math.inf, "power": pow}


@each_case("results", "printed numbers", **UNUSUAL)
def test_a_number_is_rounded_half_up_as_in_the_paper_and_undefined_where_a_part_is(
    name: str, value: Any, text: str
) -> None:
    assert PRINTERS[name](value) == text


@given(st.floats(-1e4, 1e4), st.integers(0, 4))
@example(1.005, 2)
@example(46.01971190295678, 2)
def test_a_figure_is_within_half_a_unit_of_its_value(value: float, places: int) -> None:
    text = figure(value, places)
    assert abs(float(text) - value) <= 0.5 * 10.0**-places * (1 + 1e-3)
    assert len(text.partition(".")[2]) == places


@each_case("results", "numbers that no run measures", **UNUSUAL)
def test_a_number_that_no_run_measures_is_printed_too(value: float, text: str) -> None:
    assert figure(value) == text
    assert interval([value, value]) == (UNDEFINED if text == UNDEFINED else f"[{text}, {text}]")


def test_contrasts_have_their_rows_and_notes_and_every_table_is_narrow_and_in_every_format() -> None:
    summary = summary_figures({"open": figures("retrieval", RETRIEVAL), "sums": figures("arithmetic", ARITHMETIC)})
    pool = summary["pools"]["open"]
    pool["contrasts"][0] |= {"delta": 2.4, "ci": [0.4, 4.4], "p": 0.0357, "p_holm": 0.0714}
    table: Any = contrasts_table("open", pool)
    assert table.title == "open: contrasts in EM, percentage points"
    assert table.headers == ("contrast", "Δ", "95% CI", "exact p", "Holm p", "wins–losses")
    assert table.rows[0] == ("eldgr − first", "+2.40", "[0.40, 4.40]", ".0357", ".0714", "3–2")
    assert [row[0] for row in table.rows] == [f"{one['rule']} − {one['against']}" for one in pool["contrasts"]]
    pool = deepcopy(pool) | {"n_scored": 60, "n_distinct": 12}
    for one in pool["contrasts"]:
        one["notes"] = []
    pool["contrasts"][0]["notes"], pool["contrasts"][1]["notes"] = ["There is one."], ["There is one.", "Nothing."]
    first, second = (f"{one['rule']} − {one['against']}" for one in pool["contrasts"][:2])
    table = contrasts_table("p", pool)
    assert table.notes[-3:] == (
        "60 questions have 12 different texts: a text that stands several times counts once in a contrast, with the "
        "mean of its outcomes.",
        f"{first}, {second}: There is one.",
        f"{second}: Nothing.",
    )
    assert "open: risk and coverage if uncertified answers abstain" in [one.title for one in tables_of(summary)]
    lines = text_of({}, tables_of(summary), "text", terminal=False).splitlines()
    assert max(len(line) for line in lines if line[:1] in "┏┃┡│└") <= 100
    for form in ("text", "markdown", "latex"):
        text = text_of({}, tables_of(summary), form, terminal=False)
        assert "Holm p" in text and "what shipped, by decision" in text


def test_pools_without_gold_answers_eldgr_or_questions_have_the_tables_that_they_can() -> None:
    pool = figures("retrieval", NO_GOLD)
    assert contrasts_table("p", pool) is None
    assert shipping_table("p", pool | {"shipping": {}}) is None
    pool = figures("retrieval", RETRIEVAL, ("first", "majority"))
    assert outcomes_table("p", pool) is None
    assert "p: contrasts in EM, percentage points" not in [table.title for table in pool_tables("p", pool)]
    for table in pool_tables("p", figures("retrieval", [])):
        assert all(len(row) == len(table.headers) for row in table.rows)
