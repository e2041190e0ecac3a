"""Importing a floor loads nothing that belongs above it; a fresh interpreter imports each and says what it loaded."""

import functools
import os
import subprocess
import sys
from types import ModuleType

import pytest

import eldgr_dspy
from tests.house.package_files import ROOMS, sources

pytestmark = pytest.mark.slow  # an interpreter for each part of the package

MODULES = [name for _, name in sources()]
FOR_TESTS = {"eldgr_dspy.testing"}  # it draws with Hypothesis
FLOOR_1 = [name for name in MODULES if name not in {"eldgr_dspy", *FOR_TESTS} and name.split(".")[1] not in ROOMS]
STANDARD_LIBRARY_ALONE = [
    f"eldgr_dspy.{name}"
    for name in """
    words errors decision certificates answer_types.answers answer_types.extraction text.folding text.numbers
    derivation.arithmetic derivation.tracing derivation.independence rule.consultations rule.derivations rule.voting
    rule.ranking rule.cases laws laws.trials laws.of_rules laws.literals laws.situations
    """.split()
]
FACE = {"Decision", "Selector", "certificates", "channels", "decide", "ollama", "statistics"}
FACE |= {"ChannelScorer", "NLIScorer", "Sampled", "frozen_selector", "load_nli", "local"}

LEARNING = {"torch", "transformers", "sentence_transformers", "trl", "peft", "datasets", "accelerate"}
LATER = {"hypothesis", "pytest", "pyarrow", "mlflow", "opentelemetry", "ray"}
ABOVE = {"dspy", "litellm", "click", "rich", "jinja2", *LEARNING, *LATER}


@functools.cache
def loaded_by(*modules: str) -> frozenset[str]:
    """The modules that importing `modules` adds to those of an interpreter that has just started."""
    script = "import importlib, sys; before = set(sys.modules); "
    script += "[importlib.import_module(name) for name in sys.argv[1:]]; print(*sorted(set(sys.modules) - before))"
    command = [sys.executable, "-W", "error", "-c", script, *modules]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return frozenset(result.stdout.split())


# Each module is imported in a fork of an interpreter that has only the libraries which the first floor may load.
EACH = """
import importlib, os, sys, warnings
import numpy, pydantic, scipy.special
before = set(sys.modules)
warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
for name in sys.argv[1:]:
    if not os.fork():
        importlib.import_module(name)
        print(name, *sorted(set(sys.modules) - before), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


@functools.cache
def loaded_by_each(*modules: str) -> dict[str, frozenset[str]]:
    result = subprocess.run([sys.executable, "-W", "error", "-c", EACH, *modules], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return {module: frozenset(names) for module, *names in map(str.split, result.stdout.splitlines())}


def packages(modules: frozenset[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


def rooms(modules: frozenset[str]) -> set[str]:
    return {f"eldgr_dspy.{name}" for name in ROOMS} & modules


def room(name: str) -> list[str]:
    return [module for module in MODULES if module.split(".")[1:2] == [name]]


def test_importing_the_package_loads_no_dspy_and_signatures_nothing_above_them() -> None:
    modules = loaded_by("eldgr_dspy")
    assert packages(modules) & ABOVE == set()
    assert rooms(modules) == set()
    modules = loaded_by(*room("signatures"))
    assert packages(modules) & {"scipy", "click", "jinja2", *LEARNING, *LATER} == set()
    assert rooms(modules) == {"eldgr_dspy.signatures"}


def test_the_package_has_the_names_of_its_face_and_each_is_what_its_home_has() -> None:
    assert set(eldgr_dspy.__all__) == FACE and set(dir(eldgr_dspy)) >= FACE
    for name in FACE:
        result = getattr(eldgr_dspy, name)
        home = result.__name__ if isinstance(result, ModuleType) else result.__module__
        assert home in MODULES and name in (result.__name__, result.__name__.rpartition(".")[2])
    with pytest.raises(AttributeError, match=r"^module 'eldgr_dspy' has no attribute 'Scorer'; it has ChannelScorer, "):
        _ = eldgr_dspy.Scorer


@pytest.mark.parametrize("module", STANDARD_LIBRARY_ALONE)
def test_the_rule_and_what_it_stands_on_need_the_standard_library_alone(module: str) -> None:
    assert packages(loaded_by(module)) - sys.stdlib_module_names == {"eldgr_dspy"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="an interpreter is forked for each module")
def test_a_module_of_the_first_floor_loads_no_room_and_no_framework() -> None:
    """jinja2 is loaded when a report is rendered, and not when the module that does it is imported."""
    result = loaded_by_each(*FLOOR_1)
    assert result.keys() == {*FLOOR_1} and all(module in others for module, others in result.items())
    above = {module: packages(others) & ABOVE or rooms(others) for module, others in result.items()}
    assert {module: names for module, names in above.items() if names} == {}
    assert packages(loaded_by("numpy", "pydantic", "scipy.special")) & ABOVE == set()


def test_programs_load_no_trainer_and_no_torch_and_training_no_torch_until_it_trains() -> None:
    for_tests = {f"eldgr_dspy.programs.checks.{name}" for name in ("checking", "program_checks")}  # with Hypothesis
    modules = loaded_by(*(module for module in room("programs") if module not in for_tests))
    assert packages(modules) & {*LEARNING, *LATER} == set()
    assert "eldgr_dspy.training" not in modules
    assert packages(loaded_by(*room("training"))) & {*LEARNING, *LATER} == set()
