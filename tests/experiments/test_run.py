"""A run of the experiment: the command leaves all results, a second call does nothing, another size is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.experiments.partition.__main__ import main
from benchmarks.experiments.partition.arms import ARMS, START, flags
from benchmarks.experiments.partition.outcomes import outcomes
from benchmarks.experiments.partition.partition_run import FILE, alone, begin, policies, require_libraries
from benchmarks.experiments.partition.partition_tables import COLUMNS
from benchmarks.experiments.partition.sizes import SMALL, SMOKE
from benchmarks.experiments.partition.starting import require_in_range
from benchmarks.experiments.real_policy import ARMS as REAL_ARMS
from benchmarks.experiments.real_policy import HELD_OUT, RESULTS, table
from eldgr_dspy.errors import RunChangedError, RunLockedError
from eldgr_dspy.training.grpo import parse_arguments
from tests.experiments.working import is_replay
from tests.refusing import refusal
from tests.training.training_on import trains

pytestmark = trains

ROOT = Path(__file__).resolve().parents[2]


def execute(out: Path, size: str = "smoke") -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "benchmarks.experiments.partition", "--size", size, "--out", str(out)]
    environment = {**os.environ, "HF_DATASETS_CACHE": str(out.parent / "cache")}
    return subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def command(out: Path) -> list[str]:
    """The lines that the command prints, which ends well."""
    result = execute(out)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("partition") / "run"
    assert command(out)[0].startswith("1/start: ")
    return out


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@pytest.mark.slow
def test_results_have_every_job_arm_measure_rule_and_question_and_the_tables_show_them(smoke: Path) -> None:
    names = policies(SMOKE)
    jobs = {"start", "reader", "pools", *names[1:], *(f"{name}.replies" for name in names)}
    assert {path.stem for path in (smoke / "jobs" / "1").glob("*.json")} == jobs
    results, plan = read(smoke / "results.json"), outcomes()
    assert {*results["seconds"]} == {f"1/{job}" for job in jobs}
    assert results["outcomes"] == plan.sha256
    assert {*results["arms"]["1"]} == {START, *ARMS}
    assert all({*run[task]} == {*COLUMNS} for runs in results["arms"]["1"].values() for run in runs for task in run)
    assert {*results["rules"]["1"]} == {*plan.pools}
    assert [one["name"] for one in results["controls"]] == [one.name for one in plan.controls]
    assert [one["name"] for one in results["contrasts"]] == [one.name for one in plan.contrasts]
    assert len(results["rule_contrasts"]) == len(plan.rules) * len(plan.pools) * len(plan.error_rates)
    contrasts = [one for family in ("controls", "contrasts", "rule_contrasts") for one in results[family]]
    assert not any(one["resolved"] or one["interval"] for one in contrasts)  # of one seed
    tables = (smoke / "tables.md").read_text("utf-8")
    items: list[Any] = [*plan.controls, *plan.contrasts, *plan.rules]
    assert all(one.name in tables for one in items)
    assert "1 seed; 16 held-out questions each." in tables


@pytest.mark.slow
def test_arms_were_trained_by_recipes_that_differ_in_the_rewards_alone_and_rules_asked_nobody(smoke: Path) -> None:
    recipes = {arm: read(smoke / "seed-1" / f"{arm}-1" / "recipe.json") for arm in ARMS}
    first = recipes["orm"]
    differing = {key for recipe in recipes.values() for key in recipe if recipe[key] != first[key]}
    assert differing - {"output_dir", "run_name"} == {"rewards", "reward_weights"}
    assert {arm: dict(zip(one["rewards"], one["reward_weights"], strict=True)) for arm, one in recipes.items()} == ARMS
    for source in outcomes().pools:
        assert is_replay(smoke / "seed-1" / "runs" / source / "journal.jsonl")


@pytest.mark.slow
def test_a_second_call_does_only_jobs_without_a_result_and_one_of_another_size_is_refused(smoke: Path) -> None:
    files = [path for path in smoke.rglob("*") if path.is_file() and path.parent != smoke]
    before = {path: path.stat().st_mtime_ns for path in files}
    results = read(smoke / "results.json")
    (line,) = command(smoke)
    assert line.startswith("The tables are in ")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert read(smoke / "results.json") == results
    for name in ("steps-1", "start.replies", "pools"):  # as after a kill at the end of training, sampling or deciding
        (smoke / "jobs" / "1" / f"{name}.json").unlink()
    names = [line.partition(":")[0] for line in command(smoke)[:-1]]
    assert names == ["1/steps-1", "1/start.replies", "1/pools"]
    assert {**read(smoke / "results.json"), "seconds": 0} == {**results, "seconds": 0}
    other = execute(smoke, "small")
    assert (other.returncode, other.stdout) == (1, "")
    assert f"{smoke}: this run was started with other settings:\n" in other.stderr
    assert f"\n  held: {SMOKE.held} -> {SMALL.held}\n" in other.stderr
    assert other.stderr.endswith("Undo the change, or give another --out.\n")


def test_a_folder_is_resumed_only_with_the_same_settings(tmp_path: Path) -> None:
    for _ in range(2):
        begin(tmp_path / "out", {"held": 8, "seeds": (1, 2)})
    assert refusal(lambda: begin(tmp_path / "out", {"held": 9, "seeds": (1, 2)}), RunChangedError) == (
        f"{tmp_path / 'out'}: this run was started with other settings:\n  held: 8 -> 9\n"
        "Undo the change, or give another --out."
    )


def test_a_folder_of_something_else_is_refused_and_left_alone_and_one_in_use_to_its_process(tmp_path: Path) -> None:
    (tmp_path / "folder" / "letters").mkdir(parents=True)
    (tmp_path / "file").write_text("a letter", "utf-8")
    for out in (tmp_path / "folder", tmp_path / "file"):
        with pytest.raises(SystemExit, match=rf"--out must be a folder that is empty or new; .* has no {FILE}"):
            main(["--size", "smoke", "--out", str(out)])
        assert not (out / FILE).exists()
    message = "another process is at work in it; wait for it"
    with alone(tmp_path), pytest.raises(RunLockedError, match=message), alone(tmp_path):
        pass
    with alone(tmp_path):
        pass


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    require_libraries()
    monkeypatch.setattr("benchmarks.experiments.partition.partition_run.find_spec", lambda n: None if n == "trl" else n)
    assert refusal(require_libraries) == "The experiment needs trl; run: pip install 'eldgr_dspy[train,nli]'"


@pytest.mark.parametrize(("retrieval", "arithmetic", "mean"), [(33.0, 6.8, "19.9"), (50.0, 30.2, "40.1")])
def test_a_start_outside_its_range_is_refused(retrieval: float, arithmetic: float, mean: str) -> None:
    looks = [{"batches": 20, "retrieval": 50.0, "arithmetic": 10.0}]
    require_in_range(looks)
    looks.append({"batches": 40, "retrieval": retrieval, "arithmetic": arithmetic})
    message = refusal(lambda: require_in_range(looks))
    assert message.startswith(f"The start must answer 20 to 40 % of the questions for validation; it answers {mean} %")


def flags_of(folder: Path, arm: str, run: int) -> list[str]:
    """The flags of an arm before those of its rewards, without its own folder."""
    words = flags(folder, arm, run, SMOKE, 3)
    own = words.index("--output_dir") + 1
    return [*words[:own], *words[own + 1 : words.index("--rewards")]]


def test_the_flags_of_arms_differ_in_rewards_and_folders_alone(tmp_path: Path) -> None:
    assert len({tuple(flags_of(tmp_path, arm, 1)) for arm in ARMS}) == 1
    assert flags_of(tmp_path, "orm", 1) != flags_of(tmp_path, "orm", 2)
    recipes = {arm: parse_arguments(flags(tmp_path, arm, 1, SMOKE, 3)) for arm in ARMS}
    assert len({recipe.training.output_dir for recipe in recipes.values()}) == len(ARMS)
    assert {recipe.training.seed for recipe in recipes.values()} == {3001}
    for arm, recipe in recipes.items():
        assert dict(zip(recipe.rewards.rewards, recipe.training.reward_weights, strict=True)) == ARMS[arm]


def test_the_table_of_the_page_is_that_of_the_kept_results() -> None:
    results = json.loads((ROOT / RESULTS).read_text(encoding="utf-8"))
    page = (ROOT / "docs/how-to/train-a-policy.md").read_text(encoding="utf-8")
    assert "\n".join(table(results)) in page
    assert list(results) == ["base", *(f"{arm}-{seed}" for arm in REAL_ARMS for seed in (1, 2))]
    assert all(len(result["right"]) == len(result["answers"]) == HELD_OUT for result in results.values())
