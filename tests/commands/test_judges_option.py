"""`--judges` and `--replay NAME=FILE`: what they accept, what they refuse, and what the command prints of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.programs.commands import main
from tests.capitals import recording, row, write_pool

IDS = [f"q{number}" for number in range(4)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_pool(Path("capitals.jsonl"), map(row, range(4)))
    recording(Path("a.jsonl"), IDS)
    recording(Path("b.jsonl"), IDS)
    return tmp_path


def test_a_recorded_and_a_heuristic_judge_stand_beside_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--judges", "a", "--judges", "words=heuristic", "--replay", "a=a.jsonl", "--quiet"]
    assert main(["evaluate", "capitals.jsonl", *options, "--out", "run", "--json"]) == 0
    pool = json.loads(capsys.readouterr().out)["pools"]["capitals"]
    assert list(pool["judges"]) == ["a", "words"]
    for form in ("markdown", "latex", "text"):
        assert main(["report", "run", "--format", form]) == 0
        printed = capsys.readouterr().out
        assert "judges alone and under the lock" in printed
        assert "the run or the judge does not state it" in " ".join(printed.split())


def test_recordings_of_named_judges_name_the_judges_of_a_run_that_names_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    recorded = ["evaluate", "capitals.jsonl", "--replay", "b=b.jsonl", "--replay", "a=a.jsonl"]
    assert main([*recorded, "--quiet", "--out", "run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["pools"]["capitals"]
    assert main([*recorded, "--judges", "b,a", "--quiet", "--out", "named", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pools"]["capitals"] == found
    assert list(found["judges"]) == ["b", "a"]
    assert main([*recorded, "--dry-run", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["models"]) >= {"judge[a]", "judge[b]"}


def test_a_forecast_names_each_judge_and_its_model(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--judges", "a=openai/m,b=listwise:openai/n,c=pairwise", "--judge", "openai/o", "--dry-run", "--json"]
    assert main(["evaluate", "capitals.jsonl", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {asked: model for asked, model in found["models"].items() if model} == {
        "judge[a]": "openai/m",
        "judge[b]": "openai/n",
        "judge[c]": "openai/o",
    }
    assert {asked: of["calls"] for asked, of in found["pools"]["capitals"]["roles"].items() if "judge" in asked} == {
        "judge[a]": 4,
        "judge[b]": 4,
        "judge[c]": 4,
    }


def test_an_address_may_be_that_of_named_judges_alone_or_of_other_roles_alone() -> None:
    address = ["--api-base", "http://127.0.0.1:9/v1", "--dry-run", "--quiet"]
    assert main(["evaluate", "capitals.jsonl", "--judges", "a=openai/m", *address]) == 0
    assert main(["evaluate", "capitals.jsonl", "--judges", "a=heuristic", "--repairer", "openai/m", *address]) == 0
    assert main(["evaluate", "capitals.jsonl", "--judge", "openai/m", *address]) == 0
    assert main(["evaluate", "capitals.jsonl", "--judges", "a=heuristic", *address]) == 1


def test_a_freeze_of_named_judges_is_run_by_giving_them_again(capsys: pytest.CaptureFixture[str]) -> None:
    given: list[Any] = ["--judges", "x=heuristic"]
    assert main(["freeze", "--heuristic", *given, "--rules", "majority,eldgr", "--out", "rule.freeze.json"]) == 0
    confirming = ["evaluate", "capitals.jsonl", "--freeze", "rule.freeze.json", "--quiet"]
    assert main([*confirming, "--judges", "y=heuristic", "--out", "other"]) == 1
    assert "'eldgr[x]' names a judge that this run does not have ('y')" in capsys.readouterr().err
    assert main([*confirming, *given, "--out", "run"]) == 0
