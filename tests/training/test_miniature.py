"""The paper in miniature: a policy learns, a run has all that it promises, and keeps its settings when resumed."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import RunChangedError, RunLockedError
from eldgr_dspy.formatting import figure, probability
from eldgr_dspy.pools import open_pool
from eldgr_dspy.tables.formats import markdown_text
from eldgr_dspy.tables.table import difference
from eldgr_dspy.training.curves import read_curve
from eldgr_dspy.training.miniature.__main__ import main
from eldgr_dspy.training.miniature.pools import exact_matches
from eldgr_dspy.training.miniature.run import require_extras, run
from eldgr_dspy.training.miniature.settings import FULL, SEED, SHORT, Settings
from eldgr_dspy.training.miniature.stages import Stages, alone, begin
from eldgr_dspy.training.miniature.task import Sizes, drawn_questions
from tests.refusing import refused
from tests.training.training_on import trains

pytestmark = [trains, pytest.mark.filterwarnings("ignore:.*:ResourceWarning")]

COMMITTED = Path(__file__).resolve().parents[2] / "artifacts" / "results" / "miniature"

TINY = replace(
    FULL,
    sizes=Sizes(people=8, towns=3, firms=3, most=4, parts={"retrieval": (24, 8, 6, 4), "arithmetic": (30, 8, 6, 4)}),
    taught=4,
    read=4,
    training={**FULL.training, "max_steps": "2", "per_device_train_batch_size": "16", "max_completion_length": "12"},
)
"""All policies and stages, and nothing learnt."""


# --- what is learnt ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_in_the_short_form_a_policy_learns_to_answer_questions_that_were_held_out(tmp_path: Path) -> None:
    """By exact match of what is sampled before and after; the reward is not looked at."""
    run(tmp_path / "short", SHORT, SEED, lambda text: None)
    pools = tmp_path / "short" / "pools"
    before = exact_matches(open_pool(pools / "start-evaluation-retrieval.jsonl"))["start"]
    after = exact_matches(open_pool(pools / "evaluation-retrieval.jsonl"))["grpo"]
    assert len(before) == len(after) == 40
    assert 0 < sum(before) < sum(after)
    sampled = [
        point.rolling for point in read_curve(tmp_path / "short" / "checkpoints" / "grpo" / "learning_curve.jsonl")
    ]
    assert (sampled[-1] or 0) > (sampled[9] or 1) + 0.1


# --- what a run leaves ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with all policies."""
    out = tmp_path_factory.mktemp("miniature") / "run"
    done(out)
    return out


def done(out: Path, settings: Settings = TINY) -> list[str]:
    """Run, and return what is said meanwhile."""
    said: list[str] = []
    run(out, settings, SEED, said.append)
    return said


def numbers(out: Path) -> Mapping[str, Any]:
    """The results without what a clock says."""
    found = json.loads((out / "results.json").read_text("utf-8"))
    return {key: without_seconds(value) for key, value in found.items() if key != "seconds"}


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_seconds(own) for key, own in value.items() if "seconds" not in key}
    return [without_seconds(own) for own in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_all_numbers_tables_and_curves_are_there(tiny: Path) -> None:
    found = json.loads((tiny / "results.json").read_text("utf-8"))
    assert (found["seed"], found["questions"]["seen_before"]) == (SEED, 0)
    assert set(found["reader"]) == {"document", "question", "problem", "solution"}
    for task in ("retrieval", "arithmetic"):
        assert list(found["policies"][task]["em"]) == ["start", "grpo", "orm", "prm", "ra_msd"]
        assert len(found["policies"][task]["contrasts"]) == 7
        for part in ("evaluation", "confirmation"):
            rules = found["runs"][part]["pools"][f"{part}-{task}"]["rules"]
            assert {"first", "majority", "judge", "eldgr"} <= set(rules)
    assert {"data", "warm", "nli", "train-grpo", "train-ra_msd", "pools", "rules", "all"} <= set(found["seconds"])
    tables = (tiny / "tables.md").read_text("utf-8")
    assert "### policies: retrieval, 6 questions" in tables and "### confirmation-arithmetic: " in tables
    lines = [json.loads(line) for line in (tiny / "curves.jsonl").read_text("utf-8").splitlines()]
    assert [(line["policy"], line["step"]) for line in lines] == [(name, at) for name in TINY.policies for at in (1, 2)]
    assert (tiny / "curves.svg").stat().st_size


@pytest.mark.slow
def test_the_pools_have_a_candidate_of_each_policy_and_four_of_the_first_for_confirmation(tiny: Path) -> None:
    for task in ("retrieval", "arithmetic"):
        for part, sources in (
            ("evaluation", [f"{policy}/1" for policy in TINY.policies]),
            ("confirmation", ["grpo/1", "grpo/2", "grpo/3", "grpo/4"]),
        ):
            pool = open_pool(tiny / "pools" / f"{part}-{task}.jsonl")
            assert all([one.source for one in row.candidates] == sources for row in pool.rows())


@pytest.mark.slow
def test_the_policies_differ_in_their_rewards_alone(tiny: Path) -> None:
    recipes = [json.loads((tiny / "checkpoints" / name / "recipe.json").read_text("utf-8")) for name in TINY.policies]
    differing = {key for recipe in recipes for key in recipe if recipe[key] != recipes[0][key]}
    assert differing == {"rewards", "reward_weights", "channel_weights"}  # which only ra_msd states


@pytest.mark.slow
def test_the_channels_read_the_corpus(tiny: Path) -> None:
    """For both tasks, since the solutions stand in it too."""
    last = read_curve(tiny / "checkpoints" / "ra_msd" / "learning_curve.jsonl")[-1]
    assert {f"ra_msd/{name}" for name in ("logic", "fact", "epist", "info", "triang", "min")} <= set(last.channels)


# --- resuming ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_done_is_not_done_again(tiny: Path) -> None:
    weights = (tiny / "checkpoints" / "grpo" / "adapter_model.safetensors").stat().st_mtime_ns
    before = numbers(tiny)
    assert all(line.endswith(": already done") for line in done(tiny))
    assert (tiny / "checkpoints" / "grpo" / "adapter_model.safetensors").stat().st_mtime_ns == weights
    assert numbers(tiny) == before


@pytest.mark.slow
def test_a_run_that_was_broken_off_in_a_training_resumes_it_and_gets_the_numbers_of_its_seed(
    tiny: Path, tmp_path: Path
) -> None:
    """Of what the training had written, nothing is relied on."""

    def interrupt(text: str) -> None:
        if text.startswith("train-ra_msd"):
            raise KeyboardInterrupt

    again = tmp_path / "again"
    with pytest.raises(KeyboardInterrupt):
        run(again, TINY, SEED, interrupt)
    torn = shutil.copytree(tiny / "checkpoints" / "ra_msd", again / "checkpoints" / "ra_msd", dirs_exist_ok=True)
    (torn / "adapter_model.safetensors").unlink()
    curve = torn / "learning_curve.jsonl"
    curve.write_bytes(curve.read_bytes().splitlines(keepends=True)[0])
    said = done(again)
    assert "train-prm: already done" in said and "train-ra_msd ..." in said
    assert numbers(again) == numbers(tiny)
    for pool in ("evaluation-retrieval", "confirmation-arithmetic"):
        first, second = (open_pool(out / "pools" / f"{pool}.jsonl") for out in (tiny, again))
        assert first.sha256 == second.sha256


def test_a_stage_that_fails_is_not_done(tmp_path: Path) -> None:
    said: list[str] = []
    stages = Stages(tmp_path, said.append)
    with pytest.raises(ZeroDivisionError):
        stages.do("one", lambda: {"found": 1 / 0})
    stages.do("one", lambda: {"found": 1})
    stages.do("one", lambda: {"found": 2})
    assert stages.findings("one") == {"found": 1}
    assert [line for line in said if "second" not in line and " s," not in line] == [
        "one ...",
        "one ...",
        "one: already done",
    ]


# --- what is committed ------------------------------------------------------------------------------------------------


def test_the_committed_figures_are_of_the_full_form_and_its_questions() -> None:
    found = json.loads((COMMITTED / "results.json").read_text("utf-8"))
    assert found["seed"] == SEED
    assert found["settings"] == json.loads(json.dumps(asdict(FULL)))
    assert found["questions"] == {"sha256": drawn_questions(SEED, FULL.sizes).sha256(), "seen_before": 0}
    assert found["seconds"]["all"]["cpu"] < 15 * 60


def test_the_committed_tables_have_the_committed_figures() -> None:
    found = json.loads((COMMITTED / "results.json").read_text("utf-8"))
    shown = (COMMITTED / "tables.md").read_text("utf-8")
    for task in found["policies"].values():
        assert all(f"| {markdown_text(name)} | {figure(em)} |" in shown for name, em in task["em"].items())
        assert all(
            f"| {difference(one)} | {markdown_text(probability(one['p']))} |" in shown for one in task["contrasts"]
        )
    for summary in found["runs"].values():
        for pool in summary["pools"].values():
            assert all(f"| {rule} | {figure(one['em'])} |" in shown for rule, one in pool["rules"].items())


@pytest.mark.parametrize("seed", [42, 43, 44])
def test_the_readme_of_the_figures_has_those_of_every_seed(seed: int) -> None:
    found = json.loads(
        (COMMITTED / ("results.json" if seed == SEED else f"seed-{seed}.results.json")).read_text("utf-8")
    )
    lines = (COMMITTED / "README.md").read_text("utf-8").splitlines()
    assert (found["seed"], found["questions"]["seen_before"]) == (seed, 0)
    for task, one in found["policies"].items():
        assert f"| {seed} | {task} | {cells(one['em'].values())} |" in lines
    for summary in found["runs"].values():
        for name, pool in summary["pools"].items():
            assert f"| {seed} | {name} | {cells(rule['em'] for rule in pool['rules'].values())} |" in lines


def cells(values: Iterable[float]) -> str:
    return " | ".join(figure(value, 1) for value in values)


# --- what cannot be run -----------------------------------------------------------------------------------------------


def test_a_folder_of_another_miniature_is_refused_with_what_differs(tmp_path: Path) -> None:
    begin(tmp_path / "out", {"seed": 42, "taught": 1000})
    begin(tmp_path / "out", {"seed": 42, "taught": 1000})
    assert refused(lambda: begin(tmp_path / "out", {"seed": 43, "taught": 1000}), RunChangedError) == (
        f"{tmp_path / 'out'}: this miniature was started with other settings:\n  seed: 42 -> 43\n"
        "Undo the change, or give another --out."
    )


def test_a_folder_is_left_to_the_process_that_is_at_work_in_it(tmp_path: Path) -> None:
    said = r"another process is at work in it; wait for it"
    with alone(tmp_path), pytest.raises(RunLockedError, match=said), alone(tmp_path):
        pass
    with alone(tmp_path):
        pass


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_no_stream_takes_is_refused(seed: int, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=rf"seed must be a whole number from 0 to 4294967295; got {seed}\."):
        main(["--out", str(tmp_path / "out"), f"--seed={seed}"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_folder_of_something_else_is_refused(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if kind == "folder":
        (out / "letters").mkdir(parents=True)
    else:
        out.write_text("a letter", "utf-8")
    with pytest.raises(SystemExit, match=r"exists and has no miniature\.json; give a folder that is empty or new"):
        main(["--out", str(out), "--short"])


def test_an_extra_that_is_missing_is_named() -> None:
    require_extras()
    assert refused(lambda: require_extras({"train": ["json", "no_such_trainer"]})) == (
        "The miniature needs no_such_trainer, which the extra 'train' brings; run: pip install 'eldgr_dspy[train,nli]'"
    )
