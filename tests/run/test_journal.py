"""A journal keeps what it was given: through crashes at any byte, torn lines, full disks and many threads."""

import errno
import gzip
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from eldgr_dspy.base.file_limits import MAX_LINE, RAISE, VARIABLE
from eldgr_dspy.errors import JournalError
from eldgr_dspy.journal import Journal, TornLineWarning, read_journal
from eldgr_dspy.rule.consultations import Consultation
from tests.memory import memory_of
from tests.refusing import refusal, refuses
from tests.run.journals import journal_with_contents, one


def test_what_is_appended_is_found_again_an_abstention_settles_and_a_failure_does_not(tmp_path: Path) -> None:
    head = {"kind": "pool", "name": "pool", "details": {"rows": 1}}
    reply = one(asked="m", served="m-2", calls=1, prompt_tokens=3, cost=0.25, seconds=1.5, fingerprint="ab")
    silent, failures = one("q3", "abstained"), [one("q4", "failed"), one("q4", "failed", attempt=2)]
    with Journal(tmp_path / "j") as journal:
        journal.append_head(head)
        for entry in (reply, silent, *failures):
            journal.append(entry)
    with Journal(tmp_path / "j") as again:
        assert (again.find(reply.key), again.find(silent.key)) == (reply, silent)
        assert [again.find(("pool", name, "judge")) for name in ("q2", "q4")] == [None, None]
        assert (again.attempts(failures[0].key), again.heads) == (2, [head])
    assert list(read_journal(tmp_path / "j")) == [reply, silent, *failures]


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_a_crash_at_any_byte_loses_at_most_the_line_it_tore(cut: int) -> None:  # hazard 88
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j"
        replies = [one(f"q{index}", seconds=index / 7) for index in range(5)]
        with Journal(path) as journal:
            for consultation in replies:
                journal.append(consultation)
        whole = path.read_bytes()
        cut %= len(whole) + 1
        path.write_bytes(whole[:cut])
        n_whole, rest = whole[:cut].count(b"\n"), len(whole[:cut].rpartition(b"\n")[2])
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            with Journal(path) as journal:
                results = [journal.find(consultation.key) for consultation in replies]
                assert results == replies[:n_whole] + [None] * (5 - n_whole)
                for consultation in replies[n_whole:]:
                    journal.append(consultation)
        note = f"{path}, line {n_whole + 1}: torn after {rest} bytes and dropped; what it recorded will be asked again."
        assert [(w.category, str(w.message)) for w in notes] == [(TornLineWarning, note)] * (rest > 0)
        assert path.read_bytes() == whole


@pytest.fixture
def inodes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes of what is flushed to the disk, in order."""
    fsync, results = os.fsync, list[int]()

    def flush(file: int) -> None:
        fsync(file)
        results.append(os.fstat(file).st_ino)

    monkeypatch.setattr(os, "fsync", flush)
    return results


def test_a_line_that_took_a_call_is_flushed_and_with_it_what_came_before(tmp_path: Path, inodes: list[int]) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        folder, file = tmp_path.stat().st_ino, path.stat().st_ino
        assert (inodes, journal.on_disk) == ([folder], 0)  # its name is on the disk before a line is
        journal.append(one("q1"))
        journal.append(one("q1", "abstained"))
        assert (inodes, journal.on_disk) == ([folder], 0)
        for more in ({"calls": 1}, {"outcome": "failed"}):
            del inodes[:]
            journal.append(one("q2", **more))
            assert (inodes, journal.on_disk) == ([file], path.stat().st_size)
        journal.append(one("q3"), flush=True)
        journal.append_head({"kind": "role", "name": "judge", "details": {}})
        assert (inodes, journal.on_disk) == ([file] * 3, path.stat().st_size)
        journal.flush()
        journal.flush(1)
        assert inodes == [file] * 3
        journal.append(one("q4"))
    assert inodes == [file] * 4


def test_what_an_earlier_process_left_unflushed_is_flushed_at_the_close(tmp_path: Path, inodes: list[int]) -> None:
    journal_with_contents(tmp_path)
    del inodes[:]
    journal = Journal(tmp_path / "j")
    assert (inodes, journal.on_disk) == ([], 0)
    journal.close()
    refuses(OSError, "Bad file descriptor", journal.append, one())
    journal.close()
    assert inodes == [(tmp_path / "j").stat().st_ino]


def test_a_line_is_due_on_the_disk_up_to_its_end_if_it_took_a_call(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        assert journal.write(one()) == 0
        assert journal.write(one(outcome="abstained")) == 0
        for entry, flush in ((one(), True), (one(calls=1), False), (one(outcome="failed"), False)):
            assert journal.write(entry, flush=flush) == path.stat().st_size
    assert path.stat().st_mode & 0o111 == 0  # nobody executes it


def test_an_error_of_the_disk_names_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "j"
    message = re.escape(f"No space left on device: '{path}'")
    for call in ("write", "fsync"):
        with Journal(path) as journal, monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            refuses(OSError, message, journal.append, one(calls=1))
            patch.undo()
    for call, rest in (("lseek", b""), ("ftruncate", b"torn")):
        path.write_bytes(path.read_bytes() + rest)
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            refuses(OSError, message, Journal, path)


def test_another_file_in_the_place_of_a_journal_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    token, path = tmp_path / "token", tmp_path / "journal.jsonl"
    for content in (b"a token", b"{", b'{"kinds'):
        token.write_bytes(content)
        path.unlink(missing_ok=True)
        path.symlink_to(token)
        assert refusal(lambda: Journal(path), JournalError) == (
            f"{path}: must be a file of its own; got a link. Give another directory."
        )
        if content != b"{":  # which a killed process may have left
            assert refusal(lambda: Journal(token), JournalError) == (
                f"{token}: must be a journal; got another file. Give another directory."
            )
        assert token.read_bytes() == content


def test_a_long_line_is_found_among_others(tmp_path: Path) -> None:
    entries = [replace(one(id), content={"text": id * 100_000}) for id in ("one", "two")]
    with Journal(tmp_path / "j") as journal:
        for entry in entries:
            journal.append(entry)
    with Journal(tmp_path / "j") as journal:
        assert all(journal.find(entry.key) == entry for entry in entries)


def test_a_torn_last_line_is_passed_over_where_somebody_is_told(tmp_path: Path) -> None:
    path, errors = tmp_path / "j", list[JournalError]()
    with Journal(path) as journal:
        for number in range(3):
            journal.append(one(f"q{number}"))
    whole = path.read_bytes()
    third = len(whole[: whole[:-1].rindex(b"\n") + 1])
    for cut in range(third + 1, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert [result.id for result in read_journal(path, None, errors.append)] == ["q0", "q1"]
        refuses(JournalError, "line 3: not a JSON object", list, read_journal(path))
    assert len(errors) == len(whole) - 2 - third and all(
        f"{path}, line 3: not a JSON object" in str(error) for error in errors
    )
    path.write_bytes(whole[:-1])  # as an editor may leave it, and whole
    assert [result.id for result in read_journal(path, None, errors.append)] == ["q0", "q1", "q2"]
    path.write_bytes(whole[:-9] + b"\n")
    refuses(JournalError, "line 3: not a JSON object", list, read_journal(path, None, errors.append))


_LINE = b'{"kind":"consultation","id":"q","role":"judge","outcome":"abstained"}\n'


@pytest.mark.parametrize(("name", "pack"), [("j", bytes), ("j.jsonl.gz", gzip.compress), ("j.jsonl", gzip.compress)])
def test_a_recording_may_be_compressed_and_marked(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    path, errors = tmp_path / name, list[JournalError]()
    path.write_bytes(pack(b"\xef\xbb\xbf" + _LINE + b"\n" + _LINE.replace(b'"q"', b'"r"')))
    assert [result.id for result in read_journal(path)] == ["q", "r"]
    path.write_bytes(pack(_LINE + _LINE[:20]))
    assert [result.id for result in read_journal(path, on_tear=errors.append)] == ["q"]
    assert len(errors) == 1


_GZIP = gzip.compress(_LINE * 9)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_GZIP[:-9], "the compressed file is damaged (Compressed file ended before the end-of-stream marker was"),
        (_GZIP[:-8] + b"12345678", "the compressed file is damaged (CRC check failed"),
        (_GZIP[:10] + b"\xff" * 20, "the compressed file is damaged (Error -3 while decompressing data"),
        (gzip.compress((b" " * 1023 + b"\n") * 2**17), "expands to more than "),
        (gzip.compress(_LINE[:-2] + b" " * MAX_LINE, 1), f", line 1: longer than {MAX_LINE:,} bytes; "),
        (gzip.compress(_GZIP), "not a text file but compressed twice; unpack it once; a recording is a journal, "),
        (b"\xfd7zXZ\x00", "not a text file but compressed by xz; use gzip; a recording is a journal, plain or .gz."),
    ],
    ids=["torn", "checksum", "corrupt", "bomb", "long line", "twice", "xz"],
)
def test_an_unreadable_compressed_recording_is_not_a_torn_journal(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "j.jsonl.gz"
    path.write_bytes(content)
    sentence = refusal(lambda: list(read_journal(path, on_tear=lambda error: None)), JournalError)
    assert message in sentence and sentence.startswith(str(path))
    assert "restore the journal" not in sentence


def test_the_memory_of_a_journal_is_20_bytes_a_line(tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = (f'{{"kind":"consultation","id":"q{n}","role":"judge","outcome":"abstained"}}\n' for n in range(20_000))
    path.write_text("".join(lines))
    with Journal(path) as journal:
        assert len(journal) == 20_000
    assert memory_of(Journal, path).size / 20_000 < 20


def test_of_several_lines_for_one_key_the_last_is_found(tmp_path: Path) -> None:
    keys = [f"q{number}" for number in range(9)]
    with Journal(tmp_path / "j") as journal:
        for seconds in range(40):
            for key in keys:
                journal.append(one(key, seconds=seconds))
    with Journal(tmp_path / "j") as again:
        results = [again.find(one(key).key) for key in keys]
        assert len(again) == 9
        assert [again.find(one(f"other {number}").key) for number in range(20)] == [None] * 20
    assert [entry and entry.seconds for entry in results] == [39] * 9


def test_all_consultations_are_read_in_order_also_those_that_came_since(tmp_path: Path) -> None:
    long = Consultation("p", "long", "judge", "ok", content={"preferred": 0, "judge_rationale": "x" * 2**20})
    entries = [one("q1"), long, one("q2", "failed"), one("q1", "abstained")]
    for number, entry in enumerate(entries, start=1):
        with Journal(tmp_path / "j") as journal:
            journal.append_head({"kind": "role", "name": "judge", "details": {}})
            journal.append(entry)
            assert list(journal.consultations()) == entries[:number]
    with Journal(tmp_path / "j") as journal:
        assert journal.find(long.key) == long
        lines = journal.path.read_bytes().splitlines(keepends=True)
        journal.path.write_bytes(b"".join(lines).replace(b'"q2"', b'"q7"'))
        with pytest.raises(JournalError, match=f"^{journal.path}, line 6: the line does not match its checksum"):
            list(journal.consultations())
        journal.path.write_bytes(b"".join(lines).replace(lines[5], b'{"kind": "consultation"}\n'))
        with pytest.raises(
            JournalError, match=f"^{journal.path}, line 6: a consultation without id and role and outcome"
        ):
            list(journal.consultations())


@pytest.mark.parametrize(
    ("role", "problem"), [("judge", "the line does not match its checksum"), ("king", "role='king' is not one of")]
)
def test_a_line_that_was_damaged_since_is_named_by_its_place(tmp_path: Path, role: str, problem: str) -> None:
    path = journal_with_contents(tmp_path)
    with Journal(path) as journal:
        lines = path.read_bytes().splitlines(keepends=True)
        lines[2] = lines[2].replace(b"q1", b"q7").replace(b"judge", role.encode())
        if role == "king":
            lines[2] = re.sub(rb', "crc32": "\w+"', b"", lines[2])
        path.write_bytes(b"".join(lines))
        place = len(lines[0] + lines[1])
        refuses(JournalError, f"^{path}, byte {place}: {problem}", journal.find, ("p", "q1", "judge"))


def test_who_was_asked_is_known_by_label_and_fingerprint_with_the_first_line_of_each(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(one(recorded=True, fingerprint="a"))
        for more in ({}, {"judge": "x"}, {"outcome": "failed"}):
            journal.append(one(fingerprint="b", **more))
        journal.append(one())
    with Journal(tmp_path / "j") as again:
        assert again.calls == {("judge", "b"): "line 2", ("judge[x]", "b"): "line 3", ("judge", None): "line 5"}


@pytest.mark.parametrize("read", [Journal, lambda path: list(read_journal(path, []))], ids=["resumed", "recorded"])
def test_heads_hold_few_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]) -> None:
    """They stay in memory. The limit is 200 here, and each of these holds 8."""
    monkeypatch.setenv(VARIABLE, "2e-5")
    path, head = tmp_path / "j", '{"kind":"role","name":"judge","details":{}}\n'
    path.write_text(head * 25)
    read(path)
    path.write_text(head * 26)
    sentence = f"holds more than 200 values, which is the limit; give fewer. {RAISE}"
    assert refusal(lambda: read(path), JournalError) == f"{path}, up to line 26: {sentence}"


def test_two_keys_of_one_hash_are_told_apart(tmp_path: Path) -> None:
    """Two that really are of one hash are not to be found; a key that lies about its own stands for them."""

    class Lying(tuple[str, str, Any]):
        __slots__ = ()

        def __hash__(self) -> int:
            return hash(one("q1").key)

        __eq__ = tuple.__eq__

    with Journal(tmp_path / "j") as journal:
        journal.append(one("q1"))
    with Journal(tmp_path / "j") as again:
        assert again.find(one("q1").key) == one("q1")
        assert again.find(Lying(("pool", "q2", "judge"))) is None


def test_many_threads_append_whole_lines_and_what_json_does_not_know_is_refused_before(tmp_path: Path) -> None:
    endless = Consultation("p", "q", "judge", "ok", content={"scalar": float("nan")})
    with Journal(tmp_path / "j") as journal, ThreadPoolExecutor(16) as pool:
        refuses(ValueError, "Out of range float", journal.append, endless)
        list(pool.map(lambda index: journal.append(one(f"q{index}")), range(400)))
    replies = [result.id for result in read_journal(tmp_path / "j")]
    assert (len(replies), {*replies}) == (400, {f"q{index}" for index in range(400)})


def test_a_full_disk_leaves_no_torn_line_and_the_journal_continues(tmp_path: Path) -> None:  # hazard 89
    """A file-size limit stands for a full disk: the write comes back short, then fails."""
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(one("q1"))
        before = path.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
        try:
            refuses(OSError, os.strerror(errno.EFBIG), journal.append, one("q2"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        assert path.read_bytes() == before
        journal.append(one("q3"))
    assert [result.id for result in read_journal(path)] == ["q1", "q3"]


class JournalMachine(RuleBasedStateMachine):
    """A journal against a model: the lines that were acknowledged. A crash cuts the file at any byte of the last."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "j"
        self.lines: list[Consultation] = []
        self.journal: Journal | None = Journal(self.path)
        self.tear = False

    @rule(target=keys, name=st.integers(0, 4), role=st.sampled_from(("judge", "repairer")))
    def question(self, name: int, role: str) -> tuple[str, str]:
        return (f"q{name}", role)

    @precondition(lambda self: self.journal is not None)
    @rule(key=keys, outcome=st.sampled_from(("ok", "abstained", "failed")))
    def append(self, key: tuple[str, str], outcome: Any) -> None:
        assert self.journal is not None
        content = {"preferred": len(self.lines)} if outcome == "ok" else None
        consultation = Consultation("p", key[0], key[1], outcome, "why", content)  # type: ignore[arg-type]
        self.journal.append(consultation)
        self.lines.append(consultation)

    @precondition(lambda self: self.journal is not None)
    @rule()
    def close(self) -> None:
        assert self.journal is not None
        self.journal.close()
        self.journal = None

    @precondition(lambda self: self.journal is None and self.lines and not self.tear)
    @rule(share=st.floats(0, 1, exclude_max=True))
    def crash_in_the_last_line(self, share: float) -> None:
        whole = self.path.read_bytes()
        last = whole.rstrip(b"\n").rfind(b"\n") + 1
        self.path.write_bytes(whole[: last + int(share * (len(whole) - last))])
        self.lines.pop()
        self.tear = True

    @precondition(lambda self: self.journal is None)
    @rule()
    def reopen(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TornLineWarning)
            self.journal = Journal(self.path)
        self.tear = False

    @precondition(lambda self: self.journal is not None)
    @rule(key=consumes(keys))
    def find(self, key: tuple[str, str]) -> None:
        assert self.journal is not None
        self.close()
        self.reopen()
        replies = [line for line in self.lines if line.key[1:] == key and line.settled]
        failures = [line for line in self.lines if line.key[1:] == key and not line.settled]
        assert self.journal.find(("p", *key)) == (replies[-1] if replies else None)
        assert self.journal.attempts(("p", *key)) == len(failures)

    @invariant()
    def acknowledged_lines_are_on_the_disk(self) -> None:
        if self.journal is not None:
            assert list(read_journal(self.path)) == self.lines

    def teardown(self) -> None:
        if self.journal is not None:
            self.journal.close()
        shutil.rmtree(self.folder)


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
