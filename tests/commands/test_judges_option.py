"""`--judges` and `--replay NAME=FILE`: what they accept, what they refuse, and what the command prints of it."""

import json
from pathlib import Path

import pytest

from tests.capitals import recording, row, write_pool
from tests.commands.installed import Eldgr

IDS = [f"q{number}" for number in range(4)]


@pytest.fixture(autouse=True)
def _files(eldgr: Eldgr) -> None:
    write_pool(Path("capitals.jsonl"), map(row, range(4)))
    recording(Path("a.jsonl"), IDS)
    recording(Path("b.jsonl"), IDS)


def test_a_recorded_and_a_heuristic_judge_stand_beside_one_another(eldgr: Eldgr) -> None:
    options = ["--judges", "a", "--judges", "words=heuristic", "--replay", "a=a.jsonl", "--quiet"]
    pool = json.loads(eldgr("evaluate", "capitals.jsonl", *options, "--out", "run", "--json").out)["pools"]["capitals"]
    assert list(pool["judges"]) == ["a", "words"]
    for form in ("markdown", "latex", "text"):
        printed = eldgr("report", "run", "--format", form).out
        assert "judges alone and under the lock" in printed
        assert "the run or the judge does not state it" in " ".join(printed.split())


def test_recordings_of_named_judges_name_the_judges_of_a_run_that_names_none(
    eldgr: Eldgr,
) -> None:
    recorded = ["evaluate", "capitals.jsonl", "--replay", "b=b.jsonl", "--replay", "a=a.jsonl"]
    result, named = (
        json.loads(eldgr(*recorded, *more, "--quiet", "--json").out)["pools"]["capitals"]
        for more in (["--out", "run"], ["--judges", "b,a", "--out", "named"])
    )
    assert result == named
    assert list(result["judges"]) == ["b", "a"]
    assert set(json.loads(eldgr(*recorded, "--dry-run", "--json").out)["models"]) >= {"judge[a]", "judge[b]"}


def test_a_forecast_names_each_judge_and_its_model(eldgr: Eldgr) -> None:
    options = ["--judges", "a=openai/m,b=listwise:openai/n,c=pairwise", "--judge", "openai/o", "--dry-run", "--json"]
    figures = json.loads(eldgr("evaluate", "capitals.jsonl", *options).out)
    asked = dict(zip(("judge[a]", "judge[b]", "judge[c]"), ("openai/m", "openai/n", "openai/o"), strict=True))
    assert {role: model for role, model in figures["models"].items() if model} == asked
    roles = figures["pools"]["capitals"]["roles"]
    assert {role: of["calls"] for role, of in roles.items() if "judge" in role} == dict.fromkeys(asked, 4)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (["--judges", "a=openai/m"], 0),
        (["--judges", "a=heuristic", "--repairer", "openai/m"], 0),
        (["--judge", "openai/m"], 0),
        (["--judge", "ollama/m", "--repairer", "openai/m", "--set", "num_ctx=16384"], 0),
        (["--judges", "a=heuristic"], 1),
    ],
)
def test_an_address_may_be_that_of_named_judges_or_of_other_roles_alone(
    values: list[str], code: int, eldgr: Eldgr
) -> None:
    address = ["--api-base", "http://127.0.0.1:9/v1", "--dry-run", "--quiet"]
    eldgr("evaluate", "capitals.jsonl", *values, *address, code=code)
