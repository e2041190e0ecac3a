"""The report as a page: well-formed, closed to hostile text, and with the figures of the summary."""

import base64
import hashlib
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.report.page import render_report
from eldgr_dspy.tables.judges import NAMES
from eldgr_dspy.tables.pool import bound, headline
from eldgr_dspy.tables.run import tables_of
from tests.case_tables import each_case
from tests.case_tables import tables_of as tables_in
from tests.figures import pool_figures, rule_figures, summary_figures
from tests.results.page_reader import Page, full_summary, html, summary, undrawn

RECORD: Any = tables_in("results")["a record"]


def page(of: Any = None) -> Page:
    return Page(html(of))


def words(read: Page) -> str:
    return " ".join(read.text.split())


def shown_in(cells: list[str], row: tuple[str, ...]) -> bool:
    return any(tuple(cells[i : i + len(row)]) == row for i in range(len(cells)))


def test_every_figure_and_the_record_stand_in_the_page_and_lost_questions_are_linked() -> None:
    cells = page(of=full_summary()).cells
    tables = [*tables_of(full_summary())]
    assert len(tables) == 7
    for table in tables:
        for row in (table.headers, *table.rows):
            assert shown_in(cells, row), row
    read = Page("".join(render_report(undrawn(), RECORD)))
    assert "The record" in words(read)
    silence = ("judge", "abstained", "unreadable", "unparsable", "2")
    for row in (("default to beat", "consensus"), silence, ("hotpot", "100", "ab" * 32)):
        assert shown_in(read.cells, row), row
    assert "The record" not in words(page())
    output = "".join(render_report(undrawn(), beside="questions.html"))
    links = [value for name, value in Page(output).attributes() if name == "href"]
    assert links == ["#pool-1", "questions.html", "questions.html#outcome=lost", "questions.html#outcome=won"]
    assert "There is no page of single questions" in words(page())


def test_the_conclusion_is_first_and_then_the_bound_of_what_was_run() -> None:
    assert words(page()).startswith("EL-DGR evaluation: hotpot EL-DGR evaluation hotpot ")
    of: Any = summary()
    reply = bound(of["pools"]["hotpot"])
    assert f"EL-DGR evaluation hotpot No judge was compared here. {reply} Each question" in words(page(of=of))
    lead = {"delta": -2.0, "ci": [-4.0, -1.0], "notes": []}
    use = {"useful": False, "reason": None, "over_certified": lead, "over_random": lead}
    scores: Any = {name: {"em": 50.0, "sources": [], "reason": None} for name in NAMES}
    of["pools"]["hotpot"]["baselines"] = {"scores": scores, "judges": {"judge": {"alone": use, "locked": use}}}
    why = "it is 2.00 points below certified majority [-4.00, -1.00]"
    verdict = f"The judge is not useful here: alone {why}; inside the lock without repairs {why}."
    assert f"EL-DGR evaluation hotpot {verdict} {reply} Each question" in words(page(of=of))
    assert headline(of["pools"]["hotpot"]) == f"{verdict} {reply}"
    loud, silent = rule_figures(80.0, 71.5, repairer=11), rule_figures(61.0, 71.5)
    replies = [bound(summary(rules={"eldgr": one})["pools"]["hotpot"]) for one in (loud, silent)]
    assert replies[0].startswith("Whatever judge and repairer say, eldgr scores 58–81 % here; the judge alone could")
    assert replies[1].startswith("Whatever the judge says (repairer and deriver silent), eldgr scores 58–69 % here;")


@each_case("results", "judges in the headline")
def test_the_headline_names_the_model_of_the_judge(changes: dict[str, Any], n: int, judge: str) -> None:
    sums = {"ok": 0, "abstained": 0, "failed": 0, "recorded": n, "calls": 0, "cached": 0}
    run = undrawn() | {"consultations": {"judge": sums}}
    assert f" Judge: {judge}. Each question" in words(Page("".join(render_report(run, RECORD | changes))))


@pytest.mark.parametrize(("em", "moves"), [(80.0, True), (58.0, False), (69.0, False), (57.5, True)])
def test_a_score_outside_the_only_bound_that_is_known_is_explained(em: float, moves: bool) -> None:
    rules = {"eldgr": rule_figures(em, 71.5, repairer=11)}
    reply = bound(summary(rules=rules, bounds_any_span={"eldgr": None})["pools"]["hotpot"])
    assert (f"The other roles of this run moved eldgr to {em:g}" in reply) is moves


def test_the_page_needs_no_network_and_runs_no_script() -> None:  # hazard 77
    hostile = full_summary()
    remark = "![x](https://example.org/x.png) <img src=https://example.org onerror=alert(1)>"
    hostile["pools"]["hotpot"]["remarks"] = [remark]
    output = html(hostile)
    read = Page(output)
    assert not {"script", "link", "img", "iframe", "object", "base", "use"} & {tag for tag, _ in read.tags}
    assert not [name for name, _ in read.attributes() if name.startswith("on") or name == "src"]
    assert [value for name, value in read.attributes() if name == "href"] == ["#pool-1"]
    assert "url(" not in output
    style = re.search(r"<style>(.*?)</style>", output, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert ("content", f"default-src 'none'; style-src 'sha256-{digest}'") in set(read.attributes())


def test_pools_are_linked_tables_name_their_rows_and_what_is_missing_is_said() -> None:
    tags = page(of=full_summary()).tags
    headings = [attributes for tag, attributes in tags if tag == "th"]
    assert headings
    assert all(attributes["scope"] in ("row", "col") for attributes in headings)
    assert sum(tag == "caption" for tag, _ in tags) == sum(tag == "table" for tag, _ in tags)
    pool = undrawn()["pools"]["hotpot"]
    both = summary_figures({"a b": pool, '"<b>': pool})
    read = page(of=both)
    ids = [value for name, value in read.attributes() if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value for name, value in read.attributes() if name == "href"} == {"#pool-1", "#pool-2"}
    assert {"pool-1", "pool-2"} <= set(ids)
    assert '"<b>' in read.text
    assert "There is no pool in this summary." in words(page(of=summary_figures({})))
    read = page(of=summary_figures({"hotpot": pool_figures(n=9, n_scored=0, rules={"first": rule_figures(None)})}))
    assert "—: no question has a gold answer, so nothing is scored." in words(read)
    assert words(read).count("eldgr has no result here.") == 1


@each_case("results", "hostile texts of a report")
def test_hostile_text_is_shown_and_never_read_as_markup(text: str) -> None:  # hazards 78 and 100
    run = undrawn()
    pool = run["pools"].pop("hotpot") | {"withheld": {text: {"judge": 1}}, "remarks": [text], "n_failed": 1}
    run["pools"][text] = pool
    record = RECORD | {"remarks": [text], "pools": {text: RECORD["pools"]["hotpot"]}}
    read = Page("".join(render_report(run, record)))
    plain = Page("".join(render_report(undrawn(), RECORD)))
    assert {tag for tag, _ in read.tags} <= {tag for tag, _ in plain.tags} | {"bdi"}
    assert {name for name, _ in read.attributes()} <= {name for name, _ in plain.attributes()}
    assert read.text.count(text) >= 7


def page_with(text: str) -> str:
    run = undrawn()
    run["pools"]["hotpot"]["remarks"] = [text]
    return html(run)


def test_lone_surrogates_and_control_characters_are_shown_by_their_code_points() -> None:  # hazards 37 and 92
    output = page_with("a\ud800b x\x00\x1b[31my invoice\u202efdp.exe \uffff")
    assert "a[U+D800]b x[U+0000][U+001B][31my invoice[U+202E]fdp.exe" in output.encode("utf-8").decode()


@settings(max_examples=30)
@given(st.text(max_size=30))
@example("\u2066<\u2069")
@example("&#0;")
def test_any_text_gives_a_well_formed_page_that_encodes(text: str) -> None:
    output = page_with(text)
    output.encode("utf-8")
    assert Page(output).tags


def test_importing_statistics_and_report_loads_no_library_for_pages() -> None:
    names = "{'scipy.stats', 'jinja2'}"
    code = f"import sys, eldgr_dspy.statistics, eldgr_dspy.report.page; print({names} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
