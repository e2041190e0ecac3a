"""What is planned is in percent of the questions, and what is read of a finished run is checked."""

import json
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.planning import plan_ahead, read_finished, what_it_saw
from eldgr_dspy.statistics import mcnemar, mcnemar_power, questions_needed

LEVEL: dict[str, Any] = {"power": 0.8, "alpha": 0.05}


def lead(wins: int, losses: int, n: int, **changes: Any) -> dict[str, Any]:
    found = {"rule": "eldgr", "against": "majority", "wins": wins, "losses": losses, "p": mcnemar(wins, losses)}
    return {**found, "delta": 100 * (wins - losses) / n, "ci": [0, 0], **changes}


def run(folder: Path, n: int, *contrasts: dict[str, Any], **more: Any) -> Path:
    """The directory of a run whose summary has one pool."""
    pool = {"n": n, "n_scored": n, "contrasts": list(contrasts), **more}
    (folder / "summary.json").write_text(json.dumps({"pools": {"hotpot": pool}}), encoding="utf-8")
    return folder


def test_a_plan_is_in_percent() -> None:
    found = plan_ahead(2.0, 6.0, **LEVEL)
    assert found["questions"] == questions_needed(0.02, 0.06) == 1_244
    assert found["power_there"] == mcnemar_power(1_244, 0.02, 0.06) >= 0.8
    assert (found["wins"] - found["losses"], found["wins"] + found["losses"]) == pytest.approx((24.88, 74.64))


def test_a_gain_of_more_than_is_discordant_is_refused() -> None:
    with pytest.raises(ArgumentError) as caught:
        plan_ahead(8.0, 6.5, **LEVEL)
    assert str(caught.value) == (
        "gain=8 is more than discordant=6.5: wins minus losses can't be more than wins and losses together. Give both "
        "in percent of all questions."
    )


@pytest.mark.parametrize("gain", [0.0, -1.0, 101.0, float("nan")])
def test_a_gain_that_is_no_percentage_is_refused(tmp_path: Path, gain: float) -> None:
    message = f"gain={gain!r} must be above 0 and at most 100, in percent of the questions."
    with pytest.raises(ArgumentError) as caught:
        plan_ahead(gain, 100.0, **LEVEL)
    assert str(caught.value) == message
    with pytest.raises(ArgumentError) as caught:
        what_it_saw(read_finished(run(tmp_path, 500, lead(20, 8, 500))), **LEVEL, gain=gain)
    assert str(caught.value) == message


def test_a_finished_run_says_what_it_could_have_seen(tmp_path: Path) -> None:
    found = what_it_saw(read_finished(run(tmp_path, 500, lead(20, 8, 500), lead(17, 3, 500))), **LEVEL)
    assert found["pools"]["hotpot"]["n"] == 500
    majority, first = found["pools"]["hotpot"]["contrasts"]
    assert (majority["discordant"], majority["least_significant"]) == (pytest.approx(5.6), [20, 8])
    assert majority["questions"] is None
    assert mcnemar_power(500, majority["detectable_gain"] / 100, 0.056) == pytest.approx(0.8)
    assert (first["least_significant"], first["p"]) == ([15, 5], mcnemar(17, 3))


def test_for_a_gain_it_says_how_many_questions_another_run_needs(tmp_path: Path) -> None:
    finished = read_finished(run(tmp_path, 500, lead(20, 8, 500), lead(4, 1, 500), lead(0, 0, 500)))
    found = what_it_saw(finished, **LEVEL, gain=2.0)["pools"]["hotpot"]["contrasts"]
    assert [one["questions"] for one in found] == [questions_needed(0.02, 0.056), None, None]


def test_too_few_discordant_questions_could_show_nothing(tmp_path: Path) -> None:  # hazard 103
    (found,) = what_it_saw(read_finished(run(tmp_path, 300, lead(0, 0, 300))), **LEVEL)["pools"]["hotpot"]["contrasts"]
    assert (found["discordant"], found["least_significant"], found["detectable_gain"]) == (0.0, None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "{run} holds no summary.json; give the directory of a finished run."),
        ("", "{run}/summary.json is no summary of a run: its content: Invalid JSON: EOF while parsing"),
        ("[]", "{run}/summary.json is no summary of a run: its content: "),
        (
            '{"pools": {"a": {"n_scored": 1}}}',
            "{run}/summary.json is no summary of a run: pools.a.contrasts: Field req",
        ),
        (
            json.dumps({"pools": {"a": {"n_scored": 9, "contrasts": [lead(0, 0, 9) | {"wins": -1}]}}}),
            "{run}/summary.json is no summary of a run: pools.a.contrasts.0.wins: Input should be gre",
        ),
        (
            json.dumps({"pools": {"a": {"n_scored": 3, "contrasts": [lead(3, 1, 9)]}}}),
            "{run}/summary.json is no summary of a run: pools.a: Value error, 4 discordant questions of 3",
        ),
        (
            json.dumps({"pools": {"a": {"n_scored": 0, "contrasts": [lead(0, 0, 9)]}}}),
            "{run}/summary.json is no summary of a run: pools.a: Value error, 0 discordant questions of 0",
        ),
    ],
    ids=["nothing", "empty", "a list", "no contrasts", "a negative count", "more than there are", "of none"],
)
def test_what_is_no_finished_run_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    with pytest.raises(ArgumentError) as caught:
        read_finished(tmp_path)
    assert str(caught.value).startswith(message.format(run=tmp_path))


def test_a_file_in_the_place_of_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(ArgumentError, match=r"run holds no summary\.json; give the directory of a finished run"):
        read_finished(tmp_path / "run")
