"""A file is written whole or not at all; what is read is bounded, split at newlines alone, and never loaded as code."""

import errno
import gzip
import io
import os
import pickle
import random
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.base.file_limits import MAX_LINE, RAISE, expansion_limit
from eldgr_dspy.base.files import read_lines, read_object, replacing, require_file, safe_name
from eldgr_dspy.errors import PoolError
from tests.case_tables import each_case
from tests.pools import layouts
from tests.pools.layouts import refusal
from tests.refusing import refuses


def write_atomically(path: Path, chunks: Iterable[str]) -> None:
    with replacing(path) as out:
        for chunk in chunks:
            out.write(chunk.encode("utf-8"))


def lines_of(path: Path) -> list[bytes]:
    return [line for _, line in read_lines(path)]


def test_chunks_are_written_as_utf_8_to_a_file_like_any_new_one_of_any_name(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    for name in ("f", "x" * 255):
        write_atomically(tmp_path / name, ["é\n", "", "\r\n\u2028"])
        assert (tmp_path / name).read_bytes() == "é\n\r\n\u2028".encode()
        assert (tmp_path / name).stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    with replacing(path) as out:
        out.write(b"new")
        out.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_where_a_temporary_file_cannot_be_removed_the_error_of_the_write_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", read_only)
    with pytest.raises(OSError, match="no space"), replacing(tmp_path / "f"):
        raise OSError(errno.ENOSPC, "no space")


@pytest.mark.parametrize("name", ["folder", "pipe", "link", "broken"])
def test_what_is_not_a_file_is_never_replaced_by_one(tmp_path: Path, name: str) -> None:
    """As `--out /dev/stdout` would have it, given by root."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "f").write_text("old")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "broken").symlink_to("nowhere")
    there = sorted(tmp_path.iterdir())
    message = f"The path is a link, a folder, a pipe or a device: .*{name}"
    refuses(FileExistsError, message, write_atomically, tmp_path / name, ["new"])
    assert (sorted(tmp_path.iterdir()), (tmp_path / "f").read_text()) == (there, "old")


def test_a_file_in_no_folder_is_an_error_by_its_own_name_and_no_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as info:
        write_atomically(tmp_path / "nowhere" / "f", ["new"])
    assert info.value.filename == str(tmp_path / "nowhere" / "f")
    assert list(tmp_path.iterdir()) == []


def interrupt() -> Iterator[str]:
    yield "half"
    raise KeyboardInterrupt


HALF = ["fine", "\ud800"]


@pytest.mark.parametrize(("chunks", "error"), [(interrupt, KeyboardInterrupt), (lambda: HALF, UnicodeEncodeError)])
def test_after_an_error_there_is_the_old_file_alone(tmp_path: Path, chunks: Any, error: Any) -> None:  # hazard 89
    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(error):
        write_atomically(path, chunks())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_read_only_folder_is_an_error_and_the_old_file_is_intact(tmp_path: Path) -> None:  # hazard 89
    if os.geteuid() == 0:
        pytest.skip("root writes to read-only folders too")
    path = tmp_path / "f"
    path.write_text("old")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            write_atomically(path, ["new"])
    finally:
        tmp_path.chmod(0o700)
    assert path.read_text() == "old"


ODD = "a\u2028b\u2029c\x85d\x1ce\x0bf\x0cg\rh"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_lines_end_at_newlines_alone(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:  # hazards 92, 93
    path = tmp_path / "f"
    path.write_bytes(pack(f"\ufeff{ODD}\r\n\n\ufeffx\nlast".encode()))
    assert list(read_lines(path)) == [(1, ODD.encode()), (2, b""), (3, "\ufeffx".encode()), (4, b"last")]


@given(st.lists(st.binary(max_size=20).map(lambda line: b"{" + line.replace(b"\n", b"") + b"}"), max_size=6))
@example([b"{\r}", b"{}"])
@example([])
def test_every_line_is_read_as_it_was_written(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path, pack in ((Path(folder, "plain"), bytes), (Path(folder, "gz"), gzip.compress)):
            path.write_bytes(pack(b"\n".join(lines)))
            assert lines_of(path) == lines


WHOLE = b"".join(b'{"n": %d, "noise": "%s"}\n' % (n, random.Random(n).randbytes(40).hex().encode()) for n in range(60))


@settings(max_examples=40)
@given(st.integers(0, len(gzip.compress(WHOLE, mtime=0)) - 1), st.booleans())
@example(0, False)
@example(5, False)
@example(200, True)  # a flipped bit in the middle is an error of zlib's own kind
def test_a_damaged_compressed_file_is_an_error_wherever_the_damage_is(at: int, flip: bool) -> None:
    """A flip may also go unnoticed, where it hits what gzip ignores (the time, the system); never is it a crash."""
    data = bytearray(gzip.compress(WHOLE, mtime=0))
    if flip:
        data[at] ^= 0x41
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f.gz")
        path.write_bytes(data if flip else data[:at])
        try:
            right = b"\n".join(lines_of(path)) + b"\n" == WHOLE or at < 10
        except PoolError as error:
            right = str(error).startswith(f"{path}")
        assert right


def test_a_compressed_file_may_have_several_members_and_damage_is_named_with_its_remedy(tmp_path: Path) -> None:
    path, data = tmp_path / "f.gz", gzip.compress(WHOLE, mtime=0)
    path.write_bytes(gzip.compress(b"{1}\n{") + gzip.compress(b"2}\n") + b"\0" * 8)
    assert lines_of(path) == [b"{1}", b"{2}"]
    for content, reason in (
        (data[:-9], "Compressed file ended before the end-of-stream marker was reached"),
        (data + b"garbage", "Not a gzipped file"),
        (data[:-8] + b"\0" * 8, "CRC check failed"),
    ):
        path.write_bytes(content)
        message = refusal(lambda: lines_of(path))
        assert message.startswith(f"{path}: the compressed file is damaged ({reason}")
        assert message.endswith("; fetch or compress it again.")


def test_a_line_has_a_longest_length(tmp_path: Path) -> None:  # hazard 10
    path = tmp_path / "f"
    path.write_bytes(b"x" * (MAX_LINE - 1) + b"\n" + b"y" * MAX_LINE + b"\n")
    result, message = read_lines(path), "longer than 16,777,216 bytes; one row a line is expected."
    assert len(next(result)[1]) == MAX_LINE - 1
    assert refusal(lambda: next(result)) == f"{path}, line 2: {message} {RAISE}"


@pytest.mark.parametrize("line", [b" " * 2**20 + b"\n", b" " * 2**20], ids=["many lines", "one line"])
def test_a_gzip_bomb_is_stopped_by_what_it_expands_to(tmp_path: Path, line: bytes) -> None:  # hazard 95
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        for _ in range(200):
            out.write(line)
    assert path.stat().st_size < 2**20
    message = refusal(lambda: sum(1 for _ in read_lines(path)))
    assert message in (
        f"{path}: expands to more than {expansion_limit(path.stat().st_size):,} bytes, 100 times its size; "
        f"if that is intended, unpack it and give the plain file. {RAISE}",
        f"{path}, line 1: longer than 16,777,216 bytes; one row a line is expected. {RAISE}",
    )


def zip_of(name: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr(name, b"x")
    return archive.getvalue()


BYTES: dict[str, Callable[..., bytes]] = {"bytes": layouts.WORDS["bytes"], "pickle": lambda **of: pickle.dumps(of)}
BYTES |= {"zip": zip_of, "gzip": lambda of: gzip.compress(of, mtime=0), "utf-16": lambda text: text.encode("utf-16")}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
@each_case("pools", "files that are not text", **BYTES)
def test_what_is_no_text_is_known_by_how_it_begins(tmp_path: Path, pack: Any, content: bytes, what: str) -> None:
    path = tmp_path / "renamed.jsonl"  # hazards 92, 95, 96
    path.write_bytes(content if content.startswith(b"\x1f\x8b") else pack(content))
    assert refusal(lambda: lines_of(path)) == f"{path}: not a text file but {what}; a pool is JSON lines or Parquet."


def test_a_file_is_named_and_is_no_folder_and_no_pipe_but_may_be_behind_a_link(tmp_path: Path) -> None:
    assert refusal(lambda: lines_of(tmp_path)) == f"{tmp_path}: Is a directory. Give the name of a file."
    (tmp_path / "f").write_text("{}")
    (tmp_path / "link").symlink_to("f")
    require_file(tmp_path / "link")
    assert lines_of(tmp_path / "link") == [b"{}"]
    os.mkfifo(tmp_path / "pipe")
    message = "is a pipe or a device, and a pool is read more than once; give a file."
    assert refusal(lambda: require_file(tmp_path / "pipe")) == f"{tmp_path / 'pipe'}: {message}"
    assert refusal(lambda: require_file(Path("a\0b"))) == "'a\\x00b' is not a valid file name; check it."


@each_case("pools", "lines that are not objects", **layouts.WORDS)
def test_what_is_no_object_is_said_with_its_place(line: Any, sentence: str) -> None:  # hazards 63, 92, 94
    content = line.encode() if isinstance(line, str) else line
    assert refusal(lambda: read_object(content, "p.jsonl, line 7")) == sentence


def test_a_line_is_nested_a_hundred_deep_at_most_and_keys_are_compared_in_linear_time() -> None:  # hazard 63
    assert read_object(b'{"a": "[[", "b": ' + b"[" * 99 + b"]" * 99 + b"}", "w")
    pairs = ", ".join(f'"k{n}": 0' for n in range(50_000))
    assert "the key 'k7' occurs twice" in refusal(lambda: read_object(f'{{{pairs}, "k7": 1}}'.encode(), "w"))


@each_case("pools", "hostile names", **layouts.WORDS)
def test_a_hostile_name_becomes_a_plain_one(text: str, name: str) -> None:  # hazard 98
    assert safe_name(text) == name


@given(st.text() | st.text(alphabet="./\\CONcon1 "))
def test_a_safe_name_stays_in_its_folder_and_is_its_own_safe_name(text: str) -> None:  # hazard 98
    name = safe_name(text)
    assert Path(name).name == name
    assert (len(name.encode()) <= 120, name.startswith("."), name.endswith("."), "\\" in name) == (True, *3 * [False])
    assert safe_name(name) == name
