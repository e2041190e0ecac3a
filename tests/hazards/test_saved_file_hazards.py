"""Saved programs, journals, the logs of trainings and a model's settings are read within the limits on files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError, EldgrError, JournalError, PoolError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.formats.journal_lines import seal
from eldgr_dspy.journal import Journal, read_journal
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.freezes import read_freeze
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.programs.scoring.cross_encoder import stated_columns
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.training.checkpoints import Checkpoint
from eldgr_dspy.training.curves import read_curve

WIDE = "[" + "[]," * 600_000 + "[]]"
"""1.8 MB of JSON that takes fifty times as many bytes in memory."""
DEEP = "[" * 200 + "]" * 200
HEAD = '{"kind": "settings", "name": "", "details": %s}\n'


@pytest.mark.parametrize("made", [Selector, Judge, lambda: Sampled(dspy.Predict("question -> answer"), n=2)])
@pytest.mark.parametrize(("value", "why"), [("[" + "[]," * 1_100_000 + "[]]", "holds more than"), (DEEP, "nested too")])
def test_a_saved_program_that_expands_is_refused_before_it_is_parsed(  # hazard 115
    made: Callable[[], Any], value: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELDGR_FILE_LIMITS", "0.1")
    file = tmp_path / "program.json"
    made().save(str(file))
    file.write_text(f'{file.read_text().rstrip().removesuffix("}")}, "more": {value}}}')
    with pytest.raises(PoolError, match=why):
        made().load(str(file))


def test_a_saved_program_within_the_limits_is_loaded_as_before(tmp_path: Path) -> None:
    file = tmp_path / "program.json"
    judge, loaded = Judge(), Judge()
    judge.predict.demos = [dspy.Example(question="a" * 1_000)]
    judge.save(str(file))
    loaded.load(str(file))
    assert loaded.predict.demos[0]["question"] == "a" * 1_000


@pytest.mark.parametrize(("value", "why"), [(WIDE, "line 1: holds more than 500,000 values"), (DEEP, "nested too")])
def test_a_line_of_a_journal_that_expands_is_refused(value: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "pool.samples.jsonl"
    file.write_text(HEAD % value)
    with pytest.raises(JournalError, match=why):
        Journal(file)


def test_the_log_of_a_training_that_expands_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trainer_state.json").write_text(f'{{"log_history": {WIDE}}}')
    monkeypatch.setenv("ELDGR_FILE_LIMITS", "0.1")
    with pytest.raises(PoolError, match=r"trainer_state.json: holds more than"):
        read_curve(tmp_path)


def test_the_labels_of_a_model_that_expand_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(f'{{"id2label": {WIDE}}}')
    with pytest.raises(ArgumentError, match="holds more than"):
        stated_columns(tmp_path, "model")


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("rule.freeze.json", read_freeze),
        ("config.json", lambda file: stated_columns(file.parent, "model")),
        ("trainer_state.json", lambda file: read_curve(file.parent)),
        ("adapter_config.json", lambda file: Checkpoint.of("mine", file.parent)),
        ("summary.json", lambda file: read_run(file.parent).summary()),
    ],
)
def test_a_file_of_eight_gigabytes_that_takes_no_disk_is_not_read(  # hazard 115
    name: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    stated = {"kind": "settings", "name": "rule", "details": Settings().to_json()}
    (tmp_path / "journal.jsonl").write_bytes(seal(stated))
    with (tmp_path / name).open("wb") as file:
        file.truncate(8 * 2**30)
    with pytest.raises(EldgrError, match=r"holds more than 268,435,456 bytes, .* set ELDGR_FILE_LIMITS=2"):
        read(tmp_path / name)


@pytest.mark.parametrize("temperature", [[0.7], {"a": 1}, "hot"], ids=str)
def test_a_temperature_that_is_not_a_number_is_named(temperature: Any) -> None:
    select, question = Selector(), {"question": "Which?", "candidates": ["A", "A", "B"], "evidence": ["It is B."]}
    lm = scripted_lm([], temperature=temperature)
    with dspy.context(lm=lm), pytest.raises(ArgumentError, match=r"The temperature of .* must be a number; got"):
        select(**question)
    select.judge = judge = Judge()
    judge.predict.config["temperature"] = temperature
    with dspy.context(lm=scripted_lm([])), pytest.raises(ArgumentError, match="The temperature of a predictor must be"):
        select(**question)


def test_a_type_error_of_a_role_s_own_code_stays_as_it_is() -> None:
    class Broken(dspy.Module):
        def forward(self, **_: Any) -> Any:
            return 1 + "1"  # type: ignore[operator]

    select = Selector()
    select.judge = Broken()
    with dspy.context(lm=scripted_lm([])), pytest.raises(TypeError, match="unsupported operand"):
        select(question="Which?", candidates=["A", "A", "B"], evidence=["It is B."])


@pytest.mark.parametrize("read", [lambda path: [*read_journal(path)], Journal], ids=["read", "opened"])
def test_a_journal_that_is_one_endless_line_is_refused(
    read: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELDGR_FILE_LIMITS", "0.01")
    with (tmp_path / "journal.jsonl").open("wb") as file:
        file.write(b'{"kind": ')
        file.truncate(2**23)
    with pytest.raises(JournalError, match=r"a line is longer than 671,088 bytes; a journal has no such line\. If"):
        read(tmp_path / "journal.jsonl")
