"""Inspect's binary log says what its JSON log says; a damaged one is refused, and what is read whole is bounded."""

import gzip
import json
import struct
import sys
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.base.file_limits import MAX_LINE, RAISE, expansion_limit
from eldgr_dspy.base.files import read_whole
from eldgr_dspy.errors import PoolError
from eldgr_dspy.programs.pools.building import Recipe, build_pool
from eldgr_dspy.programs.pools.logs import MAX_LOG
from eldgr_dspy.programs.pools.predictions import read_predictions
from tests.case_tables import each_case
from tests.pools import layouts
from tests.pools.layouts import choice, log, only, refusal, rows, sample
from tests.refusing import says

HEADER = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
SAMPLES = [
    sample(id=name, epoch=epoch, input=f"{name}?", output={"choices": [choice(f"{name}, {epoch}"), choice("b")]})
    for epoch in (2, 1)
    for name in (10, 9, "a/b ü")
]


def archive(path: Path, *samples: Mapping[str, Any], method: int = zipfile.ZIP_DEFLATED, **files: Any) -> Path:
    """A log as inspect writes it, perhaps with other files; None leaves one out."""
    contents: dict[str, Any] = {"_journal/start.json": {"version": 2, "eval": HEADER["eval"], "plan": {}}}
    contents |= {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in samples}
    contents |= {"_journal/summaries/1.json": [], "summaries.json": [], "header.json": HEADER}
    contents |= files
    with zipfile.ZipFile(path, "w", method) as out:
        for name, content in contents.items():
            if content is not None:
                out.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def packed_by_zstd(path: Path) -> Path:
    """The same archive, its files packed by zstd, as recent versions of inspect write them."""
    import pyarrow

    with zipfile.ZipFile(path) as source:
        files = [(one.filename, source.read(one)) for one in source.infolist()]
    with zipfile.ZipFile(path, "w") as out:
        for name, content in files:
            half = len(content) // 2
            block = b"".join(pyarrow.compress(one, "zstd", asbytes=True) for one in (content[:half], content[half:]))
            out.writestr(name, block)
    data = bytearray(path.read_bytes())
    place, local = data.index(b"PK\x01\x02"), 0
    for _, content in files:
        size, _, length, extra, comment = struct.unpack_from("<2I3H", data, place + 20)
        for start in (local + 8, place + 10):
            struct.pack_into("<H", data, start, 93)
            struct.pack_into("<I", data, start + 6, zlib.crc32(content))
            struct.pack_into("<I", data, start + 14, len(content))
        local += 30 + length + size
        place += 46 + length + extra + comment
    path.write_bytes(data)
    return path


def content_of(path: Path) -> list[tuple[str | None, str | None, list[str]]]:
    return [(entry.id, entry.question, [one.text for one in entry.samples]) for entry in read_predictions(path)]


def test_epochs_and_choices_are_samples_and_the_order_is_that_of_the_log_in_json(tmp_path: Path) -> None:
    expected = [(one, f"{one}?", [f"{one}, 1", "b", f"{one}, 2", "b"]) for one in ("9", "10", "a/b ü")]
    assert content_of(archive(tmp_path / "log.eval", *SAMPLES, method=zipfile.ZIP_STORED)) == expected
    path = archive(tmp_path / "log.eval", *SAMPLES)
    assert content_of(path) == expected
    assert content_of(path.rename(tmp_path / "log.json")) == expected  # it is known by its first bytes, too
    assert content_of(packed_by_zstd(path.with_suffix(".json"))) == expected
    outcome = build_pool(Recipe([archive(tmp_path / "log.eval", *SAMPLES)], "retrieval"), tmp_path / "pool.jsonl")
    one = rows(outcome)[0]
    assert (outcome.pool.n, one.gold, len(one.candidates), one.candidates[3].source) == (3, ["Ana"], 4, "log.eval #4")


def test_without_pyarrow_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed_by_zstd(archive(tmp_path / "log.eval", *SAMPLES))
    with zipfile.ZipFile(path) as source:
        if sys.version_info >= (3, 14):  # where Python itself unpacks it
            assert source.read("header.json")
            return
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refusal(lambda: content_of(path)) == (
        f"{path}: is packed by zstd, which needs pyarrow; run: pip install 'eldgr_dspy[parquet]'. Or write the log as "
        "JSON: inspect log dump log.eval > log.json"
    )


def test_a_log_that_was_never_finished_is_started_and_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    about = {"eval": {"dataset": {"samples": 3}, "config": {"epochs": 4}}}
    files: dict[str, Any] = {"header.json": None, "_journal/start.json": about}
    path = archive(tmp_path / "log.eval", *SAMPLES, **files)
    assert refusal(lambda: content_of(path)).startswith(
        f"{path}: a log of status 'started', with 6 of 12 samples done. Its first questions would represent all of"
    )
    notes = list[str]()
    assert len(list(read_predictions(path, unfinished=True, notes=notes))) == 3
    assert notes == [f"{path}: a log of status 'started', with 6 of 12 samples done."]


def test_of_a_sample_that_was_written_again_the_last_one_counts(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.eval", sample(output={"completion": "first"}))
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "a") as log:
        log.writestr("samples/1_epoch_1.json", json.dumps(sample(output={"completion": "again"})))
    assert content_of(path)[0][2] == ["again"]


@each_case("pools", "refused archives", **layouts.WORDS)
def test_what_is_wrong_with_a_log_is_named(tmp_path: Path, n: int, files: Any, sentence: str) -> None:  # hazard 95
    path = archive(tmp_path / "log.eval", *SAMPLES[:n], **files)
    assert says(sentence, refusal(lambda: content_of(path)).replace(f"{tmp_path}/", ""))


@each_case("pools", "files that are not archives", **layouts.WORDS)
def test_a_file_that_is_no_such_archive_is_refused(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert says(sentence, refusal(lambda: content_of(tmp_path / name)).replace(f"{tmp_path}/", ""))


def test_nothing_of_another_archive_is_loaded(tmp_path: Path) -> None:  # hazard 96
    with zipfile.ZipFile(tmp_path / "weights.npz", "w") as out:
        out.writestr("../data.pkl", b"\x80\x04.")
    message = refusal(lambda: content_of(tmp_path / "weights.npz"))
    assert "not a log of inspect: the archive has no header.json" in message


@cache
def whole(folder: Path, zstd: bool) -> bytes:
    path = archive(folder / "whole.eval", *SAMPLES)
    return (packed_by_zstd(path) if zstd else path).read_bytes()


@given(st.data(), st.booleans())
def test_a_log_that_is_cut_off_or_damaged_is_refused_or_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, zstd: bool
) -> None:  # hazard 88
    folder = tmp_path_factory.getbasetemp()
    content = bytearray(whole(folder, zstd))
    if data.draw(st.booleans(), "cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1), "length")]
    else:
        content[data.draw(st.integers(0, len(content) - 1), "place")] ^= data.draw(st.integers(1, 255), "bits")
    path = folder / "hurt.eval"
    path.write_bytes(content)
    with suppress(PoolError):
        for name, question, texts in content_of(path):
            assert question == f"{name}?" and {*texts} <= {f"{name}, 1", f"{name}, 2", "b"}


def test_a_log_has_a_limit_of_its_own_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # hazard 95
    path = tmp_path / "log.json"
    path.write_bytes(gzip.compress(json.dumps({"samples": [sample()]}).encode() + b" " * 2**21))
    assert only(path).id == "1" and path.stat().st_size < 10_000
    path.write_text(json.dumps({"samples": [sample(events=["x" * 2**20] * 17)]}), encoding="utf-8")
    assert MAX_LOG > path.stat().st_size > MAX_LINE and only(path).id == "1"
    log(path, sample())
    monkeypatch.setattr("eldgr_dspy.programs.pools.logs.MAX_LOG", path.stat().st_size)
    assert only(path).id == "1"
    with path.open("ab") as file:
        file.write(b"\n")
    assert refusal(lambda: only(path)) == (
        f"{path}: holds more than {path.stat().st_size - 1:,} bytes, the limit for reading it whole; write the "
        f"samples of such a log as JSON lines with id, prediction and gold. {RAISE} The name of a file of JSON "
        "lines ends in .jsonl."
    )


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_what_is_read_whole_is_bounded_by_what_it_holds_unpacked(tmp_path: Path, pack: Any) -> None:  # hazard 95
    path = tmp_path / "f"
    path.write_bytes(pack(b"\xef\xbb\xbf" + b"a\r\n" * 10))
    assert read_whole(path, 33, "split it") == b"a\r\n" * 10
    assert refusal(lambda: read_whole(path, 32, "split it")) == (
        f"{path}: holds more than 32 bytes, the limit for reading it whole; split it. {RAISE}"
    )


def test_what_cannot_be_read_or_expands_too_far_cannot_be_read_whole(tmp_path: Path) -> None:  # hazards 95, 96
    path = tmp_path / "f"
    for content, message in ((b"\x80\x04", "a pickle"), (gzip.compress(b"a" * 99)[:-9], "damaged")):
        path.write_bytes(content)
        assert message in refusal(lambda: read_whole(path, 100, "split it"))
    assert "No such file or directory. Check the name" in refusal(lambda: read_whole(tmp_path / "x", 100, "split it"))
    path.write_bytes(gzip.compress(bytes(80 * 2**20)))
    limit = expansion_limit(path.stat().st_size)
    assert f"{path}: expands to more than {limit:,} bytes" in refusal(lambda: read_whole(path, 2**40, "split it"))
