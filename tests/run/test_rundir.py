"""A run directory belongs to one process at a time, and is swept of what a killed one left behind."""

from pathlib import Path

import pytest

from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError, RunLockedError
from eldgr_dspy.files import replacing
from eldgr_dspy.journal import Consultation
from eldgr_dspy.programs.run.fingerprints import fingerprint
from eldgr_dspy.programs.run.rundir import RunDirectory


def test_what_a_killed_process_was_writing_is_swept_and_nothing_else(tmp_path: Path) -> None:
    out = replacing(tmp_path / "summary.json")
    out.__enter__().write(b"half")  # and never left, as in a process that is killed
    others = {".lock", "journal.jsonl", "summary.json", "notes.tmp", ".notes.tmp", ".0123.tmp"}
    for name in others:
        (tmp_path / name).touch()
    assert len(list(tmp_path.iterdir())) == len(others) + 1
    with RunDirectory(tmp_path):
        assert {path.name for path in tmp_path.iterdir()} == others


def test_a_directory_that_is_in_use_is_not_swept(tmp_path: Path) -> None:
    with RunDirectory(tmp_path), replacing(tmp_path / "summary.json") as out:
        with pytest.raises(RunLockedError, match="another process is writing to this run; wait for it, or give"):
            RunDirectory(tmp_path)
        out.write(b"whole")
    assert (tmp_path / "summary.json").read_bytes() == b"whole"


def test_the_first_statement_stands_and_another_is_refused_with_its_difference(tmp_path: Path) -> None:
    for _ in range(2):
        with RunDirectory(tmp_path) as directory:
            directory.claim(("pool", "p", {"rows": 1}))
            assert directory.stated("pool", "p")
    with RunDirectory(tmp_path) as directory, pytest.raises(RunChangedError, match=r"rows: 1 -> 2\n"):
        directory.claim(("pool", "p", {"rows": 2}))
    assert (tmp_path / "journal.jsonl").read_text().count("\n") == 1


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").touch()
    for out in (tmp_path / "p.jsonl" / "x", tmp_path / "p.jsonl"):
        with pytest.raises(ArgumentError, match=r"^out='.*p\.jsonl.*' cannot be a directory \(.*\); give another\.$"):
            RunDirectory(out)


DETAILS = {"module": "M", "lm": {"model": "m", "settings": {"temperature": 0.0}}, "demos": [["a", None]]}


@pytest.mark.parametrize("made_by", ["0123456789abcdef", None])
def test_a_call_of_a_role_that_is_not_stated_is_refused(tmp_path: Path, made_by: str | None) -> None:
    stated = Consultation("p", "q1", "judge", "abstained", "why", fingerprint=fingerprint(DETAILS), calls=1)
    with RunDirectory(tmp_path) as directory:
        directory.claim(("role", "judge", DETAILS))
        directory.journal.append(stated)
        directory.journal.append(Consultation("p", "q1", "deriver", "abstained", "why", recorded=True))
    with RunDirectory(tmp_path) as directory:
        directory.journal.append(Consultation("p", "q2", "judge", "failed", "why", fingerprint=made_by, calls=1))
    for _ in range(2):  # refused, it lets go of the lock
        with pytest.raises(JournalError, match=rf"journal\.jsonl, line 4: fingerprint={made_by!r} is of no judge that"):
            RunDirectory(tmp_path)
    RunDirectory(tmp_path, fresh=True).__exit__()
