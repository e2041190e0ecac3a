"""The rewards that a command names: found by a dotted name, with names of their own, light to pickle and to import."""

import pickle
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError, ScoringError
from eldgr_dspy.programs.scoring.cross_encoder import DEFAULT
from eldgr_dspy.training import Reward, prm
from eldgr_dspy.training.named_rewards import NLI_VARIABLE, NamedNLI
from tests.training.calling import rows

NAMES = ("orm", "format", "prm", "ra_msd", "eldgr_rank", "ra_msd_conditioned")


def named(dotted: str) -> Any:
    """What TRL's command makes of a dotted name."""
    module, name = dotted.rsplit(".", 1)
    return getattr(import_module(module), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_ready_reward_is_found_by_its_name_and_pickled_without_its_model(name: str) -> None:
    reward = named(f"eldgr_dspy.training.{name}")
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
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


class Loads:
    """Stands for a model, and keeps the settings that it was loaded with."""

    name = "loads"

    def __init__(self, model: str, **settings: Any) -> None:
        LOADED.append((model, settings))


LOADED: list[tuple[str, dict[str, Any]]] = []


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The settings that NLI models are loaded with; none is loaded really."""
    monkeypatch.setattr("eldgr_dspy.training.named_rewards.CrossEncoderNLI", Loads)
    LOADED.clear()
    return LOADED


def test_an_nli_model_is_loaded_once_with_its_settings(loaded: list[Any]) -> None:
    names = [NamedNLI("once", "bfloat16", 64, "cuda:1").name for _ in range(2)]
    assert (names, loaded) == (
        ["loads"] * 2,
        [("once", {"dtype": "bfloat16", "batch_size": 64, "device": "cuda:1"})],
    )


@pytest.mark.parametrize("device", ["cpu", "cuda:3"])
def test_an_nli_model_follows_the_device_of_the_trainer(
    loaded: list[Any], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = SimpleNamespace(device=device)
    taken = type("PartialState", (), {"_shared_state": {"device": device}, "__new__": lambda cls: state})
    monkeypatch.setitem(sys.modules, "accelerate", SimpleNamespace(PartialState=taken))
    assert NamedNLI(f"follows {device}").name == "loads"
    assert NamedNLI(f"stays {device}", device="cuda:0").name == "loads"
    assert [settings["device"] for _, settings in loaded] == [device, "cuda:0"]


def test_without_a_trainer_no_device_is_taken_for_one(loaded: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    taken = type("PartialState", (), {"_shared_state": {}, "__new__": lambda cls: pytest.fail("took a device")})
    monkeypatch.setitem(sys.modules, "accelerate", SimpleNamespace(PartialState=taken))
    assert NamedNLI("alone").name == "loads"
    assert loaded[0][1] == {"dtype": "float32", "batch_size": 16, "device": None}


def test_the_environment_names_the_nli_model_and_one_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """It is looked at when a step is first scored, so that a YAML file may set it."""
    monkeypatch.setenv(NLI_VARIABLE, str(tmp_path))
    with pytest.raises(ScoringError, match=r"'prm' failed on 1 completions .*has no config.json.*give a folder"):
        prm(["?"], ["The host was Qatar."], **rows(1))
    with pytest.raises(ArgumentError, match=r"has no config.json"):
        NamedNLI(str(tmp_path)).probabilities([("a", "b")])
    assert DEFAULT == "cross-encoder/nli-deberta-v3-small"
