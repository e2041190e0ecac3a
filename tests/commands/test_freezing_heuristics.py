"""`eldgr freeze` freezes no heuristic role by accident: where a rule may ask one, the command line says so."""

from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main

MODEL = ("--lm", "openai/none", "--api-base", "http://h/v1")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("--heuristic",),
        ("--judge", "openai/none", "--heuristic"),
        ("--rules", "first,majority,certified"),
        MODEL,
        ("--judges", "words=heuristic", "--repairer", "openai/none", "--rules", "majority,eldgr"),
    ],
)
def test_what_is_said_to_be_heuristic_is_frozen_and_so_is_what_asks_nobody(words: tuple[str, ...]) -> None:
    assert main(["freeze", *words]) == 0
    assert Path("rule.freeze.json").is_file()
