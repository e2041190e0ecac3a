"""Rewards that are found by their names, and what a run lacks is said before it starts."""

import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError, ScoringError
from eldgr_dspy.programs.scoring.cross_encoder import DEFAULT
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import Conditioned, GroupReward, Reward, StepReward, format, orm, prm, require_columns
from eldgr_dspy.training.named_rewards import NLI_VARIABLE, NamedNLI, process_reward
from tests.refusing import refusal as refusal_of
from tests.refusing import refuses
from tests.training.calling import Steady, rows
from tests.training.training_on import ROWS

LOADS: list[tuple[str, dict[str, Any]]] = []
STEPS = StepReward(Steady())
SUM = [{**ROWS[0], "task": "arithmetic", "gold": ["7"], "evidence": None}]


@pytest.mark.parametrize("name", ["orm", "format", "prm", "ra_msd", "eldgr_rank", "ra_msd_conditioned"])
def test_a_ready_reward_is_found_by_its_name_and_pickled_without_its_model(name: str) -> None:
    reward = getattr(import_module("eldgr_dspy.training"), name)  # as TRL's command finds it
    assert isinstance(reward, Reward) and reward.__name__ == name
    data = pickle.dumps(reward)
    same = pickle.loads(data)  # noqa: S301 - our own bytes, made in the line before
    assert len(data) < 2_000 and (same.__name__, same.weight, same.needs) == (name, reward.weight, reward.needs)


def test_finding_the_rewards_starts_neither_torch_nor_trl() -> None:
    script = (
        "import sys; from eldgr_dspy.training import orm, format, prm, ra_msd, eldgr_rank; "
        "from eldgr_dspy.training import Sampling, read_curve, sample_pool, training_rows; "
        "from eldgr_dspy.training.recipe import rewards_of; "
        "print(*{'torch', 'trl', 'transformers', 'datasets'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


class Loads:  # stands for a model, and keeps the settings that it was loaded with
    name = "loads"

    def __init__(self, model: str, **settings: Any) -> None:
        LOADS.append((model, settings))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The settings that NLI models are loaded with; none is loaded really."""
    monkeypatch.setattr("eldgr_dspy.training.named_rewards.CrossEncoderNLI", Loads)
    LOADS.clear()
    return LOADS


def test_an_nli_model_is_loaded_once_with_its_settings_alone(loads: list[Any], monkeypatch: Any) -> None:
    names = [NamedNLI("once", "bfloat16", 64, "cuda:1").name for _ in range(2)]
    assert (names, loads) == (["loads"] * 2, [("once", {"dtype": "bfloat16", "batch_size": 64, "device": "cuda:1"})])
    fake = type("PartialState", (), {"_shared_state": {}, "__new__": lambda cls: pytest.fail("took a device")})
    monkeypatch.setitem(sys.modules, "accelerate", SimpleNamespace(PartialState=fake))
    assert NamedNLI("alone").name == "loads"
    assert loads[1][1] == {"dtype": "float32", "batch_size": 16, "device": None}


@pytest.mark.parametrize("device", ["cpu", "cuda:3"])
def test_the_model_is_at_the_trainers_device(loads: list[Any], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(device=device)
    fake = type("PartialState", (), {"_shared_state": {"device": device}, "__new__": lambda cls: state})
    monkeypatch.setitem(sys.modules, "accelerate", SimpleNamespace(PartialState=fake))
    assert NamedNLI(f"follows {device}").name == "loads"
    assert NamedNLI(f"stays {device}", device="cuda:0").name == "loads"
    assert [settings["device"] for _, settings in loads] == [device, "cuda:0"]


def test_the_environment_names_a_model_which_may_be_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """It is looked at when a step is first scored, so that a YAML file may set it."""
    monkeypatch.setenv(NLI_VARIABLE, str(tmp_path))
    message = r"'prm' failed on 1 completions .*has no config.json.*give a folder"
    refuses(ScoringError, message, prm, ["?"], ["The host was Qatar."], **rows(1))
    refuses(ArgumentError, r"has no config.json", NamedNLI(str(tmp_path)).probabilities, [("a", "b")])
    assert DEFAULT == "cross-encoder/nli-deberta-v3-small"


def repr_of(reward: Reward) -> str:
    return "+".join([reward.__name__, *(part.__name__ for part in reward.parts)])


def refusal(rows: Any, rewards: Any = ()) -> str:
    return refusal_of(lambda: require_columns(rows, rewards))


@pytest.mark.parametrize("column", ["task", "gold", "question", "evidence"])
def test_a_column_that_is_missing_is_named_with_the_reward_that_reads_it(column: str) -> None:
    rows = [{name: value for name, value in row.items() if name != column} for row in ROWS]
    sentence = refusal(rows, [orm, StepReward(Steady())])
    assert f"needs the column '{column}' (" in sentence and sentence.endswith("leave remove_unused_columns at False.")


@pytest.mark.parametrize("nothing", [None, []], ids=["null", "empty"])
@pytest.mark.parametrize(
    "reward", [STEPS, Conditioned(STEPS, on=orm), GroupReward(), GroupReward(auxiliary=STEPS)], ids=repr_of
)
def test_where_no_row_has_passages_a_reward_that_reads_them_is_refused(reward: Reward, nothing: Any) -> None:
    rows = [{**row, "evidence": nothing} for row in ROWS]
    own = reward if isinstance(reward, GroupReward) and not reward.parts else STEPS
    assert refusal(rows, [orm, reward]) == (
        f"The reward '{own.__name__}' reads passages, but no row of the dataset has any in the column 'evidence'; "
        "add them as strings or as {title, text}, or give all rows one corpus, by the field corpus of a recipe or by "
        "StepReward(NLIScorer(nli, retriever=...), evidence=False)."
    )
    require_columns([*rows, ROWS[0]], [reward])
    require_columns(iter(rows), [reward])  # a stream may bring them later


def test_in_arithmetic_the_group_rank_reads_no_passage_and_its_auxiliary_reward_may() -> None:
    require_columns(SUM, [orm, GroupReward(), GroupReward(auxiliary=prm, name="by_logic")])
    for reward in (GroupReward(auxiliary=STEPS), STEPS):
        assert "no row of the dataset has any" in refusal(SUM, [reward])


@pytest.mark.parametrize("reward", [orm, Conditioned(format, on=orm), GroupReward(auxiliary=orm)], ids=repr_of)
@pytest.mark.parametrize("on_disk", [False, True])
def test_gold_that_is_not_a_number_where_one_is_expected_is_refused_with_its_row(reward: Reward, on_disk: bool) -> None:
    """Before the first step, wherever the row is; what states a number is read for it."""
    golds: list[Any] = [["72"], ["So <<24+48=72>>72 clips.\n#### 72"], None, ["seventy-two"]]
    rows: Any = [{**SUM[0], "gold": gold} for gold in golds]
    if on_disk:
        from datasets import Dataset

        rows = Dataset.from_list(rows)
    assert refusal(rows, [reward]) == (
        "gold[3] must be an answer of the type 'arithmetic', or a text that states one, as '#### 72'; got "
        "'seventy-two'. Fix the row of the dataset."
    )
    require_columns(rows.select(range(3)) if on_disk else rows[:3], [reward])
    require_columns(iter(rows), [reward])  # the reward itself refuses the row of a stream


@pytest.mark.parametrize("within", [lambda one: one, lambda one: Conditioned(one, on=orm)], ids=["alone", "in another"])
def test_an_nli_model_that_is_not_there_is_named_before_the_first_step(within: Any, tmp_path: Path) -> None:
    """It is loaded before the policy, and not when the first step is scored."""
    absent = NamedNLI(str(tmp_path))
    for reward in (within(process_reward(absent)), GroupReward(auxiliary=StepReward(NLIScorer(absent)))):
        refuses(ArgumentError, r"has no config.json.*give a folder", reward.prepare)
