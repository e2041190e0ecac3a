"""The paper beside runs: figures of the run's own summary, sentences that follow from the run, dashes where none is."""

import json
import shutil
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paper import paper_tables as paper
from benchmarks.paper.comparability import comparable, not_comparable
from benchmarks.paper.paper_runs import runs_here
from benchmarks.paper.published import PUBLISHED
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm
from eldgr_dspy.tables.table import Table
from tests.capitals import NO_SPAN, VERDICT, row, write_pool
from tests.finished_runs import finished_run, numbered


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on nine retrieval questions of three candidates, by the heuristic roles."""
    return finished_run(tmp_path_factory.mktemp("made"), n=9)[0]


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def summary_of(run: Path) -> Any:
    figures: Any = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return figures


def change(run: Path, **figures: Any) -> None:
    summary = summary_of(run)
    summary["pools"]["capitals"].update(figures)
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")


def here(run: Path, name: str = "hotpotqa") -> Any:
    return runs_here([f"{name}={run}"])[name]


def tables_by_title(*runs: str) -> dict[str, Table]:
    return {table.title.partition(" (")[0]: table for table in paper.paper_tables(runs_here(runs))}


def test_without_a_run_the_paper_stands_alone() -> None:
    tables = tables_by_title()
    assert tables["GSM8K"].rows[0] == ("First candidate", "55.4", "—", "+2.80 [1.20, 4.60]", "—", ".0026", "—")
    assert tables["HotpotQA"].rows[-1] == ("EL-DGR", "17.33 / 25.46", "—", "", "", "", "")
    assert tables["HotpotQA, confirmation"].rows[1][1::2] == ("20.0 / 22.07", "-6.7 [-16.7, 0.0]", ".500")
    assert tables["decision audit"].rows[0] == ("majority answer returned", "22 (73.3)")
    assert tables["cost"].rows[2] == ("HotpotQA, confirmation", "1.77", "—", "2.91", "—", "4.68", "—", "—", "—")
    assert tables["channel drops, corrected, HotpotQA"].rows[2] == ("without logic", "18 / 27.65", "-1", "0")
    assert tables["channel drops, legacy, GSM8K"].rows[1] == ("channel drops", "44.6 to 47.4")


def test_the_contrasts_computed_again_say_where_an_interval_is_a_question_apart() -> None:
    table = tables_by_title()["the published contrasts, computed again from their counts"]
    assert len(table.rows) == 9
    assert table.rows[0][1:4] == ("500", "17–3*", "+2.80")
    assert [row[0] for row in table.rows if row[-1] != "0 and 0"] == ["GSM8K: majority"]
    assert table.rows[1][-1] == "0 and 1/500"
    assert table.notes[0] == "Every Δ and every p is what is printed, to its last digit."


def test_a_contrast_that_did_not_agree_would_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hotpotqa = PUBLISHED["hotpotqa"]
    leads = {**hotpotqa.leads, "first": replace(hotpotqa.leads["first"], p=Decimal(".0704"))}
    monkeypatch.setattr(paper, "PUBLISHED", {**PUBLISHED, "hotpotqa": replace(hotpotqa, leads=leads)})
    table = tables_by_title()["the published contrasts, computed again from their counts"]
    assert table.notes[0] == "Δ or p is not what is printed: hotpotqa first."


def test_what_is_here_is_what_the_run_counted(run: Path) -> None:
    figures, pool = here(run), summary_of(run)["pools"]["capitals"]
    assert (figures["pool"], figures["n"], figures["n_scored"]) == ("capitals", 9, 9)
    assert figures["rules"] == pool["rules"]
    leads = {one["against"]: one for one in pool["contrasts"] if one["rule"] == "eldgr"}
    assert figures["leads"] == {rule: lead for rule, lead in leads.items() if rule != "certified"}
    assert list(figures["leads"]) == ["first", "majority", "judge"]
    assert figures["audit"]["judge_overrides"] == pool["audit"]["judge_overrides"]
    assert figures["homogeneous"] == 0


def test_seconds_and_calls_are_those_of_the_journal_on_the_pools_questions(tmp_path: Path) -> None:
    selector = Selector()
    selector.set_lm(scripted_lm(lambda request: VERDICT if role_of(request) == "judge" else NO_SPAN))
    run, _ = finished_run(tmp_path, n=6, selector=selector)
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    consultations = [line for line in lines if line["kind"] == "consultation"]
    figures = here(run)
    assert figures["roles"]["judge"]["calls"] == figures["roles"]["judge"]["consultations"] == 6
    assert figures["roles"]["judge"]["models"] == ["scripted/lm"]
    assert figures["seconds"]["both"] == pytest.approx(sum(line["seconds"] for line in consultations) / 6)
    assert figures["seconds"]["judge"] + figures["seconds"]["verifier"] == pytest.approx(figures["seconds"]["both"])


def test_questions_that_were_asked_and_are_not_decided_take_no_time(tmp_path: Path) -> None:
    """A run is resumed with a smaller limit: its journal has more than its figures are over."""
    run, _ = finished_run(tmp_path, n=6)
    finished_run(tmp_path, n=6, limit=2)
    assert here(run)["n"] == 2
    assert here(run)["roles"]["judge"]["consultations"] == 2


def test_of_recordings_no_seconds_are_said(tmp_path: Path) -> None:
    asked, _ = finished_run(tmp_path)
    played, _ = finished_run(tmp_path, out=tmp_path / "played", replay=asked / "journal.jsonl")
    figures = here(played)
    assert figures["seconds"] == {"judge": None, "verifier": 0.0, "both": None}
    replies = list(not_comparable(figures, PUBLISHED["hotpotqa"]))
    recorded = "the judge's replies are recorded, and a recording does not say what made it; the paper's judge is"
    assert any(recorded in one for one in replies)
    figures["roles"]["judge"]["recorded"] = 4
    assert any("4 of 6 consultations of the judge were recorded" in one for one in sentences(figures).split("\n"))


def test_a_module_of_ones_own_is_not_said_to_ask_no_lm(made: Path) -> None:
    result = deepcopy(here(made))
    result["roles"]["judge"]["module"] = "mine.Judge"
    assert "the judge is Judge, and no LM call of it was counted; the paper's judge is" in sentences(result)


@pytest.mark.parametrize(
    ("abstained", "message"),
    [
        (0, None),
        (2, "\nThe judge abstained on 2 of 9 questions."),
        (9, "Not comparable: the judge abstained on all 9 questions, so no rule used its replies."),
    ],
)
def test_silence_is_said(made: Path, abstained: int, message: str | None) -> None:
    result = deepcopy(here(made))
    result["roles"]["judge"]["abstained"] = abstained
    assert "abstained" not in sentences(result) if message is None else message in sentences(result)


def test_every_column_of_the_paper_has_one_of_here_beside_it(run: Path) -> None:
    tables = tables_by_title(f"hotpotqa={run}")
    table = tables["HotpotQA"]
    assert table.headers[1:3] == ("EM / F1 %, paper", "EM / F1 %, here")
    assert table.rows[1][1:3] == ("15.33 / 23.19", "33.33 / 33.33")
    assert table.title == "HotpotQA (tab:main_results): 300 questions in the paper, 9 of capitals here"
    assert tables["GSM8K"].rows[0][2::2] == ("—", "—", "—")
    assert "—: no run was given for it; give gsm8k=RUN." in tables["GSM8K"].notes
    assert tables["decision audit"].headers == ("decision of EL-DGR", "paper, 30 questions", "hotpotqa, here")
    assert (
        "hotpotqa: no LM call was counted, so that its seconds say nothing of the cost of one." in tables["cost"].notes
    )
    assert {len(row) for table in tables.values() for row in table.rows} == {
        len(table.headers) for table in tables.values() for _ in table.rows
    }


def test_the_confirmation_has_its_differences_the_other_way_round_as_the_paper_prints_them(run: Path) -> None:
    as_main, turned = (
        {row[0]: row for row in tables_by_title(f"{name}={run}")[title].rows}
        for name, title in (("hotpotqa", "HotpotQA"), ("confirmation", "HotpotQA, confirmation"))
    )
    lead = here(run)["leads"]["majority"]
    low, high = lead["ci"]
    assert as_main["Majority vote"][4] == f"+{lead['delta']:.2f} [{low:.2f}, {high:.2f}]"
    assert turned["Majority vote"][4] == f"{-lead['delta']:.2f} [{-high:.2f}, {-low:.2f}]"


def test_what_follows_from_the_run_is_said(run: Path) -> None:
    figures = here(run)
    expected = ["Comparable: the rules are the paper's, a", "Comparable: the statistics are the paper"]
    assert [one[:40] for one in comparable(figures, PUBLISHED["hotpotqa"])] == expected
    message = "\n".join(not_comparable(figures, PUBLISHED["hotpotqa"]))
    assert "9 questions of pool 'capitals', and 300 of HotpotQA in the paper" in message
    assert "3 candidates a question, and four in the paper" in message
    assert "the judge is LexicalJudge, which asks no LM; the paper's judge is deepseek-r1:7b, by Ollama" in message
    assert "the repairer was never asked; the paper does not name its verifier's model" in message
    assert "the certificate is 'folded', and verbatim occurrence in the paper (--certificate substring)" in message


def sentences(result: Any, name: str = "hotpotqa") -> str:
    return "\n".join([*comparable(result, PUBLISHED[name]), *not_comparable(result, PUBLISHED[name])])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"candidates": {"fewest": 4, "most": 4}}, "Comparable: four candidates a question.", id="four"),
        pytest.param({"candidates": {"fewest": 2, "most": 4}}, "2 to 4 candidates a question", id="two to four"),
        pytest.param({"n_scored": 300, "n": 300}, "a run cannot tell whether they are the same", id="same n"),
        pytest.param({"n_scored": 7}, "Scores are over the 7 questions that have a gold answer, of 9.", id="gold"),
        pytest.param({"n_failed": 2}, "2 questions had a failed call", id="failed"),
        pytest.param(
            {"withheld": {"judge": {"judge": 3}}},
            "Scalar judge has no result here: the judge was never asked on 3 questions where this rule needs it.",
            id="withheld",
        ),
        pytest.param({"rules": {}}, "EL-DGR has no result here: eldgr was not among the rules of the run.", id="none"),
        pytest.param({"roles": {}}, "the judge was never asked; the paper's judge is", id="never asked"),
        pytest.param({"remarks": ["Another answered."]}, "Another answered.", id="remark"),
    ],
)
def test_each_thing_that_matters_has_its_sentence(made: Path, changes: dict[str, Any], message: str) -> None:
    figures = here(made)
    assert message not in sentences(figures)
    assert message in sentences({**figures, **changes})


@pytest.mark.parametrize(
    ("model", "same"),
    [
        ("ollama_chat/deepseek-r1:7b", True),
        ("ollama/deepseek-r1:7b", True),
        ("ollama/deepseek-r1:14b", False),
        ("openai/gpt-4o-mini", False),
    ],
)
def test_the_papers_judge_is_known_by_its_model(made: Path, model: str, same: bool) -> None:
    result = deepcopy(here(made))
    result["roles"]["judge"]["models"] = [model]
    assert (f"Comparable: the judge was {model}, the paper's model." in sentences(result)) is same
    assert (f"Not comparable: the judge was {model}; the paper's judge" in sentences(result)) is not same


@pytest.mark.parametrize(
    ("name", "setting", "value", "message"),
    [
        ("hotpotqa", "certificate", "substring", None),
        ("hotpotqa", "certificate", "token", "the certificate is 'token'"),
        ("hotpotqa", "preference", "stratum", "the preference is 'stratum', and global in the paper's equation"),
        ("hotpotqa", "homogeneous", "skip", "pools of one class are set to 'skip'"),
        ("gsm8k", "derivation", "stated", None),
        ("gsm8k", "derivation", "traced", "derivations are checked at 'traced'"),
    ],
)
def test_settings_not_the_papers_are_told(made: Path, name: str, setting: str, value: str, message: str | None) -> None:
    figures = here(made)
    paper = {"certificate": "substring", "derivation": "stated"}
    changed = sentences({**figures, "settings": {**figures["settings"], **paper, setting: value}}, name)
    assert "(--" not in changed if message is None else message in changed


@pytest.mark.parametrize(
    ("confirmation", "message"),
    [(None, "Not comparable: the run had no freeze"), ({"lock": "ab"}, "Comparable: the run was under a freeze.")],
)
def test_only_what_was_frozen_is_a_confirmation(made: Path, confirmation: Any, message: str) -> None:
    figures = here(made, "confirmation")
    assert figures["confirmation"] is None
    assert message in sentences({**figures, "confirmation": confirmation}, "confirmation")
    assert message not in sentences({**figures, "confirmation": confirmation})


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
    capitals = write_pool(tmp_path / "capitals.jsonl", numbered(3))
    sums = write_pool(tmp_path / "sums.jsonl", [row(1, task="arithmetic", answers=("1", "2"), gold=["2"], evidence=[])])
    both = tmp_path / "a:b"  # a colon in a directory's name is part of it
    evaluate(heuristic_selector(), Plan([capitals, other, sums], both))
    assert here(both, "gsm8k")["pool"] == "sums"
    assert runs_here([f"hotpotqa={both}:towns"])["hotpotqa"]["n"] == 2
    one = r"a:b must have one scored pool of task retrieval; its pools are 'capitals' \(retrieval\), .*Say which, as"
    with pytest.raises(ArgumentError, match=one):
        here(both)
    with pytest.raises(ArgumentError, match=r"a:b has no pool 'cities'; its pools are 'capitals', 'towns'"):
        runs_here([f"hotpotqa={both}:cities"])
    with pytest.raises(ArgumentError, match=r"one scored pool of task retrieval; its pools are 'sums' \(arithmetic\)"):
        runs_here([f"hotpotqa={both}:sums"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN"], r"is not known; give NAME=RUN with one of gsm8k, hotpotqa, confirmation\."),
        (["svamp=RUN"], r"'svamp' is not known; give NAME=RUN with one of gsm8k, hotpotqa, confirmation\."),
        (["hotpotqa=RUN", "hotpotqa=RUN"], r"'hotpotqa' is given already; give each run a name, NAME=RUN\."),
        (["gsm8k=RUN"], r"must have one scored pool of task arithmetic; its pools are 'capitals' \(retrieval\)\."),
        (["hotpotqa=RUN/nowhere"], r"nowhere: no such directory; give the directory of a run"),
        (["hotpotqa=nowhere:towns"], r"nowhere:towns: no such directory"),
        (["hotpotqa=RUN/.."], r"holds no journal\.jsonl; give the directory of a run"),
    ],
)
def test_an_argument_that_names_no_run_is_refused_by_its_text(made: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        runs_here([argument.replace("RUN", str(made)) for argument in arguments])


def test_a_run_that_is_not_finished_is_refused(run: Path) -> None:
    (run / "summary.json").unlink()
    with pytest.raises(ArgumentError, match=r"has no summary\.json: the run is not finished"):
        here(run)


def test_a_run_of_another_version_is_refused(run: Path) -> None:
    summary = summary_of(run)
    del summary["pools"]["capitals"]["n_scored"]
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"is not what eldgr_dspy .* writes"):
        here(run)


def test_a_run_without_a_scored_question_is_refused(run: Path) -> None:
    change(run, n_scored=0, contrasts=[])
    with pytest.raises(ArgumentError, match="must have one scored pool of task retrieval"):
        here(run)


def test_a_run_that_lacks_decisions_is_refused(run: Path) -> None:
    lines = (run / "decisions.jsonl").read_bytes().splitlines(keepends=True)
    (run / "decisions.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(ArgumentError, match=r"has 8 decisions of rule 'eldgr' on pool 'capitals'"):
        here(run)
