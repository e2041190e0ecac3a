"""A recipe runs nothing, and one that is not a recipe is refused in a sentence."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="trl is not installed; the extra `test` has it")

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.grpo import parse_arguments
from tests.refusing import refuses
from tests.training.training_on import trains

pytestmark = trains


def read(folder: Path, text: str) -> Any:
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    return parse_arguments(["--config", str(folder / "mine.yaml"), "--use_cpu", "true"]).rewards


@pytest.mark.parametrize("tag", ["!!python/object/apply:pathlib.Path.touch", "!!python/name:os.system", "!other"])
def test_a_tag_in_a_recipe_makes_nothing_and_runs_nothing(tmp_path: Path, tag: str) -> None:  # hazard 97
    with pytest.raises(
        ArgumentError, match=r"^The recipe cannot be read \(could not determine a constructor for the tag '"
    ):
        read(tmp_path, f"tau: {tag} [{tmp_path / 'made'}]\n")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize("text", ["", "tau", "- tau", "3"], ids=["empty", "text", "list", "number"])
def test_a_recipe_that_holds_no_fields_is_refused(tmp_path: Path, text: str) -> None:  # hazard 97
    refuses(ArgumentError, r"^The recipe cannot be read \(.*must contain a YAML mapping", read, tmp_path, text)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:  # hazard 97
    (tmp_path / "mine.yaml").write_bytes(b"output_dir: caf\xe9\n")
    with pytest.raises(ArgumentError, match=r"^The recipe cannot be read \('utf-8' codec can't decode byte 0xe9"):
        parse_arguments(["--config", str(tmp_path / "mine.yaml")])


def test_a_recipe_imports_no_reward_that_it_names(tmp_path: Path) -> None:  # hazard 113
    """The command line may name it; nothing is imported until the rewards are made."""
    (tmp_path / "mine.yaml").write_text("rewards: [orm, canary.sing]\noutput_dir: out\n")
    arguments = ["--config", str(tmp_path / "mine.yaml"), "--use_cpu", "true"]
    with pytest.raises(ArgumentError, match=r"^rewards has 'canary\.sing', and a recipe imports nothing\. Give all"):
        parse_arguments(arguments)
    assert parse_arguments([*arguments, "--rewards", "orm", "canary.sing"]).rewards.rewards == ["orm", "canary.sing"]
