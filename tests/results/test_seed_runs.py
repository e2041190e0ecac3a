"""Runs of several seeds: a run is a seed, a question is a cluster, and what cannot be taken apart is refused."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eldgr_dspy.comparisons.compared_runs import over_seeds
from eldgr_dspy.comparisons.named_runs import named_runs
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.commands import main
from eldgr_dspy.statistics import seed_variance
from tests.capitals import row
from tests.finished_runs import finished_run
from tests.listed_contrasts import by_cluster

FIRST_RIGHT: Sequence[Sequence[int]] = (range(8), range(6), range(4, 9))
"""On which of twelve questions the first candidate of each seed is right; the other two are right on the even ones."""


def seed(folder: Path, right: Sequence[int], n: int = 12, **changes: Any) -> str:
    """A run on the pool of one seed of sampling."""
    folder.mkdir()
    rows = [
        row(at, answers=("Paris" if at in right else "Nice", *["Lyon" if at % 2 else "Paris"] * 2), **changes)
        for at in range(n)
    ]
    run, _ = finished_run(folder, rows=rows, rules=("first", "majority"))
    return str(run)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("seeds")
    return [seed(folder / f"{number}", right) for number, right in enumerate(FIRST_RIGHT)]


def over(runs: Sequence[str]) -> Any:
    return over_seeds(named_runs(runs), rule="first", against="majority")


def scored() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What each seed scores on each question, by the first candidate and by majority."""
    first = [[100.0 * (number in right) for number in range(12)] for right in FIRST_RIGHT]
    return np.array(first), np.array([[100.0 * (number % 2 == 0) for number in range(12)]] * 3)


def test_each_seed_has_its_own_row(made: list[str]) -> None:
    result = over(made)
    assert (result["rule"], result["against"], result["n"], result["n_scored"]) == ("first", "majority", 12, 12)
    expected = [pytest.approx([800 / 12, 50]), pytest.approx([50, 50]), pytest.approx([500 / 12, 50])]
    assert [one["em"] for one in result["runs"]] == expected
    assert [(one["wins"], one["losses"]) for one in result["runs"]] == [(4, 2), (3, 3), (2, 3)]
    assert len({one["sha256"] for one in result["runs"]}) == 3


def test_the_spread_is_taken_apart_by_seeds_and_questions(made: list[str]) -> None:
    first, majority = scored()
    for name, table in (("rule", first), ("against", majority), ("difference", first - majority)):
        one, expected = over(made)["variance"]["em"][name], seed_variance(table)
        assert asdict(one) == {
            part: pytest.approx(value) if isinstance(value, float) else value
            for part, value in asdict(expected).items()
        }


def test_a_question_with_all_its_seeds_is_one_unit_of_the_contrast(made: list[str]) -> None:
    first, majority = scored()
    result, expected = over(made)["contrast"], by_cluster(first.ravel(), majority.ravel(), [*range(12)] * 3)
    assert (result["wins"], result["losses"], result["p"]) == (expected.wins, expected.losses, expected.p)
    assert result["wins"] + result["losses"] <= 12
    assert result["delta"] == pytest.approx(expected.delta)
    assert result["ci"] == pytest.approx(list(expected.interval))
    assert result["f1"]["delta"] == pytest.approx(expected.delta)  # an answer here is right or shares no word


def test_that_all_runs_are_on_one_pool_is_said(made: list[str], tmp_path: Path) -> None:
    again = seed(tmp_path / "again", FIRST_RIGHT[0])
    few = "2 seeds say little about other seeds, so the interval over seeds is wide."
    assert over([made[0], again])["remarks"] == [
        "All runs are on one pool: the seeds are those of the roles; the results are only for these candidates.",
        few,
    ]
    assert over(made[:2])["remarks"] == [few]
    assert over([*made, again])["remarks"][0] == (
        "Some of the runs are on the same pool: its candidates count as several seeds."
    )


def test_rows_of_one_text_are_one_question_of_the_contrast_and_of_the_spread(tmp_path: Path) -> None:
    right, runs = ((0, 1, 2), (0, 4)), list[str]()
    for name, first in zip("ab", right, strict=True):
        answers = [["Paris" if at in first else "Nice", *["Lyon" if at % 2 else "Paris"] * 2] for at in range(6)]
        rows = [row(at, answers=answers[at], question=f"Which {at // 2}?") for at in range(6)]
        runs.append(str(finished_run(tmp_path, rows=rows, rules=("first", "majority"), out=tmp_path / name)[0]))
    result = over(runs)
    assert result["contrast"]["wins"] + result["contrast"]["losses"] <= 3
    assert result["remarks"][0] == ("6 questions have 3 different texts: a repeated text counts once in Δ and p.")
    spread, expected = result["variance"]["em"]["rule"], seed_variance([[100, 50, 0], [50, 0, 50]])
    assert spread == expected


def test_what_are_no_seeds_of_the_same_questions_is_refused(made: list[str], tmp_path: Path) -> None:
    shorter, other_gold = seed(tmp_path / "short", (), n=9), seed(tmp_path / "gold", (), gold=["Rome"])
    other_text = seed(tmp_path / "text", (), question="Which?")
    for runs, message in (
        (made[:1], r"A comparison of seeds needs two or more runs; got 1\. Give one run a seed\."),
        ([made[0], f"b={made[0]}"], r"b=.* is the same run as .*; a run is one seed: give each once\."),
        ([made[0], shorter], r"3 questions of .* are not in .*: 'q9', 'q10', 'q11'; give runs on the same"),
        (
            [made[0], other_text],
            r"Question 'q0' is 'what is .* 0\?' in .* and 'which\?' in .*; give pools with the same",
        ),
        ([made[0], other_gold], r"Question 'q0' has gold answers \['Paris'\] in .* and \['Rome'\] in "),
    ):
        with pytest.raises(ArgumentError, match=message):
            over(runs)
    with pytest.raises(ArgumentError, match="rule='first' and against='first' are the same; give two rules"):
        over_seeds(named_runs(made), rule="first", against="first")
    with pytest.raises(ArgumentError, match="has no result of rule 'eldgr' on pool 'capitals': it was not among"):
        over_seeds(named_runs(made))


@pytest.mark.parametrize("n", [1, 6])
def test_one_question_has_no_spread_nor_have_its_copies(n: int, tmp_path: Path) -> None:
    runs = [seed(tmp_path / name, (0,), n=n, question="Which?") for name in "ab"]
    with pytest.raises(ArgumentError, match="1 question with a gold answer, copies aside; give runs on two or more"):
        over(runs)


def test_the_command_prints_three_tables_or_the_figures(made: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rules = ["--rule", "first", "--seeds", "majority"]
    assert main(["compare", *made, *rules]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for said in (
        "first against majority, 3 seeds, 12 questions",
        "whose the spread is, in percentage points",
        "over questions, these seeds",
        "The interval is for another draw of both seeds and questions. A variance below 0 means that none was seen.",
        "A question counts once, with the mean of its seeds; the result is for these seeds only.",
    ):
        assert said in out
    assert main(["compare", *made, *rules, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(over(made), default=asdict))
