"""A run directory belongs to one process at a time, and is swept of what a killed one left behind."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.base.files import replacing
from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError, RunLockedError
from eldgr_dspy.programs.run.evaluation import Plan, evaluate, rarer_collections
from eldgr_dspy.programs.run.fingerprints import fingerprint
from eldgr_dspy.programs.run.run_directory import RunDirectory, require_same
from eldgr_dspy.rule.consultations import Consultation
from tests.capitals import obliging, row, selector_with, write_pool
from tests.case_tables import each_case
from tests.refusing import refuses


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
        refuses(RunLockedError, "another process is writing to this run; wait for it, or give", RunDirectory, tmp_path)
        out.write(b"whole")
    assert (tmp_path / "summary.json").read_bytes() == b"whole"


def test_the_first_statement_stands_and_another_is_refused_with_its_difference(tmp_path: Path) -> None:
    """What is not a role has no address."""
    for _ in range(2):
        with RunDirectory(tmp_path) as directory:
            directory.claim(("pool", "p", {"rows": 1}))
            assert directory.states("pool", "p")
    with RunDirectory(tmp_path) as directory:
        refuses(RunChangedError, r"rows: 1 -> 2\n", directory.claim, ("pool", "p", {"rows": 2}))
        assert (tmp_path / "journal.jsonl").read_text().count("\n") == 1
        directory.claim(("settings", "rule", {"host": "a"}))
        refuses(RunChangedError, 'host: "a" -> "b"', directory.claim, ("settings", "rule", {"host": "b"}))


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").touch()
    for out in (tmp_path / "p.jsonl" / "x", tmp_path / "p.jsonl"):
        refuses(ArgumentError, r"^out='.*p\.jsonl.*' cannot be a directory \(.*\); give another\.$", RunDirectory, out)


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
        message = rf"journal\.jsonl, line 4: this journal states no judge with fingerprint={made_by!r}"
        refuses(JournalError, message, RunDirectory, tmp_path)
    (tmp_path / "summary.json").touch()
    RunDirectory(tmp_path, fresh=True).__exit__()
    assert not (tmp_path / "summary.json").exists()  # of the run that was set aside


# -- where a role is asked --
def lm_at(address: str, model: str = "m", **settings: Any) -> dict[str, Any]:
    return {"model": model, "model_type": "chat", "settings": {"api_base": address, "temperature": 0.0, **settings}}


def role_at(lm: Any) -> dict[str, Any]:
    return {"module": "M", "lm": lm}


@each_case("run", "addresses of a role", lm_at=lm_at)
def test_a_role_at_another_address_is_the_same_and_stated_once_asked(tmp_path: Path, before: Any, now: Any) -> None:
    for lm, asked, stated in ((before, True, [before]), (now, False, [before]), (now, True, [before, now])):
        with RunDirectory(tmp_path) as directory:
            require_same(tmp_path, directory.journal.heads, [("role", "judge", role_at(lm))])
            for _ in range(2 * asked):
                directory.claim_role("judge", role_at(lm))
        with RunDirectory(tmp_path) as directory:
            assert [head["details"]["lm"] for head in directory.journal.heads] == stated


@each_case("run", "changed lms of a role", lm_at=lm_at)
def test_whatever_else_is_of_an_lm_is_not_an_address(tmp_path: Path, before: Any, now: Any) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.claim_role("judge", role_at(before))
    with RunDirectory(tmp_path) as directory:
        with pytest.raises(RunChangedError, match="started with another role 'judge'") as raised:
            require_same(tmp_path, directory.journal.heads, [("role", "judge", role_at(now))])
        assert "api_base" not in str(raised.value)
        with pytest.raises(RunChangedError):
            directory.claim_role("judge", role_at(now))


# -- a run opens each file once, a pool twice (checked whole before the first call), and looks for cycles less often --
_COUNTED: list[Counter[str]] = []  # the count under way; a hook of Python's stays until the process ends


def _count(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _COUNTED and isinstance(arguments[0], str | os.PathLike):
        _COUNTED[-1][Path(arguments[0]).name] += 1


def opened(pool: Path, out: Path) -> Counter[str]:
    """How often a run opens each file, by name; a result has a temporary name until it is whole."""
    _COUNTED.append(Counter())
    try:
        evaluate(selector_with(obliging)[0], Plan([pool], out, workers=3, max_calls=1_000))
    finally:
        counted = _COUNTED.pop()
    names = {path.name for path in [*out.iterdir(), pool]}
    temporary = sum(n for name, n in counted.items() if name.endswith(".tmp"))
    return Counter({name: n for name, n in counted.items() if name in names}) + Counter({"results": temporary})


def test_each_file_is_opened_once_also_when_the_run_is_resumed(tmp_path: Path) -> None:
    sys.addaudithook(_count)
    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(8)))
    results = [opened(pool, tmp_path / "run") for _ in range(2)]
    assert results == [Counter({"capitals.jsonl": 2, "journal.jsonl": 1, ".lock": 1, "results": 5})] * 2


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_cycles_are_looked_for_less_often_and_afterwards_as_before() -> None:
    for error in (None, ZeroDivisionError()):
        gc.set_threshold(700, 9, 8)
        with suppress(ZeroDivisionError), rarer_collections():
            assert gc.get_threshold()[0] > 10_000
            assert gc.get_threshold()[1:] == (9, 8)
            if error:
                raise error
        assert gc.get_threshold() == (700, 9, 8)
    for set_by_user in ((0, 10, 10), (10**6, 5, 5)):  # switched off, rarer still
        gc.set_threshold(*set_by_user)
        with rarer_collections():
            assert gc.get_threshold() == set_by_user
        assert gc.get_threshold() == set_by_user


def test_of_two_runs_at_once_the_last_to_end_leaves_what_the_first_found() -> None:
    gc.set_threshold(700, 10, 10)
    first, second = ExitStack(), ExitStack()
    first.enter_context(rarer_collections())
    second.enter_context(rarer_collections())
    first.close()
    assert gc.get_threshold()[0] > 10_000
    second.close()
    assert gc.get_threshold() == (700, 10, 10)
