"""Policies against policies: paired by question, refused where questions differ, with the paper's figures beside."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.comparisons.ablation import ablate
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.statistics import contrast_from_counts, holm
from eldgr_dspy.tables.ablation import ablation_tables
from tests.capitals import row
from tests.finished_runs import finished_run

RIGHT: Mapping[str, Sequence[int]] = {"full": range(8), "grpo": range(2, 9), "logic": range(4)}
"""Which of twelve questions each policy answers rightly."""


def policy(folder: Path, name: str, right: Sequence[int], n: int = 12, **changes: Any) -> str:
    """A run on a policy's pool of one candidate a question; returns the argument that names it."""
    rows = [row(number, answers=("Paris" if number in right else "Nice",), **changes) for number in range(n)]
    (folder / name).mkdir()
    run, _ = finished_run(folder / name, rows=rows, rules=("first",))
    return f"{name}={run}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("policies")
    return [policy(folder, name, right) for name, right in RIGHT.items()]


def test_each_row_is_scored_and_set_against_full_and_grpo(made: list[str]) -> None:
    found = ablate(made)
    assert (found["rule"], found["task"], found["n"], found["n_scored"]) == ("first", "retrieval", 12, 12)
    assert [one["em"] for one in found["runs"].values()] == pytest.approx([800 / 12, 700 / 12, 400 / 12])
    assert {name: list(rows) for name, rows in found["contrasts"].items()} == {
        "full": ["grpo", "logic"],
        "grpo": ["full", "logic"],
    }


@pytest.mark.parametrize(("name", "against", "wins", "losses"), [("grpo", "full", 1, 2), ("logic", "grpo", 2, 5)])
def test_a_contrast_is_that_of_its_wins_and_losses(
    made: list[str], name: str, against: str, wins: int, losses: int
) -> None:
    one, expected = ablate(made)["contrasts"][against][name], contrast_from_counts(12, wins, losses, unit=100)
    assert (one["wins"], one["losses"], one["p"]) == (wins, losses, expected.p)
    assert one["delta"] == pytest.approx(expected.delta)
    assert one["ci"] == pytest.approx(list(expected.interval))
    graded = one["f1"]  # an answer here is right or shares no word
    assert graded and graded["delta"] == pytest.approx(expected.delta)
    assert one["notes"] == list(expected.notes)


def test_holms_p_is_within_what_is_set_against_the_same_run(made: list[str]) -> None:
    for family in ablate(made)["contrasts"].values():
        expected = holm([one["p"] for one in family.values()])
        assert [one["p_holm"] for one in family.values()] == list(expected)


def test_the_other_way_round_all_signs_change(made: list[str]) -> None:
    found = ablate(made)["contrasts"]
    there, back = found["full"]["grpo"], found["grpo"]["full"]
    assert (there["wins"], there["losses"], there["p"]) == (back["losses"], back["wins"], back["p"])
    assert there["delta"] == -back["delta"]


def test_what_the_paper_prints_stands_beside_its_own_names_alone(made: list[str]) -> None:
    renamed = [*made[:2], made[2].replace("logic=", "mine=")]
    found = ablate(renamed)
    assert found["runs"]["full"]["published"] == {"em": 19.0, "f1": 28.62}
    assert found["contrasts"]["full"]["grpo"]["published"] == -1
    assert found["runs"]["mine"]["published"] is None
    assert found["contrasts"]["full"]["mine"]["published"] is None
    table = next(ablation_tables(found))
    assert table.rows[1][:4] == ("grpo", "58.33 / 58.33", "18 / 27.99", "-8.33")
    assert table.rows[2] == ("mine", "33.33 / 33.33", "—", "-33.33", "—", "-25.00", "—")


def test_no_name_of_the_paper_is_needed_and_then_nothing_stands_beside(made: list[str]) -> None:
    found = ablate([made[0].replace("full=", "a="), made[1].replace("grpo=", "b=")], against=["b", "b"])
    scores, against = ablation_tables(found)
    assert scores.headers == ("policy", "EM / F1 %", "Δ b")
    assert against.title == "against b: 12 questions"
    assert list(found["contrasts"]) == ["b"]
    assert not any("paper" in note for table in (scores, against) for note in table.notes)


def test_arithmetic_has_the_range_that_the_paper_calls_a_failure(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"task": "arithmetic", "evidence": [], "gold": ["Paris"]}
    found = ablate([policy(tmp_path, name, range(3), n=4, **changes) for name in ("full", "logic", "grpo")])
    table = next(ablation_tables(found))
    assert table.headers[:3] == ("policy", "accuracy %", "accuracy %, paper")
    assert [row[2] for row in table.rows] == ["55.6", "44.6 to 47.4", "—"]
    assert found["contrasts"]["full"]["logic"]["f1"] is None


def test_it_is_said_where_no_split_could_have_been_significant(made: list[str]) -> None:
    _, against_full, against_grpo = ablation_tables(ablate(made))
    assert (
        "With so few discordant questions no split is significant at 0.05: grpo (3), logic (4)." in against_full.notes
    )
    assert "With so few discordant questions no split is significant at 0.05: full (3)." in against_grpo.notes
    assert "paper: every exact p against full is 1.0." in against_full.notes
    assert "paper: every exact p against full is 1.0." not in against_grpo.notes


def test_questions_are_paired_by_id_and_not_by_place(made: list[str], tmp_path: Path) -> None:
    rows = [row(number, answers=("Paris" if number in RIGHT["grpo"] else "Nice",)) for number in reversed(range(12))]
    turned, _ = finished_run(tmp_path, rows=rows, rules=("first",))
    there, here = (ablate([made[0], one])["contrasts"]["full"]["grpo"] for one in (made[1], f"grpo={turned}"))
    assert here == there


def test_the_tables_follow_from_the_json_alone(made: list[str]) -> None:
    found = ablate(made)
    assert list(ablation_tables(json.loads(json.dumps(found)))) == list(ablation_tables(found))


# -- what is remarked -------------------------------------------------------------------------------------------------


def test_questions_without_gold_answers_are_left_out_of_all_and_counted(tmp_path: Path) -> None:
    runs = []
    for name, right in (("full", range(4)), ("grpo", range(2))):
        rows = [
            row(n, answers=("Paris" if n in right else "Nice",), gold=["Paris"] if n != 5 else []) for n in range(6)
        ]
        (tmp_path / name).mkdir()
        runs.append(f"{name}={finished_run(tmp_path / name, rows=rows, rules=('first',))[0]}")
    found = ablate(runs)
    assert (found["contrasts"]["full"]["grpo"]["wins"], found["contrasts"]["full"]["grpo"]["losses"]) == (0, 2)
    assert found["contrasts"]["full"]["grpo"]["delta"] == pytest.approx(-40)
    assert found["remarks"] == ["Scores are over the 5 questions that have a gold answer, of 6."]


def test_the_same_pool_twice_is_said(made: list[str]) -> None:
    found = ablate([made[0], made[0].replace("full=", "grpo=")])
    assert found["remarks"] == ["full, grpo: the same pool, so a difference between them is not a policy's."]


def test_a_rule_that_goes_by_roles_says_where_the_runs_differ_in_them(tmp_path: Path) -> None:
    runs = []
    for name, certificate in (("full", "folded"), ("grpo", "token")):
        (tmp_path / name).mkdir()
        run, _ = finished_run(tmp_path / name, selector=heuristic_selector(certificate=certificate))
        runs.append(f"{name}={run}")
    found = ablate(runs, rule="eldgr")
    assert found["remarks"][1] == (
        "The runs differ in the settings of the rule, which rule 'eldgr' uses: a difference is not only the policy's."
    )
    assert "The paper's figures are of what a policy itself answers, and not of rule 'eldgr'." in (
        next(ablation_tables(found)).notes
    )
    assert len(ablate(runs)["remarks"]) == 1  # the first candidate goes by no setting


# -- what is refused --------------------------------------------------------------------------------------------------


def test_fewer_than_two_runs_are_no_ablation(made: list[str]) -> None:
    with pytest.raises(
        ArgumentError, match=r"An ablation needs two or more runs; got 0\. Give them as full=RUN grpo=RUN\."
    ):
        ablate([])
    with pytest.raises(ArgumentError, match=r"An ablation needs two or more runs; got 1"):
        ablate(made[:1])


def test_something_has_to_be_set_against(made: list[str]) -> None:
    renamed = [made[0].replace("full=", "a="), made[1].replace("grpo=", "b=")]
    with pytest.raises(ArgumentError, match=r"No run is named full or grpo\. .*: a, b\."):
        ablate(renamed)
    with pytest.raises(ArgumentError, match=r"against must be one of a, b; got 'c'\."):
        ablate(renamed, against=["c"])


def test_a_question_that_one_run_lacks_is_named(made: list[str], tmp_path: Path) -> None:
    short = policy(tmp_path, "grpo", range(3), n=8)
    said = r"4 questions of full=.* are not in grpo=.*: 'q8', 'q9', 'q10', \.\.\.; give runs on the same questions"
    with pytest.raises(ArgumentError, match=said):
        ablate([made[0], short])
    with pytest.raises(ArgumentError, match=r"4 questions of full=.* are not in grpo="):
        ablate([short, made[0]])
    shorter = policy(tmp_path, "logic", range(3), n=11)
    with pytest.raises(ArgumentError, match=r"1 question of full=.* is not in logic=.*: 'q11'; give"):
        ablate([made[0], shorter])


def test_another_gold_answer_is_named(made: list[str], tmp_path: Path) -> None:
    other = policy(tmp_path, "grpo", range(3), gold=["Paris", "Lyon"])
    said = r"Question 'q0' has gold answers \['Paris'\] in full=.* and \['Lyon', 'Paris'\] in grpo=.*; give pools with"
    with pytest.raises(ArgumentError, match=said):
        ablate([made[0], other])


def test_the_order_of_gold_answers_does_not_matter(tmp_path: Path) -> None:
    runs = [
        policy(tmp_path, name, range(3), n=4, gold=gold)
        for name, gold in (("full", ["Paris", "Lyon"]), ("grpo", ["Lyon", "Paris"]))
    ]
    assert ablate(runs)["n"] == 4


def test_another_task_is_refused(tmp_path: Path) -> None:
    runs = [policy(tmp_path, "full", range(2), n=3)]
    runs.append(policy(tmp_path, "grpo", range(2), n=3, task="arithmetic", evidence=[]))
    with pytest.raises(ArgumentError, match=r"full=.* is retrieval and grpo=.* is arithmetic; give runs on one set"):
        ablate(runs)


def test_a_rule_without_a_result_is_refused(made: list[str]) -> None:
    said = r"full=.* has no result of rule 'eldgr' on pool 'capitals': it was not among the rules; use one of first\."
    with pytest.raises(ArgumentError, match=said):
        ablate(made, rule="eldgr")


def test_a_run_that_is_not_finished_and_a_name_given_twice_are_refused(made: list[str], tmp_path: Path) -> None:
    run = shutil.copytree(made[1].partition("=")[2], tmp_path / "run")
    (run / "summary.json").unlink()
    with pytest.raises(ArgumentError, match=r"has no summary\.json: the run is not finished"):
        ablate([made[0], f"grpo={run}"])
    with pytest.raises(ArgumentError, match=r"'full' is given already, as full="):
        ablate([made[0], made[0]])
