"""The report as a page: well-formed, closed to hostile text, and with the figures of the summary."""

import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.report.changes import SHOWN, Changes, changes_in
from eldgr_dspy.report.page import render_report
from eldgr_dspy.tables.baselines import NAMES
from eldgr_dspy.tables.pool import bound, headline
from eldgr_dspy.tables.run import tables_of
from tests.figures import pool_figures, rule_figures, summary_figures
from tests.memory import memory_of
from tests.results.pages import Page, audited, decision, html, summary, undrawn, witness

RECORD: Any = {
    "default": "consensus",
    "certificate": {"retrieval": "folded", "arithmetic": "bounded"},
    "settings": {"certificate": "folded"},
    "override_rates": {"hotpot": None},
    "judge_effects": {},
    "models": [{"role": "judge", "asked": "openai/x", "served": "y", "same": False, "calls": 3}],
    "fingerprints": {},
    "parse_failures": {},
    "cost": {"calls": 3, "prompt_tokens": None, "completion_tokens": None, "cost": None},
    "consultations": {},
    "remarks": ["The judge was asked of openai/x, and y answered (3 calls)."],
    "silences": [
        {"role": "judge", "outcome": "abstained", "kind": "unreadable", "reason": "unparsable", "consultations": 2}
    ],
    "pools": {"hotpot": {"sha256": "ab" * 32, "rows": 100, "task": "retrieval"}},
    "roles": {},
    "confirmation": None,
}


def page(*decisions: Any, of: Any = None) -> Page:
    return Page(html(*decisions, of=of))


def words(read: Page) -> str:
    return " ".join(read.text.split())


def test_every_figure_of_the_tables_stands_in_the_page() -> None:
    cells = page(of=audited()).cells
    tables = [*tables_of(audited())]
    assert len(tables) == 7
    for table in tables:
        for row in (table.headers, *table.rows):
            assert any(tuple(cells[i : i + len(row)]) == row for i in range(len(cells))), row


def test_the_conclusion_is_first_then_the_bound_then_what_was_measured() -> None:
    shown = words(page())
    assert shown.startswith("EL-DGR evaluation: hotpot EL-DGR evaluation hotpot ")
    of: Any = summary()
    said = bound(of["pools"]["hotpot"])
    measured = "Measured: eldgr 61.00 %, first 32.00 %"
    assert f"EL-DGR evaluation hotpot No judge was compared here. {said} {measured}" in words(page(of=of))
    lead = {"delta": -2.0, "ci": [-4.0, -1.0], "notes": []}
    use = {"useful": False, "reason": None, "over_certified": lead, "over_random": lead}
    scores: Any = {name: {"em": 50.0, "sources": [], "reason": None} for name in NAMES}
    of["pools"]["hotpot"]["baselines"] = {"scores": scores, "judges": {"judge": {"alone": use, "locked": use}}}
    why = "it is 2.00 points below certified majority [-4.00, -1.00]"
    verdict = f"The judge is not useful here: alone {why}; inside the lock {why}."
    assert f"EL-DGR evaluation hotpot {verdict} {said} {measured}" in words(page(of=of))
    assert headline(of["pools"]["hotpot"]) == f"{verdict} {said}"


def with_judge(**changed: Any) -> Any:
    sums = {"ok": 3, "abstained": 0, "failed": 0, "recorded": 0, "calls": 0, "cached": 0}
    record = RECORD | {"models": [], "roles": {"judge": {"lm": None}}, "consultations": {"judge": sums}}
    return record | changed


@pytest.mark.parametrize(
    ("record", "named"),
    [
        (RECORD, "openai/x"),
        (with_judge(), "heuristic judge, no LM"),
        (with_judge(roles={}), "not asked"),
        (with_judge(roles={}, consultations={"judge": {"recorded": 3}}), "recorded replies"),
        (with_judge(roles={"judge": {"lm": {"model": "openai/z"}}}), "openai/z"),
    ],
    ids=["asked", "heuristic", "none", "recorded", "cached"],
)
def test_the_headline_names_the_model_of_the_judge(record: Any, named: str) -> None:
    assert f" Judge: {named}. Each question" in words(Page("".join(render_report(undrawn(), Changes(), record))))


def test_the_bound_is_that_of_what_was_run_the_repairer_included() -> None:
    asked, silent = rule_figures(80.0, 71.5, repairer=11), rule_figures(61.0, 71.5)
    said = [bound(summary(rules={"eldgr": one})["pools"]["hotpot"]) for one in (asked, silent)]
    assert said[0].startswith("Whatever judge and repairer say, eldgr scores 58–81 % here; the judge alone could")
    assert said[1].startswith("Whatever the judge says (repairer and deriver silent), eldgr scores 58–69 % here;")


@pytest.mark.parametrize(("em", "moved"), [(80.0, True), (58.0, False), (69.0, False), (57.5, True)])
def test_a_score_outside_the_only_bound_that_is_known_is_explained(em: float, moved: bool) -> None:
    rules = {"eldgr": rule_figures(em, 71.5, repairer=11)}
    said = bound(summary(rules=rules, bounds_any_span={"eldgr": None})["pools"]["hotpot"])
    assert (f"The other roles of this run moved eldgr to {em:g}" in said) is moved


def test_the_plots_stand_in_the_page_with_their_numbers() -> None:
    read = page(of=audited())
    labels = [attributes["aria-label"] for tag, attributes in read.tags if tag == "svg"]
    assert labels == ["Authority bounds of the rules", "Differences between rules with their intervals"]
    shown = words(read)
    assert "eldgr − majority +3.00 [0.00, 7.00], p .3750" in shown


def test_the_record_stands_on_the_page_with_what_answered_and_by_what_pools_are_known() -> None:
    written = "".join(render_report(undrawn(), Changes(), RECORD))
    read = Page(written)
    shown = words(read)
    assert "The record" in shown
    for row in (
        ("default to beat", "consensus"),
        ("judge", "abstained", "unreadable", "unparsable", "2"),
        ("hotpot", "100", "ab" * 32),
    ):
        assert any(tuple(read.cells[i : i + len(row)]) == row for i in range(len(read.cells))), row
    assert "The record" not in words(page())


def test_the_page_needs_no_network_and_runs_no_script() -> None:  # hazard 77
    hostile = decision(question="![x](https://example.org/x.png) <img src=https://example.org onerror=alert(1)>")
    written = html(hostile, of=audited())
    read = Page(written)
    assert not {"script", "link", "img", "iframe", "object", "base", "use"} & {tag for tag, _ in read.tags}
    assert not [name for name, _ in read.attributes() if name.startswith("on") or name == "src"]
    assert [value for name, value in read.attributes() if name == "href"] == ["#pool-1"]
    assert "url(" not in written
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in set(read.attributes())


def test_a_decision_is_linked_to_its_question_where_there_is_a_page_of_questions() -> None:
    written = "".join(render_report(undrawn(), changes_in([decision(id="q 1/2&<>")]), beside="questions.html"))
    links = [value for name, value in Page(written).attributes() if name == "href"]
    assert links == ["#pool-1", "questions.html", "questions.html#question=hotpot%2Fq%201%2F2%26%3C%3E"]
    assert "There is no page of single questions" in words(page())


def test_tables_name_their_rows_and_columns() -> None:
    tags = page(of=audited()).tags
    headings = [attributes for tag, attributes in tags if tag == "th"]
    assert headings
    assert all(attributes["scope"] in ("row", "col") for attributes in headings)
    assert sum(tag == "caption" for tag, _ in tags) == sum(tag == "table" for tag, _ in tags)
    assert all("aria-label" in attributes for tag, attributes in tags if tag == "svg")


def test_several_pools_are_linked_from_the_top_by_targets_that_exist() -> None:
    pool = undrawn()["pools"]["hotpot"]
    both = summary_figures({"a b": pool, '"<b>': pool})
    read = page(of=both)
    ids = [value for name, value in read.attributes() if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value for name, value in read.attributes() if name == "href"} == {"#pool-1", "#pool-2"}
    assert {"pool-1", "pool-2"} <= set(ids)
    assert '"<b>' in read.text


HOSTILE = [
    "<script>alert(1)</script>",
    "\"><svg onload=alert(1)> ' & &amp; </article></section></body>",
    "{{ 7 * 7 }} {% raw %} {0.__class__} %s $x",
    "</style><!-- ]]> -->",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_never_read_as_markup(text: str) -> None:  # hazards 78 and 100
    spoiled = witness(text=text, title=text, before=text, after=text, level=text, flags=[text])
    row = decision(id=text, question=text, gold=[text], answer=text, consensus=text, witness=spoiled, repair=text)
    named = undrawn()
    named["pools"]["hotpot"] |= {"withheld": {text: {"judge": 1}}, "remarks": [text]}
    read = page(row | {"abstentions": {text: text}}, of=named)
    plain = page(decision())
    assert {tag for tag, _ in read.tags} <= {tag for tag, _ in plain.tags}
    assert {name for name, _ in read.attributes()} <= {name for name, _ in plain.attributes()}
    assert read.text.count(text) >= 9


def test_lone_surrogates_and_control_characters_are_shown_by_their_code_points() -> None:  # hazard 92
    written = html(decision(answer="a\ud800b", question="x\x00\x1b[31my", consensus="\uffff")).encode("utf-8").decode()
    assert "a[U+D800]b" in written
    assert "x[U+0000][U+001B][31my" in written
    assert "\x00" not in written


def test_bidirectional_controls_are_shown_by_their_code_points() -> None:  # hazard 37
    assert "invoice[U+202E]fdp.exe" in words(page(decision(answer="invoice\u202efdp.exe")))


@settings(max_examples=30)
@given(st.text(max_size=30))
@example("\u2066<\u2069")
@example("&#0;")
def test_any_text_gives_a_well_formed_page_that_encodes(text: str) -> None:
    written = html(decision(answer=text, id=text, witness=witness(text=text)))
    written.encode("utf-8")
    assert Page(written).tags


def listed(*decisions: Any) -> list[tuple[str, ...]]:
    """The rows of the decisions that changed something."""
    cells = page(*decisions).cells
    headers = ["question", "outcome", "asks", "consensus", "chosen", "gold", "decided by", "certificate"]
    start = next((i + 8 for i in range(len(cells)) if cells[i : i + 8] == headers), len(cells))
    return [tuple(cells[i : i + 8]) for i in range(start, len(cells) - 7, 8)]


def test_a_decision_says_what_was_chosen_against_what_and_why() -> None:
    assert listed(decision()) == [
        ("q1", "incorrect to correct", "Where is the seat?", "Dubai", "Doha", "Doha", "judge", "certified, exact")
    ]


@pytest.mark.parametrize(
    ("changed", "place", "expected"),
    [
        ({"answer": None}, 4, "—"),
        ({"gold": []}, 5, "—"),
        ({"gold": list("abcdefg")}, 5, "a · b · c · d · e"),
        ({"witness": None}, 7, "certified by a checked derivation"),
        ({"witness": None, "certified": False}, 7, "uncertified"),
        ({"witness": None, "certified": None}, 7, "inapplicable"),
        ({"em": None, "majority_em": None}, 1, "not scored against majority"),
        ({"question": "x" * 1_700}, 2, f"{'x' * 300}… (1,400 more characters)"),
    ],
)
def test_what_is_missing_or_particular_is_said_in_words(changed: dict[str, Any], place: int, expected: str) -> None:
    assert listed(decision(**changed))[0][place] == expected


def test_only_decisions_of_eldgr_that_changed_something_are_shown() -> None:
    kept = decision(id="kept", branch="consensus", majority_em=True)
    rows = (
        kept,
        decision(id="other", rule="judge"),
        decision(id="flip", branch="consensus"),
        decision(id="o", em=False),
    )
    assert [row[0] for row in listed(*rows)] == ["flip", "o"]
    assert "Decisions of eldgr that changed something 2 questions" in words(page(*rows))
    assert "None: every answer that shipped is the consensus" in words(page())


def test_lost_answers_stand_before_won_ones() -> None:
    outcomes = [(True, True), (False, False), (False, True), (True, False)]
    rows = [decision(id=f"{before}{after}", majority_em=before, em=after) for before, after in outcomes]
    assert [row[0] for row in listed(*rows)] == ["TrueFalse", "FalseTrue", "FalseFalse", "TrueTrue"]


def test_beyond_the_limit_the_page_says_how_many_more_there_are() -> None:
    rows = [decision(id=f"q{i}", em=i % 2 == 0) for i in range(SHOWN + 37)]
    assert len(listed(*rows)) == SHOWN
    assert "37 more are not shown here" in words(page(*rows))


def render_many_long_rows() -> None:
    rows = (decision(id=f"q{i}", question=f"{i}" + "x" * 20_000, abstentions={"judge": f"{i}"}) for i in range(3_000))
    for _ in render_report(undrawn(), changes_in(rows)):
        pass


def test_rows_are_read_once_and_not_kept() -> None:
    assert memory_of(render_many_long_rows).peak < 8 * 2**20  # the rows are 60 MB


def test_a_decision_of_a_pool_that_the_summary_does_not_name_is_refused() -> None:
    with pytest.raises(ArgumentError) as caught:
        render_report(undrawn(), changes_in([decision(pool="svamp")]))
    assert str(caught.value) == (
        "pool='svamp' of a decision is not in the summary, which names 'hotpot'; "
        "give the decisions and the summary of the same run."
    )


def test_a_summary_of_no_pool_is_a_page_that_says_so() -> None:
    assert "There is no pool in this summary." in words(page(of=summary_figures({})))


def test_a_pool_without_gold_answers_is_a_page_without_drawings() -> None:
    read = page(of=summary_figures({"hotpot": pool_figures(n=9, n_scored=0, rules={"first": rule_figures(None)})}))
    assert "svg" not in {tag for tag, _ in read.tags}
    assert "—: no question has a gold answer, so nothing is scored." in words(read)
    assert words(read).count("eldgr has no result here.") == 2


def test_importing_statistics_and_report_loads_no_library_for_pages() -> None:
    names = "{'scipy.stats', 'jinja2'}"
    code = f"import sys, eldgr_dspy.statistics, eldgr_dspy.report.page; print({names} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_the_same_input_gives_the_same_page() -> None:
    assert html(decision(), of=audited()) == html(decision(), of=audited())


def test_every_colour_of_a_plot_is_one_that_the_page_has_in_light_in_dark_and_in_print() -> None:
    written = html(of=audited())
    used = set(re.findall(r"var\(--(\w+)\)", written))
    themes = re.findall(r":root \{(.*?)\}", written, re.DOTALL)
    assert len(themes) == 3
    assert all(used <= set(re.findall(r"--(\w+):", theme)) for theme in themes)
