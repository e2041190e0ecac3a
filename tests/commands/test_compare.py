"""`eldgr compare` pairs two runs by question, and refuses other runs, naming the first difference."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.comparisons.two_runs import compare_runs
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.formatting import interval
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm
from eldgr_dspy.statistics import contrast_from_counts, equivalence_from_counts, holm
from eldgr_dspy.tables.table import difference
from tests.capitals import NO_SPAN, row, write_pool
from tests.finished_runs import finished_run, numbered, unsealed


def judging(preferred: int) -> Selector:
    """Roles of a scripted LM whose judge always prefers one candidate."""
    verdict = {"assessments": [], "preferred": preferred, "judge_rationale": "seen"}
    selector = Selector()
    selector.set_lm(scripted_lm(lambda request: verdict if role_of(request) == "judge" else NO_SPAN))
    return selector


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A run whose judge finds Paris on all nine questions, right on six; and one whose judge keeps Nice."""
    first, _ = finished_run(tmp_path, n=9, out=tmp_path / "finds", selector=judging(2))
    second, _ = finished_run(tmp_path, n=9, out=tmp_path / "keeps", selector=judging(0))
    return first, second


def compared(one: Path, other: Path, rule: str = "eldgr") -> Any:
    return compare_runs(read_run(one), read_run(other), rule)


def test_wins_and_losses_are_by_question(runs: tuple[Path, Path]) -> None:
    found = compared(*runs)
    (pool,) = found["pools"].values()
    expected = contrast_from_counts(9, 6, 3, unit=100)
    assert (pool["n"], pool["n_scored"], pool["differ"]) == (9, 9, 9)
    assert (pool["contrast"]["wins"], pool["contrast"]["losses"]) == (6, 3)
    assert pool["contrast"]["delta"] == pytest.approx(expected.delta)
    assert pool["contrast"]["ci"] == pytest.approx(list(expected.interval))
    assert pool["contrast"]["p"] == expected.p
    assert [one["em"] for one in pool["figures"]] == pytest.approx([100 * 6 / 9, 100 * 3 / 9])
    assert pool["contrast"]["f1"]["delta"] == pytest.approx(expected.delta)


def test_p_is_adjusted_for_all_pools(tmp_path: Path) -> None:
    write_pool(tmp_path / "more.jsonl", numbered(12))
    runs = (tmp_path / "finds", tmp_path / "keeps")
    for out, preferred in zip(runs, (2, 0), strict=True):
        pools = [write_pool(tmp_path / "capitals.jsonl", numbered(9)), tmp_path / "more.jsonl"]
        evaluate(judging(preferred), Plan(pools, out))
    contrasts = [pool["contrast"] for pool in compared(*runs)["pools"].values()]
    assert [one["p_holm"] for one in contrasts] == list(holm([one["p"] for one in contrasts]))
    assert contrasts[1]["p_holm"] > contrasts[1]["p"]


def test_intervals_of_either_score_and_kind_are_printed(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, runs)]) == 0
    out, _ = capsys.readouterr()
    one = compared(*runs)["pools"]["capitals"]["contrast"]
    assert one["p_holm"] == one["p"]
    for score in (one, one["f1"]):
        assert f"{difference(score)} │ {interval(score['bca'])} │" in out
    assert "Holm p is over this pool. F1 is not tested." in out
    assert "equivalence" not in out


def test_a_margin_asks_whether_the_runs_are_as_good_as_each_other(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    contrast = compare_runs(read_run(runs[0]), read_run(runs[1]), margin=2.0)["pools"]["capitals"]["contrast"]
    expected = equivalence_from_counts(9, 6, 3, margin=2.0, unit=100)
    assert contrast and contrast["equivalence"] == expected
    assert not expected.equivalent
    assert main(["compare", *map(str, runs), "--margin", "2"]) == 0
    out, _ = capsys.readouterr()
    assert "equivalence of right and wrong within ±2.00 points" in out
    assert "not shown" in out
    assert main(["compare", str(runs[0]), str(runs[0]), "--margin", "60"]) == 0
    assert re.search("│ +yes │", capsys.readouterr().out)
    for margin in ("0", "100", "x"):
        assert main(["compare", *map(str, runs), "--margin", margin]) == 2


def test_a_question_that_stands_several_times_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**one, "question": f"Which {number // 2}?"} for number, one in enumerate(numbered(8))]
    one, other = (
        finished_run(tmp_path, rows=rows, out=tmp_path / name, selector=judging(preferred))[0]
        for name, preferred in (("finds", 2), ("keeps", 0))
    )
    found: Any = compare_runs(read_run(one), read_run(other), margin=2.0)["pools"]["capitals"]["contrast"]
    assert found["n_distinct"] == 4
    assert found["wins"] + found["losses"] <= 4
    assert found["equivalence"] is None
    assert main(["compare", str(one), str(other), "--margin", "2"]) == 0
    said = "8 questions have 4 different texts: one that stands several times counts once in Δ and p, with the mean of"
    assert said in capsys.readouterr().out


def test_the_other_way_round_all_signs_change(runs: tuple[Path, Path]) -> None:
    there, back = (compared(*pair)["pools"]["capitals"]["contrast"] for pair in (runs, (runs[1], runs[0])))
    assert (there["wins"], there["losses"], there["p"]) == (back["losses"], back["wins"], back["p"])
    assert there["delta"] == -back["delta"]
    assert there["ci"] == pytest.approx([-end for end in back["ci"][::-1]])


def test_a_run_against_itself_differs_in_nothing(runs: tuple[Path, Path]) -> None:
    found = compared(runs[0], runs[0])
    assert found["differences"] == []
    assert found["pools"]["capitals"]["differ"] == found["pools"]["capitals"]["contrast"]["wins"] == 0


def test_the_rule_may_be_any_that_both_have(runs: tuple[Path, Path]) -> None:
    assert compared(*runs, rule="majority")["pools"]["capitals"]["contrast"]["delta"] == 0


def test_different_settings_and_models_are_shown_as_what_they_are(tmp_path: Path) -> None:
    one, _ = finished_run(tmp_path, out=tmp_path / "a", selector=judging(2))
    other, _ = finished_run(tmp_path, out=tmp_path / "b", selector=heuristic_selector(preference="stratum"))
    found = compared(one, other)
    assert 'rule: preference: "global" -> "stratum"' in found["differences"]
    roles = '"eldgr_dspy.programs.roles.Judge" -> "eldgr_dspy.programs.heuristics.LexicalJudge"'
    assert f"judge: module: {roles}" in found["differences"]
    assert found["models"] == {"judge": ["scripted/lm", "none"], "deriver": [None, None], "repairer": [None, None]}


def test_a_role_that_one_run_alone_asked_is_named(runs: tuple[Path, Path]) -> None:
    found = compared(*runs)  # after a judge that keeps consensus, the repairer is asked
    assert f"repairer: asked only by {runs[1]}" in found["differences"]
    assert found["models"]["repairer"] == [None, "scripted/lm"]


def test_costs_stand_beside_each_other(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert [one["calls"] for one in compared(*runs)["consultations"]] == [9, 18]
    assert main(["compare", *map(str, runs)]) == 0
    out, _ = capsys.readouterr()
    assert "what each run asked, in all" in out
    assert "Another answer ships on 9 questions." in out


def test_of_recordings_it_does_not_say_that_they_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, _ = finished_run(tmp_path)
    played, _ = finished_run(tmp_path, out=tmp_path / "played", replay=asked / "journal.jsonl")
    said = "Recorded replies are not compared: a recording does not say what made it."
    for other, expected in ((asked, False), (played, True)):
        assert main(["compare", str(asked), str(other)]) == 0
        assert (said in capsys.readouterr().out) is expected


def test_json_is_the_figures_and_nothing_else(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *map(str, runs), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == compared(*runs)
    assert err == ""


def test_without_gold_answers_it_is_said_how_often_another_answer_ships(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(number, gold=[]) for number in range(4)]
    one, _ = finished_run(tmp_path, rows=rows, out=tmp_path / "a", selector=judging(2))
    other, _ = finished_run(tmp_path, rows=rows, out=tmp_path / "b", selector=judging(0))
    assert main(["compare", str(one), str(other)]) == 0
    out, _ = capsys.readouterr()
    assert "—: no question has a gold answer, so nothing is scored." in out
    assert "Another answer ships on 4 questions." in out
    assert compared(one, other)["pools"]["capitals"]["contrast"] is None


def test_answers_of_one_class_are_no_difference(tmp_path: Path) -> None:
    rows = [row(0, answers=("Paris", "paris", "Lyon"))]
    one, other = (finished_run(tmp_path, rows=rows, out=tmp_path / name)[0] for name in "ab")
    decisions = other / "decisions.jsonl"
    decisions.write_text(decisions.read_text().replace('"answer": "Paris"', '"answer": "PARIS"'))
    assert compared(one, other)["pools"]["capitals"]["differ"] == 0


@pytest.mark.parametrize("command", ["compare", "plan", "export", "report"])
def test_a_run_of_another_version_is_read_and_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run, _ = finished_run(tmp_path)
    journal = run / "journal.jsonl"
    journal.write_text(unsealed(journal.read_text()).replace('"eldgr_dspy": "0.1.0"', '"eldgr_dspy": "0.0.7"'))
    more = {"compare": [str(run)], "export": ["--to", str(tmp_path / "d.csv")]}.get(command, [])
    assert main([command, str(run), *more]) == 0
    said = f"Note: {run} was made by eldgr_dspy 0.0.7; this is 0.1.0, which may decide otherwise.\n"
    assert capsys.readouterr().err.count(said) == 1


def test_another_content_is_refused_by_its_hash(tmp_path: Path) -> None:
    one, _ = finished_run(tmp_path, n=4, out=tmp_path / "a")
    other, _ = finished_run(tmp_path, n=5, out=tmp_path / "b")
    with pytest.raises(ArgumentError, match=r"Pool 'capitals' differs: in .*a it has sha256 \w{16}\.\.\., in .*b "):
        compared(one, other)


def test_another_pool_is_refused_by_its_name(tmp_path: Path) -> None:
    one, _ = finished_run(tmp_path, n=4, out=tmp_path / "a")
    (tmp_path / "other").mkdir()
    _, pool = finished_run(tmp_path / "other", n=4)
    other = tmp_path / "b"
    assert main(["evaluate", str(pool.rename(tmp_path / "towns.jsonl")), "--out", str(other), "--quiet"]) == 0
    with pytest.raises(
        ArgumentError, match=r"a is on pool 'capitals' and .*b is not; give two runs on the same pools\."
    ):
        compared(one, other)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: lines[::-1], r"has been put in another order; restore it from a copy, or give its eldgr eval"),
        (lambda lines: [lines[0].replace('"q0"', '"q8"'), *lines[1:]], r"has been changed; restore it from a copy, or"),
    ],
    ids=["shuffled", "changed"],
)
def test_decisions_that_were_rearranged_are_no_matter_of_a_limit(
    tmp_path: Path, change: Callable[[list[str]], list[str]], said: str
) -> None:
    rows = list(numbered(6))
    one, other = (finished_run(tmp_path, rows=rows, out=tmp_path / name)[0] for name in "ab")
    decisions = other / "decisions.jsonl"
    decisions.write_text("".join(change(decisions.read_text().splitlines(keepends=True))))
    with pytest.raises(ArgumentError, match=rf"differ first at number 1: .*one decisions\.jsonl {said}") as refused:
        compared(one, other, "first")
    assert "--limit" not in str(refused.value)


def test_other_questions_are_refused_by_the_first_of_them(tmp_path: Path) -> None:
    rows = list(numbered(6))
    one, _ = finished_run(tmp_path, rows=rows, out=tmp_path / "a")
    other, _ = finished_run(tmp_path, rows=rows, out=tmp_path / "b", limit=4)
    with pytest.raises(
        ArgumentError, match=r"differ first at number 5: .*a has 'q4' and .*b has no more; give two runs"
    ):
        compared(one, other)


def test_a_rule_without_a_result_is_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    few, _ = finished_run(tmp_path, n=9, out=tmp_path / "few", rules=("first", "majority"))
    with pytest.raises(
        ArgumentError, match=r"few has no result of rule 'eldgr' .* not among the rules; give --rule one"
    ):
        compared(runs[0], few)


def test_an_unfinished_run_is_refused(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    (runs[1] / "summary.json").unlink()
    assert main(["compare", *map(str, runs)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "keeps has no summary.json: the run is not finished" in err
