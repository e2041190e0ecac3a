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
from tests.pools.layouts import choice, log, only, refused, rows, sample

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
    contents |= {name.replace("__", "/").replace("_json", ".json"): content for name, content in files.items()}
    with zipfile.ZipFile(path, "w", method) as out:
        for name, content in contents.items():
            if content is not None:
                out.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def packed_by_zstd(path: Path) -> Path:
    """The same archive, its files packed by zstd, as recent versions of inspect write them."""
    import pyarrow

    with zipfile.ZipFile(path) as found:
        files = [(one.filename, found.read(one)) for one in found.infolist()]
    with zipfile.ZipFile(path, "w") as out:
        for name, content in files:
            half = len(content) // 2
            packed = b"".join(pyarrow.compress(one, "zstd", asbytes=True) for one in (content[:half], content[half:]))
            out.writestr(name, packed)
    data = bytearray(path.read_bytes())
    place, local = data.index(b"PK\x01\x02"), 0
    for _, content in files:
        size, encoded, extra, comment = (
            *struct.unpack_from("<I", data, place + 20),
            *struct.unpack_from("<3H", data, place + 28),
        )
        for start in (local + 8, place + 10):
            struct.pack_into("<H", data, start, 93)
            struct.pack_into("<I", data, start + 6, zlib.crc32(content))
            struct.pack_into("<I", data, start + 14, len(content))
        local += 30 + encoded + size
        place += 46 + encoded + extra + comment
    path.write_bytes(data)
    return path


def said_by(path: Path) -> list[tuple[str | None, str | None, list[str]]]:
    return [(entry.id, entry.question, [one.text for one in entry.samples]) for entry in read_predictions(path)]


def test_epochs_and_choices_are_samples_and_the_order_is_that_of_the_log_in_json(tmp_path: Path) -> None:
    expected = [
        (name, f"{name}?", [text for epoch in (1, 2) for text in (f"{name}, {epoch}", "b")])
        for name in ("9", "10", "a/b ü")
    ]
    assert said_by(archive(tmp_path / "log.eval", *SAMPLES, method=zipfile.ZIP_STORED)) == expected
    path = archive(tmp_path / "log.eval", *SAMPLES)
    assert said_by(path) == expected
    assert said_by(path.rename(tmp_path / "log.json")) == expected  # it is known by its first bytes, too
    assert said_by(packed_by_zstd(path.with_suffix(".json"))) == expected


def test_a_pool_is_built_of_it(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.eval", *SAMPLES)
    built = build_pool(Recipe([path], "retrieval"), tmp_path / "pool.jsonl")
    one = rows(built)[0]
    assert (built.pool.n, one.gold, len(one.candidates), one.candidates[3].source) == (3, ["Ana"], 4, "log.eval #4")


def test_without_pyarrow_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed_by_zstd(archive(tmp_path / "log.eval", *SAMPLES))
    with zipfile.ZipFile(path) as found:
        if sys.version_info >= (3, 14):  # where Python itself unpacks it
            assert found.read("header.json")
            return
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refused(lambda: said_by(path)) == (
        f"{path}: is packed by zstd, which needs pyarrow; run: pip install 'eldgr_dspy[parquet]'. Or write the log as "
        "JSON: inspect log dump log.eval > log.json"
    )


def test_a_log_that_was_never_finished_is_started_and_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    about = {"eval": {"dataset": {"samples": 3}, "config": {"epochs": 4}}}
    path = archive(tmp_path / "log.eval", *SAMPLES, header_json=None, _journal__start_json=about)
    assert refused(lambda: said_by(path)).startswith(
        f"{path}: a log of status 'started', with 6 of 12 samples done. Its first questions would represent all of"
    )
    told = list[str]()
    assert len(list(read_predictions(path, unfinished=True, notes=told))) == 3
    assert told == [f"{path}: a log of status 'started', with 6 of 12 samples done."]


def test_of_a_sample_that_was_written_again_the_last_one_counts(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.eval", sample(output={"completion": "first"}))
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "a") as log:
        log.writestr("samples/1_epoch_1.json", json.dumps(sample(output={"completion": "again"})))
    assert said_by(path)[0][2] == ["again"]


@pytest.mark.parametrize(
    ("samples", "files", "message"),
    [
        ([], {}, ": must be a log of inspect with samples, and has none."),
        ([], {"header_json": None, "_journal__start_json": None}, ": not a log of inspect: the archive has no header"),
        (SAMPLES, {"header_json": [1]}, ", header.json: must be an object with named fields; got [1] (list)."),
        (SAMPLES, {"header_json": b"{"}, ": the log is cut off or damaged (Expecting property name enclosed in double"),
        (SAMPLES, {"samples__x_json": b"\xff"}, ": the log is cut off or damaged ('utf-8' codec can't decode byte"),
        (SAMPLES, {"samples__x_json": b"[" * 100_000}, ", samples/x.json: nested too deeply, more than 100 lists"),
        (SAMPLES, {"samples__x_json": 5}, ", samples/x.json: must be an object with named fields; got 5 (int)."),
        ([], {"samples__x_json": {"epoch": []}}, ", samples/x.json: id or epoch is missing or invalid; expected a log"),
        (SAMPLES, {"samples__x_json": SAMPLES[0]}, "samples/x.json: id '10' and epoch 2 are also in "),
    ],
)
def test_what_is_wrong_with_a_log_is_named(tmp_path: Path, samples: list[Any], files: Any, message: str) -> None:
    path = archive(tmp_path / "log.eval", *samples, **files)
    assert message in refused(lambda: said_by(path))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"id,question\n", b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_not_such_an_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.eval").write_bytes(content)
    error = refused(lambda: said_by(tmp_path / "log.eval"))
    assert "the log is cut off or damaged (" in error or "not a log of inspect: the archive has no header.json" in error


def test_nothing_of_another_archive_is_loaded(tmp_path: Path) -> None:  # hazard 96
    with zipfile.ZipFile(tmp_path / "weights.npz", "w") as out:
        out.writestr("../data.pkl", b"\x80\x04.")
    assert "not a log of inspect: the archive has no header.json" in refused(lambda: said_by(tmp_path / "weights.npz"))


def test_a_log_expands_no_further_than_other_files_do(tmp_path: Path) -> None:  # hazard 95
    path = archive(tmp_path / "log.eval", samples__x_json=b" " * (80 * 2**20))
    assert f"{path}: expands to more than " in refused(lambda: said_by(path))


@cache
def whole(folder: Path, zstd: bool) -> bytes:
    """The bytes of a log."""
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
        for name, question, texts in said_by(path):
            assert question == f"{name}?" and {*texts} <= {f"{name}, 1", f"{name}, 2", "b"}


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
    assert "No such file or directory. Check the name" in refused(lambda: read_whole(tmp_path / "x", 100, "split it"))
