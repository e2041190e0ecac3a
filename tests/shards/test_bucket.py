"""Shards in a bucket give the run that one process gives; of two writers one wins, and what was changed is refused."""

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.shards import buckets, commits, running
from eldgr_dspy.programs.shards.buckets import Bucket, bucket_at
from eldgr_dspy.programs.shards.claims import read_claim
from eldgr_dspy.programs.shards.manifest import Sharded, read_sharded
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.ray_engine import run_on_ray
from eldgr_dspy.programs.shards.running import run_shard, uncommitted
from eldgr_dspy.programs.shards.sharding import shard_pools
from tests.capitals import obliging, selector_with, write_pool
from tests.finished_runs import numbered
from tests.refusing import refused
from tests.shards.object_store import SECRET, Server, content, edit, names, new_bucket, serving
from tests.shards.sharded import Killed, killed, results, run_all


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[Server, str]]:
    with serving() as server:
        yield server


@pytest.fixture
def server(started: tuple[Server, str]) -> Iterator[Server]:
    yield started[0]
    started[0].reset()


@pytest.fixture
def empty(server: Server, started: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a place without shards, from a machine in a folder of its own with a pool."""
    machine("first", tmp_path, monkeypatch)
    monkeypatch.setattr(buckets, "RETRIES", 2)
    write_pool(tmp_path / "capitals.jsonl", numbered(8))
    return new_bucket(started[1], monkeypatch)


@pytest.fixture
def url(empty: str, tmp_path: Path) -> str:
    """The address of three shards."""
    shard_pools([tmp_path / "capitals.jsonl"], empty, 3)
    return empty


def machine(name: str, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    """Continue on a machine that has a disk of its own."""
    (tmp_path / name).mkdir(exist_ok=True)
    patch.chdir(tmp_path / name)


def run(url: str, number: int = 0, reply: Callable[[Any], Any] = obliging, **plan: Any) -> int:
    """Run a shard with a scripted judge; return how many requests it took."""
    selector, lm = selector_with(reply)
    run_shard(url, number, selector, Plan([url], **plan))
    return len(lm.requests)


def plain(tmp_path: Path, scripted: bool = True) -> dict[str, Any]:
    """The results of the pool run in one piece."""
    selector = selector_with(obliging)[0] if scripted else heuristic_selector()
    evaluate(selector, Plan([tmp_path / "capitals.jsonl"], tmp_path / "plain"))
    return results(tmp_path / "plain")


def test_the_three_commands_in_a_bucket_give_the_run_of_one_process(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pool", "shard", "../capitals.jsonl", "--rows", "3", "--out", f"{empty}/"]) == 0
    machine("second", tmp_path, monkeypatch)
    assert main(["evaluate", empty, "--shard", "1"]) == 0
    assert f"eldgr merge {empty}" in capsys.readouterr().err
    machine("third", tmp_path, monkeypatch)
    assert uncommitted(empty) == [0, 2]
    assert main(["evaluate", empty, "--quiet"]) == 0
    machine("fourth", tmp_path, monkeypatch)
    assert main(["merge", empty, "--out", "merged"]) == 0
    assert results(Path("merged")) == plain(tmp_path, scripted=False)
    shards = [f"shards/{number:05d}.jsonl" for number in range(3)]
    done = [json.loads(content(empty, f"done/{number:05d}.json")) for number in range(3)]
    runs = [
        f"runs/{one['shard']}/{one['journal']}/{name}" for one in done for name in ("journal.jsonl", "summary.json")
    ]
    files = ["done/00000.json", "done/00001.json", "done/00002.json", "manifest.json", "order.jsonl"]
    assert names(empty) == sorted([*files, *runs, "run.json", *shards])
    for one in done:
        journal = content(empty, f"runs/{one['shard']}/{one['journal']}/journal.jsonl")
        assert sha256(journal).hexdigest() == one["journal"]


def test_a_shard_that_is_done_is_run_on_no_machine_again(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(url, 2) == 2
    machine("second", tmp_path, monkeypatch)
    assert run(url, 2) == 0
    assert uncommitted(url) == [0, 1]


def test_of_many_writers_of_a_file_one_wins_and_all_know(empty: str) -> None:
    for turn in range(5):
        with ThreadPoolExecutor(16) as threads:
            won = [*threads.map(lambda n, turn=turn: _at(empty).create(f"{turn}.json", b"%d" % n), range(16))]
        assert sum(won) == 1
        assert content(empty, f"{turn}.json") == b"%d" % won.index(True)


def _at(url: str) -> Bucket:
    bucket = bucket_at(url)
    assert bucket is not None
    return bucket


def test_of_two_first_shards_one_states_what_decides(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pull, once = Sharded.pull, [True]

    def meanwhile(sharded: Sharded, *paths: Path) -> None:
        pull(sharded, *paths)
        if once and once.pop():
            machine("second", tmp_path, monkeypatch)
            run(url, 1)
            machine("first", tmp_path, monkeypatch)

    monkeypatch.setattr(Sharded, "pull", meanwhile)
    assert run(url, 0) == 3
    assert {json.loads(content(url, f"done/0000{n}.json"))["run"] for n in (0, 1)} == {
        sha256(content(url, "run.json")).hexdigest()
    }
    once.append(True)
    edit(url, "done/00001.json", None)
    edit(url, "run.json", None)
    with pytest.raises(RunChangedError, match=rf"{url}: its shards are decided with something else:\n *rules\[0\]"):
        run(url, 2, rules=["majority"])


def test_the_loser_of_a_race_is_told_and_overwrites_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = commits.commit

    def late(*given: Any) -> None:
        monkeypatch.setattr(running, "commit", commit)
        machine("second", tmp_path, monkeypatch)
        assert run(url, 0) == 3
        machine("first", tmp_path, monkeypatch)
        commit(*given)

    monkeypatch.setattr(running, "commit", late)
    said = refused(lambda: run(url, 0), RunChangedError)
    assert f"{url}/done/00000.json: another process has committed this shard with another journal" in said
    assert "That one counts; the replies of this one are in working-copies/" in said
    assert len([name for name in names(url) if name.startswith("runs/")]) == 4
    assert [run(url, number) for number in range(3)] == [0, 3, 2]
    merge(url, tmp_path / "merged")
    assert results(tmp_path / "merged") == plain(tmp_path)
    kept = (read_sharded(url).path / "runs" / "00000" / "journal.jsonl").read_bytes()
    assert kept not in (tmp_path / "merged" / "journal.jsonl").read_bytes()


def test_who_finds_the_own_marker_is_content(url: str) -> None:
    run(url, 0)
    made = read_sharded(url)
    before = names(url)
    commits.commit(made, made.shard(0), read_claim(made))
    assert names(url) == before


@pytest.mark.parametrize("late", ["marker", "everything"])
def test_a_kill_before_the_marker_asks_nothing_twice(
    url: str, late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if late == "everything":
            patch.setattr(running, "commit", killed)
        else:
            patch.setattr(commits, "state_once", killed)
        with pytest.raises(Killed):
            run(url)
    assert uncommitted(url) == [0, 1, 2]
    assert [run(url, number) for number in range(3)] == [0, 3, 2]
    merge(url, tmp_path / "merged")
    assert results(tmp_path / "merged") == plain(tmp_path)


def test_a_marker_that_was_deleted_on_a_machine_is_still_in_the_bucket(url: str) -> None:
    run(url, 0)
    made = read_sharded(url)
    made.marker(made.shard(0)).unlink()
    (made.path / "run.json").write_text("{}")
    assert run(url, 0) == 0


# -- what was changed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("done/00001.json", b"{}", "done/00001.json: not what eldgr evaluate writes"),
        ("done/00001.json", None, "1 of 3 shards are not done .00001.. Run eldgr evaluate s3://"),
        ("shards/00001.jsonl", b"{}\n", "shards/00001.jsonl: must have the sha256 .* It was edited"),
        ("shards/00001.jsonl", None, "shards/00001.jsonl: no such file, and s3://.*/manifest.json names it"),
        ("journal.jsonl", b"{}\n", "/journal.jsonl: changed since its shard was committed"),
        ("journal.jsonl", None, "/journal.jsonl: no such file, and its shard is committed"),
        ("summary.json", None, "/summary.json: no such file, and its shard is committed"),
        ("order.jsonl", b"[0, 8]\n", "order.jsonl: not the one that manifest.json names"),
        ("run.json", b"{}", "run.json: not what eldgr evaluate writes"),
        ("run.json", None, "no shard was run"),
        ("manifest.json", b"{}", "manifest.json: version: Field required"),
    ],
)
def test_a_merge_refuses_what_was_changed_in_the_bucket(url: str, name: str, data: bytes | None, said: str) -> None:
    run_all(url)
    if "/" not in name and name in ("journal.jsonl", "summary.json"):
        name = next(one for one in names(url) if one.startswith("runs/00001/") and one.endswith(name))
    edit(url, name, data)
    with pytest.raises((ArgumentError, RunChangedError), match=said) as caught:
        merge(url, "merged")
    assert f"{url}" in str(caught.value)
    assert not Path("merged").exists()


def test_a_merge_that_was_refused_succeeds_after_the_file_was_restored(url: str, tmp_path: Path) -> None:
    run_all(url)
    journal = next(one for one in names(url) if one.startswith("runs/00001/") and one.endswith("journal.jsonl"))
    for name in (journal, "shards/00002.jsonl"):
        before = content(url, name)
        edit(url, name, before + b"\n")
        refused(lambda: merge(url, "merged"), RunChangedError)
        edit(url, name, before)
    merge(url, "merged")
    assert results(Path("merged")) == plain(tmp_path, scripted=False)


def test_a_shard_edited_in_the_bucket_is_not_run(url: str) -> None:
    edit(url, "shards/00000.jsonl", content(url, "shards/00001.jsonl"))
    assert f"{url}/shards/00000.jsonl: must have the sha256" in refused(lambda: run(url), RunChangedError)
    assert "done/00000.json" not in names(url)


def test_another_manifest_has_another_working_copy(url: str, tmp_path: Path) -> None:
    run(url, 0)
    for name in names(url):
        edit(url, name, None)
    shard_pools([tmp_path / "capitals.jsonl"], url, 4)
    assert [run(url, number) for number in (0, 1)] == [4, 4]


# -- cutting -----------------------------------------------------------------------------------------------------------


def test_a_place_that_has_shards_is_left_as_it_is(url: str, tmp_path: Path) -> None:
    before = {name: content(url, name) for name in names(url)}
    with pytest.raises(ArgumentError, match=f"out='{url}' holds shards already"):
        shard_pools([write_pool(tmp_path / "other.jsonl", numbered(5))], url, 2)
    edit(url, "manifest.json", None)
    with pytest.raises(ArgumentError, match=f"out='{url}' has order.jsonl of other shards"):
        shard_pools([tmp_path / "other.jsonl"], url, 2)
    after = {name: content(url, name) for name in names(url)}
    assert after == {name: data for name, data in before.items() if name != "manifest.json"}


def test_a_cut_that_was_killed_is_completed(url: str, tmp_path: Path) -> None:
    before = {name: content(url, name) for name in names(url)}
    edit(url, "manifest.json", None)
    edit(url, "shards/00002.jsonl", None)
    shard_pools([tmp_path / "capitals.jsonl"], url, 3)
    assert {name: content(url, name) for name in names(url)} == before


def test_a_server_without_conditions_is_refused(server: Server, empty: str, tmp_path: Path) -> None:
    server.unconditional = True
    with pytest.raises(ArgumentError, match="its server must refuse a second file of one name"):
        shard_pools([tmp_path / "capitals.jsonl"], empty, 3)
    assert "manifest.json" not in names(empty)


# -- a store that cannot be reached ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["fails", "drops"])
def test_a_request_that_failed_once_is_sent_again(url: str, server: Server, fault: str, tmp_path: Path) -> None:
    seen = set[tuple[str, str]]()

    def first(method: str, path: str) -> bool:
        known = (method, path) in seen
        seen.add((method, path))
        return not known

    setattr(server, fault, first)
    run_all(url)
    merge(url, "merged")
    server.reset()
    assert results(Path("merged")) == plain(tmp_path, scripted=False)


def test_a_marker_whose_answer_was_lost_counts_as_written(url: str, server: Server, tmp_path: Path) -> None:
    """The request is sent again, and then refused, because the marker is there: it is that of this process."""
    lost = list[str]()

    def first(method: str, path: str) -> bool:
        known = path in lost
        lost.extend([path] * (method == "PUT"))
        return method == "PUT" and not known

    server.forgets = first
    run_all(url)
    assert sum("/done/" in path for path in set(lost)) == 3
    merge(url, "merged")
    assert results(Path("merged")) == plain(tmp_path, scripted=False)


@pytest.mark.parametrize("fault", ["fails", "drops"])
@pytest.mark.parametrize(
    ("method", "path", "command", "said"),
    [
        ("GET", "/manifest.json", "evaluate", "/manifest.json could not be read: "),
        ("GET", "/shards/00000.jsonl", "evaluate", "/shards/00000.jsonl could not be read: "),
        ("PUT", "/journal.jsonl", "evaluate", "/journal.jsonl could not be written: "),
        ("PUT", "/done/00000.json", "evaluate", "/done/00000.json could not be written: "),
        ("GET", "/order.jsonl", "merge", "/order.jsonl could not be read: "),
    ],
)
def test_a_request_that_always_fails_ends_in_a_sentence(
    url: str,
    server: Server,
    fault: str,
    method: str,
    path: str,
    command: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if command == "merge":
        run_all(url)
    setattr(server, fault, lambda *asked: asked[0] == method and asked[1].endswith(path))
    assert main([command, url]) in (1, 3)
    printed = capsys.readouterr().err
    assert f"{url}/" in printed
    assert said in printed
    assert "Check the address, the network and the credentials" in printed
    assert "Traceback" not in printed
    assert "Debug source" not in printed
    assert printed.count("could not be") == 1
    server.reset()
    assert command == "merge" or "done/00000.json" not in names(url)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AWS_ACCESS_KEY_ID", None, "could not be opened: .*Missing AccessKeyId"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", "could not be read: .*after 2 retries"),
        ("AWS_ALLOW_HTTP", "false", "could not be read: "),
    ],
)
def test_what_the_environment_lacks_is_said_without_what_it_has(
    url: str, name: str, value: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name)
    if value is not None:
        monkeypatch.setenv(name, value)
    with pytest.raises(ArgumentError, match=said) as caught:
        run(url)
    assert SECRET not in str(caught.value)


def test_a_bucket_that_does_not_exist_is_named(url: str) -> None:
    with pytest.raises(ArgumentError, match=r"s3://no-such/x/manifest.json could not be read: .*404"):
        run("s3://no-such/x")
    with pytest.raises(ArgumentError, match=f"{url}/nothing: has no manifest.json"):
        run(f"{url}/nothing")


@pytest.mark.parametrize(
    "given",
    [
        "ftp://host/x",
        "file:///tmp/x",
        "s3://",
        "s3:///x",
        "s3://a/b?x=1",
        "s3://a/b#c",
        "s3://[/x",
    ],
)
def test_an_address_of_no_store_is_refused(given: str) -> None:
    assert "an address must be s3://BUCKET/PREFIX" in refused(lambda: run(given))


@pytest.mark.parametrize("given", ["s3://a//b", "s3://b a/x"])
def test_an_address_that_a_store_does_not_take_is_refused(given: str) -> None:
    assert f"{given} could not be opened: " in refused(lambda: run(given))


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    said = refused(lambda: run(f"s3://key:{SECRET}@bucket/x"))
    assert "Credentials are taken from the environment" in said
    assert SECRET not in said


def test_credentials_are_in_no_file(url: str, tmp_path: Path) -> None:
    run_all(url)
    merge(url, "merged")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


# -- what is not offered -----------------------------------------------------------------------------------------------


def test_a_limit_that_would_not_hold_is_refused(url: str) -> None:
    assert "max_calls must be left out for shards in a bucket; got 5" in refused(lambda: run(url, max_calls=5))
    assert "run.json" not in names(url)


def test_ray_needs_a_directory(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", url, "--engine", "ray"]) == 2
    assert "--engine ray cannot be used with a bucket. Its processes share a directory." in capsys.readouterr().err


def test_ray_refuses_an_address_in_python_too() -> None:
    said = refused(
        lambda: run_on_ray(
            "s3://bucket/shards", lambda: nullcontext((heuristic_selector(), Plan(["s3://bucket/shards"])))
        )
    )
    assert "directory must be a directory on a disk; got s3://bucket/shards. Workers share it." in said


@pytest.mark.parametrize("command", ["evaluate", "merge"])
def test_a_run_is_not_written_to_an_address(command: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_all(url)
    given = {"evaluate": str(write_pool(Path("one.jsonl"), numbered(1))), "merge": url}[command]
    assert main([command, given, "--out", f"s3://key:{SECRET}@bucket/run"]) == 1
    said = capsys.readouterr().err
    assert "out must be a directory on a disk; got s3://" in said
    assert "Write the run to a disk, and copy it." in said
    assert SECRET not in said
    assert not Path("s3:").exists()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    assert (
        refused(lambda: bucket_at("s3://a/b"))
        == "A bucket needs the package obstore; run: pip install 'eldgr_dspy[bucket]'"
    )
    assert bucket_at("a/b") is None
