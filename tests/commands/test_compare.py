"""`eldgr compare` pairs runs by question, and refuses what is not on the same questions."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.comparisons.compared_runs import compare_runs
from eldgr_dspy.comparisons.named_runs import named_runs
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm
from eldgr_dspy.statistics import holm
from eldgr_dspy.tables.table import difference
from tests.capitals import NO_SPAN, row, write_pool
from tests.case_tables import each_case
from tests.commands.installed import Eldgr, lacking
from tests.finished_runs import finished_run, make_rows, unseal
from tests.listed_contrasts import from_counts
from tests.refusing import refusal, says


def judging(preferred: int) -> Selector:
    """Roles of a scripted LM whose judge always prefers one candidate."""
    verdict = {"assessments": [], "preferred": preferred, "judge_rationale": "seen"}
    selector = Selector()
    selector.set_lm(scripted_lm(lambda request: verdict if role_of(request) == "judge" else NO_SPAN))
    return selector


def two_runs(folder: Path, **options: Any) -> tuple[Path, Path]:
    """A run whose judge finds Paris on all questions, and one whose judge keeps Nice."""
    first, _ = finished_run(folder, out=folder / "finds", selector=judging(2), **options)
    second, _ = finished_run(folder, out=folder / "keeps", selector=judging(0), **options)
    return first, second


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    return two_runs(tmp_path, n=9)


def compare(*runs: object, **options: Any) -> Any:
    return compare_runs(named_runs(map(str, runs)), **options)


def against(*runs: object, **options: Any) -> Any:
    """The contrast of the second of two runs with the first, on their one pool."""
    (pool,) = compare(*runs, **options)["pools"].values()
    return pool["runs"][str(runs[1])]["contrast"]


def policy(folder: Path, name: str, right: Sequence[int], n: int = 12, skip: int = -1, **changes: Any) -> str:
    """A run on a policy's pool of one candidate a question; returns the argument that names it."""
    rows = [row(number, answers=("Paris" if number in right else "Nice",), **changes) for number in range(n)]
    rows = [one | ({"gold": []} if number == skip else {}) for number, one in enumerate(rows)]
    (folder / name).mkdir()
    run, _ = finished_run(folder / name, rows=rows, rules=("first",))
    return f"{name}={run}"


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three policies that answer other ones of twelve questions rightly."""
    folder = tmp_path_factory.mktemp("policies")
    right: Mapping[str, Sequence[int]] = {"full": range(8), "grpo": range(2, 9), "logic": range(4)}
    return [policy(folder, name, of) for name, of in right.items()]


def test_wins_and_losses_are_by_question(runs: tuple[Path, Path]) -> None:
    keeps, finds = runs[1], runs[0]
    (pool,) = compare(keeps, finds)["pools"].values()
    one, expected = against(keeps, finds), from_counts(9, 6, 3, unit=100)
    assert (pool["n"], pool["n_scored"], [of["differ"] for of in pool["runs"].values()]) == (9, 9, [None, 9])
    assert (one["wins"], one["losses"], one["p"], one["p_holm"]) == (6, 3, expected.p, expected.p)
    assert one["delta"] == one["f1"]["delta"] == pytest.approx(expected.delta)
    assert one["ci"] == pytest.approx(list(expected.interval))
    assert [scores["em"] for scores in pool["runs"].values()] == pytest.approx([100 * 3 / 9, 100 * 6 / 9])
    back = against(finds, keeps)  # all signs change
    assert (back["wins"], back["losses"], back["p"], back["delta"]) == (3, 6, one["p"], -one["delta"])
    assert one["ci"] == pytest.approx([-end for end in back["ci"][::-1]])
    result = compare(f"a={keeps}", f"b={keeps}", rule="majority")  # and a run differs from itself in nothing
    (same,) = result["pools"].values()
    assert [run["differences"] for run in result["runs"].values()] == [[], []]
    assert (same["runs"]["b"]["differ"], same["runs"]["b"]["contrast"]["wins"]) == (0, 0)


def test_p_is_adjusted_for_all_pools_and_all_runs(tmp_path: Path, policies: list[str]) -> None:
    write_pool(tmp_path / "more.jsonl", make_rows(12))
    runs = (tmp_path / "finds", tmp_path / "keeps")
    for out, preferred in zip(runs, (2, 0), strict=True):
        pools = [write_pool(tmp_path / "capitals.jsonl", make_rows(9)), tmp_path / "more.jsonl"]
        evaluate(judging(preferred), Plan(pools, out))
    contrasts = [pool["runs"][str(runs[1])]["contrast"] for pool in compare(*runs)["pools"].values()]
    assert [one["p_holm"] for one in contrasts] == list(holm([one["p"] for one in contrasts]))
    assert contrasts[1]["p_holm"] > contrasts[1]["p"]
    (pool,) = compare(*policies, rule="first")["pools"].values()
    first, *family = [of["contrast"] for of in pool["runs"].values()]
    assert first is None
    assert [one["p_holm"] for one in family] == list(holm([one["p"] for one in family]))


def test_policies_of_other_candidates_are_paired(policies: list[str], tmp_path: Path, eldgr: Eldgr) -> None:
    (pool,) = compare(*policies, rule="first")["pools"].values()
    one = pool["runs"]["grpo"]["contrast"]
    assert (pool["task"], pool["n"], one["wins"], one["losses"]) == ("retrieval", 12, 1, 2)
    assert [one["em"] for one in pool["runs"].values()] == pytest.approx([800 / 12, 700 / 12, 400 / 12])
    assert pool["remarks"][0].startswith("The pools differ in their candidates or evidence, and so may the answers")
    message = "With so few discordant questions no split is significant at 0.05: grpo (3), logic (4)."
    assert message in " ".join(eldgr("compare", *policies, "--rule", "first").out.split())
    rows = [row(number, answers=("Paris" if number in range(2, 9) else "Nice",)) for number in reversed(range(12))]
    reverse, _ = finished_run(tmp_path, rows=rows, rules=("first",))  # by id, and not by place
    again = compare(policies[0], f"grpo={reverse}", rule="first")["pools"]["capitals"]["runs"]["grpo"]["contrast"]
    assert again == compare(*policies[:2], rule="first")["pools"]["capitals"]["runs"]["grpo"]["contrast"]


def test_a_question_that_stands_several_times_counts_once(tmp_path: Path) -> None:
    rows = [{**one, "question": f"Which {number // 2}?"} for number, one in enumerate(make_rows(8))]
    one, other = two_runs(tmp_path, rows=rows)
    result = against(one, other)
    assert result["wins"] + result["losses"] <= 4
    message = "8 questions have 4 different texts: a repeated text counts once in Δ and p."
    assert message in compare(one, other)["pools"]["capitals"]["remarks"]


def test_different_settings_and_models_are_shown_as_what_they_are(tmp_path: Path) -> None:
    one, _ = finished_run(tmp_path, out=tmp_path / "a", selector=judging(2))
    other, _ = finished_run(tmp_path, out=tmp_path / "b", selector=heuristic_selector(preference="stratum"))
    first, second = compare(one, other)["runs"].values()
    roles = '"eldgr_dspy.programs.roles.Judge" -> "eldgr_dspy.programs.heuristics.LexicalJudge"'
    differences = {'rule: preference: "global" -> "stratum"', f"judge: module: {roles}"}
    assert first["differences"] == [] and differences <= {*second["differences"]}
    assert (first["models"]["judge"], second["models"]["judge"]) == ("scripted/lm", "none")
    named, _ = finished_run(tmp_path, out=tmp_path / "c", judges={"x": judging(2).judge})
    models = compare(one, named, rule="first")["runs"][str(named)]["models"]
    assert models == {"judge[x]": "scripted/lm", "deriver": "not asked", "repairer": "not asked"}


@each_case("commands", "other spellings")
def test_other_spellings_are_no_difference(tmp_path: Path, changes: Any, was: str, becomes: str, differ: Any) -> None:
    one, other = (finished_run(tmp_path, rows=[row(0, **changes)], out=tmp_path / name)[0] for name in "ab")
    decisions = other / "decisions.jsonl"
    decisions.write_text(decisions.read_text().replace(f'"answer": "{was}"', f'"answer": "{becomes}"'))
    assert compare(one, other)["pools"]["capitals"]["runs"][str(other)]["differ"] is differ


def test_questions_without_gold_answers_are_left_out_of_all_and_counted(tmp_path: Path) -> None:
    runs = [policy(tmp_path, name, range(right), n=6, skip=5) for name, right in (("full", 4), ("grpo", 2))]
    pool = compare(*runs, rule="first")["pools"]["capitals"]
    one = pool["runs"]["grpo"]["contrast"]
    assert (one["wins"], one["losses"], one["delta"]) == (0, 2, pytest.approx(-40))
    assert pool["remarks"][0] == "Scores are over the 5 questions that have a gold answer, of 6."


def test_the_tables_show_scores_contrasts_cost_and_settings(runs: tuple[Path, Path], eldgr: Eldgr) -> None:
    out, _ = eldgr("compare", *runs)
    assert f"{difference(against(*runs))} │" in out and lacking(out, "lines of a comparison") == []
    assert json.loads(eldgr("compare", *runs, "--json").out) == compare(*runs)
    result = compare(*runs)["runs"]  # after a judge that keeps consensus, the repairer is asked
    assert f"repairer: asked only by {runs[1]}" in result[str(runs[1])]["differences"]
    assert [run["models"]["repairer"] for run in result.values()] == ["not asked", "scripted/lm"]
    assert [run["consultations"]["calls"] for run in result.values()] == [9, 18]


def test_of_recordings_it_does_not_say_that_they_are_the_same(tmp_path: Path, eldgr: Eldgr) -> None:
    live, _ = finished_run(tmp_path)
    replay, _ = finished_run(tmp_path, out=tmp_path / "played", replay=live / "journal.jsonl")
    message = "Recorded replies are not compared: a recording does not say what made it."
    for other, expected in ((live, False), (replay, True)):
        assert (message in eldgr("compare", live, f"other={other}").out) is expected


def test_without_gold_answers_it_is_said_how_often_another_answer_ships(tmp_path: Path, eldgr: Eldgr) -> None:
    one, other = two_runs(tmp_path, rows=[row(number, gold=[]) for number in range(4)])
    out, _ = eldgr("compare", f"a={one}", f"b={other}")
    assert "—: no question has a gold answer, so nothing is scored." in out and "other answers" in out
    pool = compare(one, other)["pools"]["capitals"]
    assert (pool["runs"][str(other)]["contrast"], pool["runs"][str(other)]["differ"]) == (None, 4)


@pytest.mark.parametrize("command", ["compare", "export", "report", "decide"])
def test_a_run_of_another_version_is_read_and_said_to_be_one(tmp_path: Path, eldgr: Eldgr, command: str) -> None:
    run, _ = finished_run(tmp_path)
    journal = run / "journal.jsonl"
    journal.write_text(unseal(journal.read_text()).replace('"eldgr_dspy": "0.1.0"', '"eldgr_dspy": "0.0.7"'))
    out, rules = ["--out", str(tmp_path / "d.csv")], ["--rules", "eldgr"]
    more = {"compare": [f"again={run}"], "export": out, "decide": rules}.get(command, [])
    message = f"Note: {run} was made by eldgr_dspy 0.0.7; this is 0.1.0, which may decide otherwise.\n"
    assert eldgr(command, run, *more).err.count(message) == 1


@each_case("commands", "runs on other questions")
def test_other_questions_are_named(policies: list[str], tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    other = policy(tmp_path, "other", range(3), **changes)
    sentence = refusal(lambda: compare(policies[0], other, rule="first"))
    assert sentence.replace(policies[0], "full").replace(other, "other") == message


def test_pools_of_other_names_are_compared_if_each_run_has_one(tmp_path: Path) -> None:
    one, _ = finished_run(tmp_path, n=4, out=tmp_path / "a")
    towns = write_pool(tmp_path / "towns.jsonl", make_rows(4))
    both = tmp_path / "b"
    evaluate(heuristic_selector(), Plan([tmp_path / "capitals.jsonl", towns], both))
    message = "The runs have different pools (...a: capitals; ...b: capitals, towns)..."
    assert says(message, refusal(lambda: compare(one, both)))
    assert list(compare(one, f"{both}:towns")["pools"]) == ["capitals"]
