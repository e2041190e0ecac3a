"""A recipe runs nothing, and those of the package say nothing that YAML reads otherwise than it looks."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.grpo import parsed
from eldgr_dspy.training.plain_yaml import require_plain
from eldgr_dspy.training.recipe import RECIPES
from tests.training.training_on import trains

pytestmark = trains


def read(folder: Path, text: str) -> Any:
    """The rewards of a recipe."""
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    return parsed(["--config", str(folder / "mine.yaml"), "--use_cpu", "true"]).rewards


@pytest.mark.parametrize("tag", ["!!python/object/apply:pathlib.Path.touch", "!!python/name:os.system", "!other"])
def test_a_tag_in_a_recipe_makes_nothing_and_runs_nothing(tmp_path: Path, tag: str) -> None:  # hazard 97
    with pytest.raises(
        ArgumentError, match=r"mine\.yaml, line 1: cannot be read \(could not determine a constructor for the tag '"
    ):
        read(tmp_path, f"tau: {tag} [{tmp_path / 'made'}]\n")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize("text", ["", "tau", "- tau", "3"], ids=["empty", "text", "list", "number"])
def test_a_recipe_that_holds_no_fields_is_refused(tmp_path: Path, text: str) -> None:  # hazard 97
    with pytest.raises(ArgumentError, match=r"^The recipe cannot be read \(.*must contain a YAML mapping"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tau: 0.5\nreading: no\n", "line 2: cannot be read ('no' is neither in quotes nor written as in JSON"),
        ("drop: [on, min]\n", "line 1: cannot be read ('on' is neither in quotes"),
        ("documents: 010\n", "line 1: cannot be read ('010' is neither in quotes"),
        ("documents: 1:30\n", "line 1: cannot be read ('1:30' is neither in quotes"),
        ("documents: 1_0\n", "line 1: cannot be read ('1_0' is neither in quotes"),
        ("corpus: 2024-01-02\n", "line 1: cannot be read ('2024-01-02' is neither in quotes"),
        ("env: {010: a}\n", "line 1: cannot be read ('010' is neither in quotes"),
        ("tau: 0.1\n\ntau: 0.9\n", "line 3: cannot be read ('tau' is there twice; keep one of them)"),
        ("tau: &a 0.5\nlearning_rate: *a\n", "line 2: cannot be read (an alias; write out what it stands for)"),
        ("tau: [1\n", "mine.yaml, line 2: cannot be read (expected ',' or ']'"),
        ("drop: " + "[" * 5_000 + "]" * 5_000, "mine.yaml: cannot be read (maximum recursion depth exceeded"),
        ('tau: "\0"\n', "mine.yaml: cannot be read (unacceptable character #x0000"),
    ],
    ids="no,on,octal,base 60,underscore,date,key,twice,alias,torn,deep,nul".split(","),
)
def test_what_yaml_reads_otherwise_than_it_looks_is_refused_with_the_line(
    tmp_path: Path, text: str, said: str
) -> None:  # hazard 97
    with pytest.raises(ArgumentError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value) and len(str(caught.value)) < 500


def test_aliases_that_would_stand_for_a_billion_values_are_refused_at_once(tmp_path: Path) -> None:  # hazard 97
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for before, name in pairwise("abcdefghi"):
        bomb += f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n"
    with pytest.raises(ArgumentError, match=r"line 2: cannot be read \(an alias;"):
        read(tmp_path, bomb)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:  # hazard 97
    (tmp_path / "mine.yaml").write_bytes(b"output_dir: caf\xe9\n")
    with pytest.raises(ArgumentError, match=r"mine\.yaml: cannot be read \('utf-8' codec can't decode byte 0xe9"):
        parsed(["--config", str(tmp_path / "mine.yaml")])


def test_what_stands_in_quotes_or_as_json_has_it_is_read_as_it_looks(tmp_path: Path) -> None:  # hazard 97
    text = 'corpus: "no"\ntau: 0.25\ndrop: [min, "010"]\nnli: ~\ndocuments: 3\nreading: \'on\'\nuse_cpu: True\n'
    found = read(tmp_path, text)
    assert (found.corpus, found.tau, found.drop, found.documents, found.reading) == (
        "no",
        0.25,
        ["min", "010"],
        3,
        "on",
    )


@pytest.mark.parametrize("path", sorted(RECIPES.rglob("*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_recipe_of_the_package_says_anything_else_than_it_looks(path: Path) -> None:  # hazard 97
    require_plain(path)


# hazard 113
def test_a_recipe_imports_no_reward_that_it_names(tmp_path: Path) -> None:
    """The command line may name it; nothing is imported until the rewards are made."""
    (tmp_path / "mine.yaml").write_text("rewards: [orm, canary.sing]\noutput_dir: out\n")
    given = ["--config", str(tmp_path / "mine.yaml"), "--use_cpu", "true"]
    with pytest.raises(ArgumentError, match=r"^rewards has 'canary\.sing', and a recipe imports nothing\. Give all"):
        parsed(given)
    assert parsed([*given, "--rewards", "orm", "canary.sing"]).rewards.rewards == ["orm", "canary.sing"]
