"""A run directory belongs to one process at a time, and is swept of what a killed one left behind."""

from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.base.files import replacing
from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError, RunLockedError
from eldgr_dspy.programs.run.fingerprints import fingerprint
from eldgr_dspy.programs.run.run_directory import RunDirectory, require_same
from eldgr_dspy.rule.consultations import Consultation


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
            assert directory.states("pool", "p")
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
        with pytest.raises(
            JournalError, match=rf"journal\.jsonl, line 4: this journal states no judge with fingerprint={made_by!r}"
        ):
            RunDirectory(tmp_path)
    (tmp_path / "summary.json").touch()
    RunDirectory(tmp_path, fresh=True).__exit__()
    assert not (tmp_path / "summary.json").exists()  # of the run that was set aside


# -- where a role is asked --
def lm_at(address: str, **settings: Any) -> dict[str, Any]:
    return {"model": "m", "model_type": "chat", "settings": {"api_base": address, "temperature": 0.0, **settings}}


def role_at(lm: Any) -> dict[str, Any]:
    return {"module": "M", "lm": lm}


FIRST, THEN = "http://localhost:8000/v1", "http://localhost:8001/v1"
ADDRESSES = {
    "one": (lm_at(FIRST), lm_at(THEN)),
    "the engine's": (
        lm_at("a", metadata={"host": "a", "num_ctx": 8}),
        lm_at("b", metadata={"host": "b", "num_ctx": 8}),
    ),
    "none before": ({"model": "m", "settings": {}}, {"model": "m", "settings": {"base_url": THEN}}),
    "several": ({"one.predict": lm_at("a"), "host": lm_at("a")}, {"one.predict": lm_at("b"), "host": lm_at("a")}),
}


@pytest.mark.parametrize(("before", "now"), ADDRESSES.values(), ids=ADDRESSES)
def test_a_role_at_another_address_is_the_same_and_stated_once_asked(tmp_path: Path, before: Any, now: Any) -> None:
    for lm, asked, stated in ((before, True, [before]), (now, False, [before]), (now, True, [before, now])):
        with RunDirectory(tmp_path) as directory:
            require_same(tmp_path, directory.journal.heads, [("role", "judge", role_at(lm))])
            for _ in range(2 * asked):
                directory.claim_role("judge", role_at(lm))
        with RunDirectory(tmp_path) as directory:
            assert [head["details"]["lm"] for head in directory.journal.heads] == stated


CHANGED = {
    "model": (lm_at(FIRST), lm_at(THEN) | {"model": "other"}),
    "setting": (lm_at(FIRST), lm_at(THEN, temperature=1.0)),
    "an LM that is called host": ({"host": lm_at("a")}, {"host": lm_at("a") | {"model": "other"}}),
    "an LM more": ({"host": lm_at("a"), "b": lm_at("a")}, {"b": lm_at("a")}),
}


@pytest.mark.parametrize(("before", "now"), CHANGED.values(), ids=CHANGED)
def test_whatever_else_is_of_an_lm_is_not_an_address(tmp_path: Path, before: Any, now: Any) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.claim_role("judge", role_at(before))
    with RunDirectory(tmp_path) as directory:
        with pytest.raises(RunChangedError, match="started with another role 'judge'") as raised:
            require_same(tmp_path, directory.journal.heads, [("role", "judge", role_at(now))])
        assert "api_base" not in str(raised.value)
        with pytest.raises(RunChangedError):
            directory.claim_role("judge", role_at(now))


def test_what_is_not_a_role_has_no_address(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.claim(("settings", "rule", {"host": "a"}))
        with pytest.raises(RunChangedError, match='host: "a" -> "b"'):
            directory.claim(("settings", "rule", {"host": "b"}))
