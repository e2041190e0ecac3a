"""A shard is run once and committed once, at any kill, whoever runs it; everything else is refused before a call."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError, RunLockedError, RunStoppedError
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.confirmation import SeenBeforeWarning
from eldgr_dspy.programs.run.evaluation import Plan, Watcher, evaluate
from eldgr_dspy.programs.run.locks import freeze, ledger_of
from eldgr_dspy.programs.run.results import Results
from eldgr_dspy.programs.shards import claims, commits, running
from eldgr_dspy.programs.shards.manifest import read_sharded
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.running import run_shard, uncommitted
from eldgr_dspy.programs.shards.sharding import shard_pools
from tests.capitals import obliging, selector_with, write_pool
from tests.finished_runs import numbered
from tests.refusing import refused
from tests.shards.sharded import Killed, killed, results, run_all, sharded


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return sharded(tmp_path)


def run(directory: Path, number: int = 0, reply: Callable[[Any], Any] = obliging, **plan: Any) -> int:
    """Run a shard with a scripted judge; return how many requests it took."""
    selector, lm = selector_with(reply)
    run_shard(directory, number, selector, Plan([directory], **plan))
    return len(lm.requests)


def test_a_shard_is_run_once_and_states_what_it_is(directory: Path) -> None:
    assert uncommitted(directory) == [0, 1, 2]
    assert (run(directory, 1), uncommitted(directory)) == (3, [0, 2])
    assert run(directory, 1) == 0
    made = read_sharded(directory)
    shard, claim = made.shard(1), claims.read_claim(made)
    stated = json.loads(made.marker(shard).read_text())
    assert (stated["shard"], stated["sha256"], stated["rows"]) == ("00001", shard.sha256, 3)
    assert (stated["version"], stated["run"], stated["lock"]) == (claim.version, claim.sha256, None)
    assert claim.rules == Plan([directory]).rules
    journal = (made.run(shard) / "journal.jsonl").read_text().splitlines()
    assert {line["pool"] for line in map(json.loads, journal) if line["kind"] == "consultation"} == {"capitals"}


def test_a_shard_that_was_stopped_resumes_from_its_journal(directory: Path) -> None:
    with pytest.raises(RunStoppedError):
        run(directory, max_calls=2)
    assert uncommitted(directory) == [0, 1, 2]
    assert run(directory) == 1


def test_a_kill_between_the_run_and_its_commit_asks_nothing_twice(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(running, "commit", killed)
        with pytest.raises(Killed):
            run(directory)
    assert uncommitted(directory) == [0, 1, 2]
    assert [run(directory, number) for number in range(3)] == [0, 3, 2]
    merge(directory, tmp_path / "merged")
    evaluate(selector_with(obliging)[0], Plan([tmp_path / "capitals.jsonl"], tmp_path / "plain"))
    assert results(tmp_path / "merged") == results(tmp_path / "plain")


@pytest.mark.parametrize("name", ["flush_to_disk", "sync_folder"])
def test_a_kill_while_a_shard_is_committed_leaves_all_of_the_marker_or_none(
    directory: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(directory, 2)
    with monkeypatch.context() as patch:
        patch.setattr(claims, name, killed)
        with pytest.raises(Killed):
            run(directory)
    assert uncommitted(directory) == ([0, 1] if name == "flush_to_disk" else [1])
    assert run(directory) == 0
    assert uncommitted(directory) == [1]


def test_a_kill_while_shards_are_merged_leaves_what_can_be_merged(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all(directory)
    with monkeypatch.context() as patch:
        patch.setattr(Results, "finish", killed)
        with pytest.raises(Killed):
            merge(directory, tmp_path / "run")
    assert not (tmp_path / "run" / "summary.json").exists()
    assert merge(directory, tmp_path / "run")["pools"]["capitals"]["n"] == 8


def test_two_processes_do_not_run_one_shard_at_once(directory: Path) -> None:
    run(directory, 1)
    with locked(directory / "runs" / ".00000.lock", "busy"):
        assert "another process is running shard 00000" in refused(lambda: run(directory), RunLockedError)
        assert run(directory, 2) == 2
    assert run(directory) == 3


def test_of_two_writers_of_a_file_one_wins_and_both_know(tmp_path: Path) -> None:
    assert claims.create_once(tmp_path / "a", b"first") == b"first"
    assert claims.create_once(tmp_path / "a", b"second") == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_second_commit_with_another_journal_is_refused(directory: Path) -> None:
    run(directory)
    made = read_sharded(directory)
    claim = claims.read_claim(made)
    commits.commit(made, made.shard(0), claim)
    (made.run(made.shard(0)) / "journal.jsonl").write_text("")
    assert "has committed this shard with another journal" in refused(
        lambda: commits.commit(made, made.shard(0), claim), RunChangedError
    )


def test_a_file_system_without_hard_links_is_named(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def linkless(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", linkless)
    assert "run.json: its file system must have hard links" in refused(lambda: run(directory))
    assert not list(directory.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"rules": ["majority"]}, r"rules\[0\]: \"first\" -> \"majority\""),
        ({"judges": {"mine": heuristic_selector().judge}}, r"roles.judge\[mine\]"),
        ({"recorded_for": "capitals", "replay": "recorded.jsonl"}, 'recorded_for: .* -> "capitals"'),
    ],
)
def test_another_way_to_decide_is_refused_before_a_call(
    directory: Path, tmp_path: Path, plan: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(directory)
    shutil.copy(directory / "runs" / "00000" / "journal.jsonl", "recorded.jsonl")
    with pytest.raises(RunChangedError, match=said):
        run(directory, 1, **plan)
    assert not (directory / "runs" / "00001").exists()
    assert run(directory, 1) == 3


def test_another_setting_model_and_version_are_refused_by_name(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(directory)

    def with_heuristics() -> None:
        run_shard(directory, 1, heuristic_selector(), Plan([directory]))

    def with_setting() -> None:
        run_shard(directory, 1, selector_with(obliging, certificate="token")[0], Plan([directory]))

    assert "roles.judge.module" in refused(with_heuristics, RunChangedError)
    assert 'settings.certificate: "folded" -> "token"' in refused(with_setting, RunChangedError)
    monkeypatch.setattr(claims, "installed_version", lambda: "9.9")
    assert "decided by eldgr_dspy 0.1.0; got eldgr_dspy 9.9" in refused(lambda: run(directory, 1), RunChangedError)


@pytest.mark.parametrize("plan", [{"out": "elsewhere"}, {"limit": 1}, {"fresh": True}])
def test_a_plan_that_would_not_run_the_whole_shard_is_refused(directory: Path, plan: dict[str, Any]) -> None:
    (name,) = plan
    assert f"{name} must be left out for a shard" in refused(lambda: run(directory, **plan))
    assert not (directory / "run.json").exists()


def test_an_edited_shard_is_refused_before_a_call(directory: Path) -> None:
    file = directory / "shards" / "00001.jsonl"
    file.write_text(file.read_text().replace("Nice", "Lyon", 1))
    assert f"{file}: must have the sha256" in refused(lambda: run(directory, 1), RunChangedError)
    assert run(directory) == 3


def test_what_runs_a_shard_can_be_sent_to_a_worker() -> None:
    assert pickle.loads(pickle.dumps(run_shard)) is run_shard  # noqa: S301 -- our own


# -- under a lock ------------------------------------------------------------------------------------------------------


def looks(lock: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger_of(lock).read_text().splitlines()]


def test_a_lock_sees_the_pool_once_and_not_each_shard_or_retry(tmp_path: Path) -> None:
    directory, rules = sharded(tmp_path), ["majority", "eldgr"]
    lock = freeze(heuristic_selector(), rules, tmp_path / "rule.lock.json").path
    plan: dict[str, Any] = {"rules": rules, "lock": lock, "once": True}
    with pytest.raises(Killed):
        run_shard(directory, 1, heuristic_selector(), Plan([directory], **plan), Watcher(on_row=killed))
    run_all(directory, **plan)
    (look,) = looks(lock)
    whole = read_sharded(directory).manifest.pools[0]
    assert (look["pool"], look["name"], look["questions"]) == (whole.sha256, "capitals", 8)
    merged = merge(directory, tmp_path / "merged")
    assert merged["confirmation"] is not None
    assert merged["confirmation"]["seen_before"] == {"capitals": 0}
    assert json.loads((tmp_path / "merged" / "journal.jsonl").read_text().splitlines()[0])["name"] == "lock"


def test_shards_of_a_pool_that_a_lock_has_seen_confirm_nothing(tmp_path: Path) -> None:
    directory, rules = sharded(tmp_path), ["majority", "eldgr"]
    lock = freeze(heuristic_selector(), rules, tmp_path / "rule.lock.json").path
    reversed_rows = write_pool(tmp_path / "reversed.jsonl", [*numbered(8)][::-1])
    evaluate(heuristic_selector(), Plan([reversed_rows], tmp_path / "first", rules=rules, lock=lock))
    assert "capitals were seen 1 time before" in refused(lambda: run_all(directory, rules=rules, lock=lock, once=True))
    with pytest.warns(SeenBeforeWarning):
        run_all(directory, rules=rules, lock=lock)
    merged = merge(directory, tmp_path / "merged")["confirmation"]
    assert merged is not None and merged["seen_before"] == {"capitals": 1}
    assert [one["questions"] for one in merged["earlier"]] == [8]
    again = shard_pools([tmp_path / "capitals.jsonl"], tmp_path / "again", 3).path
    with pytest.warns(SeenBeforeWarning, match="seen 2 times before"):
        run_all(again, rules=rules, lock=lock)
    assert len(looks(lock)) == 3


def test_shards_are_not_run_with_a_lock_and_then_without(tmp_path: Path) -> None:
    directory, rules = sharded(tmp_path), ["majority", "eldgr"]
    lock = freeze(heuristic_selector(), rules, tmp_path / "rule.lock.json").path
    run_shard(directory, 0, heuristic_selector(), Plan([directory], rules=rules, lock=lock))
    with pytest.raises(RunChangedError, match=r"lock: .* -> \(absent\)"):
        run_shard(directory, 1, heuristic_selector(), Plan([directory], rules=rules))
    with pytest.raises(ArgumentError, match="no such file"):
        run_shard(directory, 1, heuristic_selector(), Plan([directory], rules=rules, lock=tmp_path / "none.json"))


# -- under a limit on requests -----------------------------------------------------------------------------------------


def test_requests_are_limited_over_all_shards(directory: Path) -> None:
    assert run(directory, 0, max_calls=7) == 3
    assert run(directory, 1, max_calls=7) == 3
    selector, lm = selector_with(obliging)
    with pytest.raises(
        RunStoppedError, match="7 requests were sent or reserved by the shards, and --max-calls allows 7"
    ):
        run_shard(directory, 2, selector, Plan([directory], max_calls=7))
    assert len(lm.requests) == 1
    assert json.loads((directory / "requests.json").read_text()) == {"00000": 3, "00001": 3, "00002": 1}
    assert run(directory, 2, max_calls=8) == 1


def test_a_shard_that_was_run_without_a_limit_counts_for_the_others(directory: Path) -> None:
    assert run(directory, 0) == 3
    with pytest.raises(RunStoppedError, match="--max-calls allows 4"):
        run(directory, 1, max_calls=4)
    assert json.loads((directory / "requests.json").read_text()) == {"00000": 3, "00001": 1}


def test_what_a_killed_shard_has_reserved_counts_until_it_is_resumed(directory: Path) -> None:
    ledger = directory / "requests.json"
    ledger.write_text(json.dumps({"00000": 2}))  # as a kill may leave it
    with pytest.raises(RunStoppedError, match="4 requests were sent or reserved"):
        run(directory, 1, max_calls=4)
    assert run(directory, 0, max_calls=5) == 3
    assert json.loads(ledger.read_text()) == {"00000": 3, "00001": 2}


def test_a_ledger_of_requests_that_was_edited_is_refused(directory: Path) -> None:
    for text in ("[]", '{"00000": -1}', "{"):
        (directory / "requests.json").write_text(text)
        assert "requests.json: " in refused(lambda: run(directory, 0, max_calls=4), JournalError)
