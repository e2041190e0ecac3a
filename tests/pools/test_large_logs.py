"""A log of inspect is in memory whole, so that its length is bounded; how its lines are broken does not matter."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.base.file_limits import MAX_LINE, RAISE, expansion_limit
from eldgr_dspy.base.files import read_whole
from eldgr_dspy.programs.pools.logs import MAX_LOG
from tests.pools.layouts import log, only, sample
from tests.pools.refused_pools import refused


def test_a_log_above_the_limit_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log(tmp_path / "log.json", sample())
    monkeypatch.setattr("eldgr_dspy.programs.pools.logs.MAX_LOG", path.stat().st_size)
    assert only(path).id == "1"
    with path.open("ab") as file:
        file.write(b"\n")
    assert refused(lambda: only(path)) == (
        f"{path}: holds more than {path.stat().st_size - 1:,} bytes, the limit for reading it whole; write the "
        f"samples of such a log as JSON lines with id, prediction and gold. {RAISE} The name of a file of JSON "
        "lines ends in .jsonl."
    )


def test_the_limit_is_of_the_log_as_it_is_unpacked(tmp_path: Path) -> None:  # hazard 95
    path = tmp_path / "log.json"
    path.write_bytes(gzip.compress(json.dumps({"samples": [sample()]}).encode() + b" " * 2**21))
    assert only(path).id == "1" and path.stat().st_size < 10_000
    assert MAX_LOG > MAX_LINE


def test_a_log_may_be_one_line_longer_than_a_row_may_be(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    events = ["x" * 2**20] * 17
    path.write_text(json.dumps({"samples": [sample(events=events)]}), encoding="utf-8")
    assert path.stat().st_size > MAX_LINE and only(path).id == "1"


# --- a file that is read whole ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_what_is_read_whole_is_bounded_by_what_it_holds_unpacked(tmp_path: Path, pack: Any) -> None:  # hazard 95
    path = tmp_path / "f"
    path.write_bytes(pack(b"\xef\xbb\xbf" + b"a\r\n" * 10))
    assert read_whole(path, 33, "split it") == b"a\r\n" * 10
    assert refused(lambda: read_whole(path, 32, "split it")) == (
        f"{path}: holds more than 32 bytes, the limit for reading it whole; split it. {RAISE}"
    )


def test_what_is_read_whole_expands_no_further_than_lines_do(tmp_path: Path) -> None:  # hazard 95
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(bytes(80 * 2**20)))
    limit = expansion_limit(path.stat().st_size)
    assert f"{path}: expands to more than {limit:,} bytes" in refused(lambda: read_whole(path, 2**40, "split it"))


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\x80\x04", "a pickle"), (gzip.compress(b"a" * 99)[:-9], "damaged")],
    ids=["pickle", "torn"],
)
def test_what_cannot_be_read_cannot_be_read_whole(tmp_path: Path, content: bytes, message: str) -> None:  # hazard 96
    (tmp_path / "f").write_bytes(content)
    assert message in refused(lambda: read_whole(tmp_path / "f", 100, "split it"))
    assert "No such file or directory. Check the name" in refused(
        lambda: read_whole(tmp_path / "absent", 100, "split it")
    )
