"""The paper beside runs: figures of the run's own summary, sentences that follow from the run, dashes where none is."""

import json
import shutil
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paper import paper_tables as paper
from benchmarks.paper.comparability import comparable, not_comparable
from benchmarks.paper.paper_runs import runs_here
from benchmarks.paper.published import SELECTIONS
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.tables.table import Table
from tests.capitals import obliging, row, selector_with, write_pool
from tests.case_tables import each_case, tables_of
from tests.finished_runs import finished_run, make_rows
from tests.refusing import refusal, says


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on nine retrieval questions of three candidates, by the heuristic roles."""
    return finished_run(tmp_path_factory.mktemp("made"), n=9)[0]


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def summary_of(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "summary.json").read_text(encoding="utf-8")))


def here(run: Path, name: str = "hotpotqa") -> Any:
    return runs_here([f"{name}={run}"])[name]


def tables_by_title(*runs: str) -> dict[str, Table]:
    return {table.title.partition(" (")[0]: table for table in paper.paper_tables(runs_here(runs))}


def test_without_a_run_the_paper_stands_alone_and_its_contrasts_are_computed_again() -> None:
    tables = tables_by_title()
    for title, number, cells in tables_of("paper")["alone"]:
        assert [*tables[title].rows[number]] == cells
    table = tables["the published contrasts, computed again from their counts"]
    assert len(table.rows) == 9
    assert [row[0] for row in table.rows if row[-1] != "0 and 0"] == ["GSM8K: majority"]
    assert table.notes[0] == "Every Δ and every p is what is printed, to its last digit."


def test_a_contrast_that_did_not_agree_would_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hotpotqa = SELECTIONS["hotpotqa"]
    leads = {**hotpotqa.leads, "first": replace(hotpotqa.leads["first"], p=Decimal(".0704"))}
    monkeypatch.setattr(paper, "SELECTIONS", {**SELECTIONS, "hotpotqa": replace(hotpotqa, leads=leads)})
    table = tables_by_title()["the published contrasts, computed again from their counts"]
    assert table.notes[0] == "Δ or p is not what is printed: hotpotqa first."


def test_what_is_here_is_what_the_run_counted(run: Path) -> None:
    figures, pool = here(run), summary_of(run)["pools"]["capitals"]
    assert here(run, "confirmation") == figures and figures["confirmation"] is None
    assert (figures["pool"], figures["n"], figures["n_scored"]) == ("capitals", 9, 9)
    assert figures["rules"] == pool["rules"]
    leads = {one["against"]: one for one in pool["contrasts"] if one["rule"] == "eldgr"}
    assert figures["leads"] == {rule: lead for rule, lead in leads.items() if rule != "certified"}
    assert list(figures["leads"]) == ["first", "majority", "judge"]
    assert figures["audit"]["judge_overrides"] == pool["audit"]["judge_overrides"]
    assert figures["homogeneous"] == 0
    expected = ["Comparable: the rules are the paper's, a", "Comparable: the statistics are the paper"]
    assert [one[:40] for one in comparable(figures, SELECTIONS["hotpotqa"])] == expected


def test_seconds_and_calls_are_those_of_the_journal_on_the_pools_questions(tmp_path: Path) -> None:
    selector, _ = selector_with(obliging)
    run, _ = finished_run(tmp_path, n=6, selector=selector)
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    consultations = [line for line in lines if line["kind"] == "consultation"]
    figures = here(run)
    assert figures["roles"]["judge"]["calls"] == figures["roles"]["judge"]["consultations"] == 6
    assert figures["roles"]["judge"]["models"] == ["scripted/lm"]
    assert figures["seconds"]["both"] == pytest.approx(sum(line["seconds"] for line in consultations) / 6)
    assert figures["seconds"]["judge"] + figures["seconds"]["verifier"] == pytest.approx(figures["seconds"]["both"])
    finished_run(tmp_path, n=6, selector=selector, limit=2)  # resumed: questions beyond the limit take no time
    assert (here(run)["n"], here(run)["roles"]["judge"]["consultations"]) == (2, 2)


def test_a_failed_attempt_before_an_abstention_is_not_another_question(tmp_path: Path) -> None:
    run, _ = finished_run(tmp_path, n=6)
    failure = {"outcome": "failed", "reason": "timeout: none", "attempt": 1}
    silence = {"outcome": "abstained", "reason": "cut: none", "attempt": 2}
    lines: list[dict[str, Any]] = []
    for line in map(json.loads, (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()):
        del line["crc32"]
        is_reply = line.get("role") == "judge" and line["kind"] != "role"
        lines += [{**line, **attempt} for attempt in (failure, silence)] if is_reply else [line]
    (run / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    finished_run(tmp_path, n=6)  # makes the results anew
    assert "the judge abstained on all 6 questions, so no rule used its replies" in sentences(here(run))


def test_of_recordings_no_seconds_are_said(tmp_path: Path) -> None:
    first, _ = finished_run(tmp_path)
    replay, _ = finished_run(tmp_path, out=tmp_path / "played", replay=first / "journal.jsonl")
    figures = here(replay)
    assert figures["seconds"] == {"judge": None, "verifier": 0.0, "both": None}
    note = "the judge's replies are recorded, and a recording does not say what made it; the paper's judge is"
    assert any(note in one for one in not_comparable(figures, SELECTIONS["hotpotqa"]))
    figures["roles"]["judge"]["recorded"] = 4
    assert "4 of 6 consultations of the judge were recorded" in sentences(figures)


@each_case("paper", "sentences")
def test_each_thing_that_matters_has_its_sentence(
    original: Path, name: str, changes: dict[str, Any], texts: list[str], others: list[str]
) -> None:
    figures = deepcopy(here(original))
    before = sentences(figures, name)
    for path, value in changes.items():
        *parents, last = path.split("/")
        reduce(getitem, parents, figures)[last] = value
    after = sentences(figures, name)
    assert [text for text in texts if text not in after or (changes and text in before)] == []
    assert [text for text in others if text in after] == []


def test_every_column_of_the_paper_has_one_of_here_beside_it(run: Path) -> None:
    tables = tables_by_title(f"hotpotqa={run}")
    table = tables["HotpotQA"]
    assert table.headers[1:3] == ("EM / F1 %, paper", "EM / F1 %, here")
    assert table.rows[1][1:3] == ("15.33 / 23.19", "33.33 / 33.33")
    assert table.title == "HotpotQA (tab:main_results): 300 questions in the paper, 9 of capitals here"
    assert tables["GSM8K"].rows[0][2::2] == ("—", "—", "—")
    assert "—: no run was given for it; give gsm8k=RUN." in tables["GSM8K"].notes
    assert tables["decision audit"].headers == ("decision of EL-DGR", "paper, 30 questions", "hotpotqa, here")
    note = "hotpotqa: no LM call was counted, so that its seconds say nothing of the cost of one."
    assert note in tables["cost"].notes
    assert all(len(row) == len(table.headers) for table in tables.values() for row in table.rows)


def test_the_confirmation_has_its_differences_the_other_way_round_as_the_paper_prints_them(run: Path) -> None:
    as_main, mirror = (
        {row[0]: row for row in tables_by_title(f"{name}={run}")[title].rows}
        for name, title in (("hotpotqa", "HotpotQA"), ("confirmation", "HotpotQA, confirmation"))
    )
    lead = here(run)["leads"]["majority"]
    low, high = lead["ci"]
    assert as_main["Majority vote"][4] == f"+{lead['delta']:.2f} [{low:.2f}, {high:.2f}]"
    assert mirror["Majority vote"][4] == f"{-lead['delta']:.2f} [{-high:.2f}, {-low:.2f}]"


def sentences(result: Any, name: str = "hotpotqa") -> str:
    return "\n".join([*comparable(result, SELECTIONS[name]), *not_comparable(result, SELECTIONS[name])])


def test_a_rule_without_a_result_has_dashes_and_its_reason(tmp_path: Path) -> None:
    run, _ = finished_run(tmp_path, rules=("first", "majority"))
    tables = tables_by_title(f"hotpotqa={run}")
    assert [row[2] for row in tables["HotpotQA"].rows] == ["33.33 / 33.33"] * 2 + ["—"] * 2
    assert "EL-DGR has no result here: eldgr was not among the rules of the run." in tables["HotpotQA"].notes
    assert tables["decision audit"].rows[0][2] == "—"
    assert tables["decision audit"].notes[-1] == "—: EL-DGR has no result there."
    assert tables["the judge with full authority"].rows[1][2:] == ("—", "—", "—")


def test_a_pool_is_named_where_a_run_has_several_of_the_task(tmp_path: Path) -> None:
    other = write_pool(tmp_path / "towns.jsonl", [row(1), row(2)])
    capitals = write_pool(tmp_path / "capitals.jsonl", make_rows(3))
    sums = write_pool(tmp_path / "sums.jsonl", [row(1, task="arithmetic", answers=("1", "2"), gold=["2"], evidence=[])])
    both = tmp_path / "a:b"  # a colon in a directory's name is part of it
    evaluate(heuristic_selector(), Plan([capitals, other, sums], both))
    assert here(both, "gsm8k")["pool"] == "sums"
    assert runs_here([f"hotpotqa={both}:towns"])["hotpotqa"]["n"] == 2
    one = "one scored pool of task retrieval; its pools are"
    assert says(f"...a:b must have {one} 'capitals' (retrieval), ...Say which, as...", refusal(lambda: here(both)))
    message = refusal(lambda: runs_here([f"hotpotqa={both}:cities"]))
    assert "a:b has no pool 'cities'; its pools are 'capitals', 'towns'" in message
    assert f"{one} 'sums' (arithmetic)" in refusal(lambda: runs_here([f"hotpotqa={both}:sums"]))


@each_case("paper", "arguments")
def test_an_argument_that_names_no_run_is_refused_by_its_text(original: Path, texts: list[str], message: str) -> None:
    assert says(message, refusal(lambda: runs_here([text.replace("RUN", str(original)) for text in texts])))


def test_a_run_that_is_not_whole_is_refused(run: Path) -> None:
    """It lacks decisions, a scored question, what this version writes, or its summary."""
    lines = (run / "decisions.jsonl").read_bytes().splitlines(keepends=True)
    (run / "decisions.jsonl").write_bytes(b"".join(lines[:-1]))
    assert "has 8 decisions of rule 'eldgr' on pool 'capitals'" in refusal(lambda: here(run))
    (run / "decisions.jsonl").write_bytes(b"".join(lines))
    summary = summary_of(run)
    summary["pools"]["capitals"] |= {"n_scored": 0, "contrasts": []}
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    assert "must have one scored pool of task retrieval" in refusal(lambda: here(run))
    del summary["pools"]["capitals"]["n_scored"]
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    assert says("...is not what eldgr_dspy ... writes...", refusal(lambda: here(run)))
    (run / "summary.json").unlink()
    assert "has no summary.json: the run is not finished" in refusal(lambda: here(run))
