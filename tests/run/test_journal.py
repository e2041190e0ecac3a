"""A journal keeps what it was given: through crashes at any byte, torn lines, full disks and many threads."""

import errno
import gzip
import json
import os
import re
import shutil
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.errors import JournalError
from eldgr_dspy.file_limits import MAX_LINE
from eldgr_dspy.journal import Journal, TornLineWarning, read_journal
from tests.memory import memory_of


def one(question: str = "q1", outcome: Any = "ok", **more: Any) -> Consultation:
    content = {"preferred": 0} if outcome == "ok" else None
    reason = None if outcome == "ok" else "why"
    return Consultation("pool", question, "judge", outcome, content=content, reason=reason, **more)


def test_what_is_appended_is_found_again(tmp_path: Path) -> None:
    said = one(asked="m", served="m-2", calls=1, prompt_tokens=3, cost=0.25, seconds=1.5, fingerprint="ab")
    with Journal(tmp_path / "j") as journal:
        journal.append_head({"kind": "pool", "name": "pool", "details": {"rows": 1}})
        journal.append(said)
    with Journal(tmp_path / "j") as again:
        assert again.find(said.key) == said
        assert again.find(("pool", "q2", "judge")) is None
        assert again.heads == [{"kind": "pool", "name": "pool", "details": {"rows": 1}}]
    assert list(read_journal(tmp_path / "j")) == [said]


def test_an_abstention_settles_and_a_failure_does_not(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(one("q1", "abstained"))
        journal.append(one("q2", "failed"))
        journal.append(one("q2", "failed", attempt=2))
    with Journal(tmp_path / "j") as again:
        assert again.find(one("q1").key) is not None
        assert again.find(one("q2").key) is None
        assert again.attempts(one("q2").key) == 2


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_a_crash_at_any_byte_loses_at_most_the_line_it_tore(cut: int) -> None:  # hazard 88
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j"
        said = [one(f"q{index}", seconds=index / 7) for index in range(5)]
        with Journal(path) as journal:
            for consultation in said:
                journal.append(consultation)
        whole = path.read_bytes()
        cut %= len(whole) + 1
        path.write_bytes(whole[:cut])
        kept = whole[:cut].count(b"\n")
        torn = cut > 0 and not whole[:cut].endswith(b"\n")
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            with Journal(path) as journal:
                assert [journal.find(consultation.key) for consultation in said] == said[:kept] + [None] * (5 - kept)
                for consultation in said[kept:]:
                    journal.append(consultation)
        assert [w.category for w in raised] == [TornLineWarning] * torn
        assert path.read_bytes() == whole


def test_the_torn_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(one())
    with path.open("ab") as file:
        file.write(b'{"kind": "cons')
    with pytest.warns(TornLineWarning, match=r"j, line 2: torn after 14 bytes and dropped; .* will be asked again\."):
        Journal(path).close()


def test_a_torn_last_line_is_passed_over_where_somebody_is_told(tmp_path: Path) -> None:
    path, told = tmp_path / "j", list[JournalError]()
    with Journal(path) as journal:
        for number in range(3):
            journal.append(one(f"q{number}"))
    whole = path.read_bytes()
    third = len(whole[: whole[:-1].rindex(b"\n") + 1])
    for cut in range(third + 1, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert [found.id for found in read_journal(path, None, told.append)] == ["q0", "q1"]
        with pytest.raises(JournalError, match="line 3: not a JSON object"):
            list(read_journal(path))
    assert len(told) == len(whole) - 2 - third and all(
        f"{path}, line 3: not a JSON object" in str(error) for error in told
    )
    path.write_bytes(whole[:-1])  # as an editor may leave it, and whole
    assert [found.id for found in read_journal(path, None, told.append)] == ["q0", "q1", "q2"]
    path.write_bytes(whole[:-9] + b"\n")
    with pytest.raises(JournalError, match="line 3: not a JSON object"):
        list(read_journal(path, None, told.append))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", r"j, line 1: not a JSON object"),
        ("[1]", r"j, line 1: \[1\] is not a JSON object"),
        ('{"kind":"consultation","id":"q","role":"judge","outcome":"ok"}', r"line 1: outcome 'ok' without content\."),
        (
            '{"kind":"consultation","id":"q","role":"king","outcome":"failed"}',
            r"role='king' is not one of judge, deriver",
        ),
        ('{"kind":"consultation","id":"q","role":"judge","outcome":"won"}', r"outcome='won' is not known\."),
        ('{"kind":"consultation","id":7,"role":"judge","outcome":"failed"}', r"line 1: id=7 is not text\."),
        ('{"kind":"consultation","role":"judge","outcome":"failed"}', r"line 1: not a consultation"),
        ('{"kind":"consultation","id":"q","role":"judge","outcome":"failed","x":1}', r"not a consultation .*'x'"),
        ("[" * 100_000, r"j, line 1: nested too deeply, more than 100 lists or objects in one another"),
        (
            "{}",
            r"kind=None is not one of consultation, settings, pool, role, reserved, comparisons; expected a journal\.",
        ),
        ('{"kind":"verdict"}', r"j, line 1: kind='verdict' is not one of consultation, "),
        ('{"kind":["role"]}', r"j, line 1: kind=\['role'\] is not one of consultation, "),
        ('{"kind":"role","details":{}}', r"j, line 1: a role without a name\."),
        ('{"kind":"role","name":7,"details":{}}', r"j, line 1: a role without a name\."),
        ('{"kind":"pool","name":"p"}', r"j, line 1: a pool without details\."),
        ('{"kind":"settings","name":"rule","details":[]}', r"j, line 1: a settings without details\."),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_lost(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "j"
    path.write_text(line + "\n")
    with pytest.raises(JournalError, match=message):
        Journal(path)
    assert path.read_text() == line + "\n"


def journal_with_contents(folder: Path) -> Path:
    with Journal(folder / "j") as journal:
        journal.append_head({"kind": "settings", "name": "rule", "details": {"certificate": "folded"}})
        for number in range(3):
            content = {"preferred": 2, "judge_rationale": "Because of what passage 1 says.", "scores": [0.25, 1]}
            journal.append(Consultation("p", f"q{number}", "judge", "ok", content=content, calls=1, cost=0.5))
    return folder / "j"


def test_no_flipped_bit_is_read_as_another_journal(tmp_path: Path) -> None:
    path = journal_with_contents(tmp_path)
    whole, heads = path.read_bytes(), list[dict[str, Any]]()
    was = [*read_journal(path, heads), *heads]
    accepted = 0
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        heads = []
        try:
            found = [*read_journal(path, heads, on_torn=lambda error: None), *heads]
        except JournalError:
            continue
        # white space between fields, a name of the checksum itself, or the end of the last line, which is then torn
        accepted += 1
        assert all(one in was or without_extra(one) in was for one in found)
        assert len(found) >= len(was) - 1
    assert accepted < len(whole)


def without_extra(one: object) -> object:
    """A head without a field of another name than those that it may have."""
    return {name: one[name] for name in ("kind", "name", "details")} if isinstance(one, dict) else one


def test_an_edited_line_is_refused_until_its_checksum_is_removed(tmp_path: Path) -> None:
    path = journal_with_contents(tmp_path)
    edited = path.read_text().replace('"preferred": 2', '"preferred": 3')
    path.write_text(edited)
    message = r"line 2: the line does not match its checksum '[0-9a-f]{8}', so it was damaged or edited; restore"
    for read in (lambda: Journal(path), lambda: list(read_journal(path))):
        with pytest.raises(JournalError, match=message):
            read()
    assert path.read_text() == edited
    path.write_text(re.sub(r', "crc32": "\w+"', "", edited))
    assert {(one.content or {})["preferred"] for one in read_journal(path)} == {3}


def test_nothing_may_stand_behind_the_checksum(tmp_path: Path) -> None:
    path = journal_with_contents(tmp_path)
    whole = path.read_text()
    path.write_text(whole.removesuffix("}\n") + ', "content": {"preferred": 0}}\n')
    with pytest.raises(JournalError, match="line 4: the line does not match its checksum"):
        list(read_journal(path))


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('"calls":"1"', "calls='1' is not a count."),
        ('"calls":true', "calls=True is not a count."),
        ('"calls":-1', "calls=-1 is not a count."),
        ('"attempt":1.5', "attempt=1.5 is not a count."),
        ('"prompt_tokens":[]', "prompt_tokens=[] is not a count or null."),
        ('"completion_tokens":"9"', "completion_tokens='9' is not a count or null."),
        ('"seconds":"a"', "seconds='a' is not a number or null."),
        ('"seconds":1e999', "seconds=inf is not a number or null."),
        ('"cost":{}', "cost={} is not a number or null."),
        ('"cost":NaN', "not a JSON object (NaN is not JSON); restore the journal from a copy."),
        ('"recorded":1', "recorded=1 is not true or false."),
        ('"recorded":null', "recorded=None is not true or false."),
        ('"fingerprint":1', "fingerprint=1 is not text or null."),
        ('"asked":[]', "asked=[] is not text or null."),
        ('"served":{}', "served={} is not text or null."),
        ('"reason":7', "reason=7 is not text or null."),
        ('"content":"ok"', "content='ok' is not an object or null."),
        ('"outcome":["ok"]', "outcome=['ok'] is not text."),
    ],
)
def test_a_field_of_another_type_is_named(tmp_path: Path, field: str, expected: str) -> None:
    path = tmp_path / "j"
    head = '{"kind":"role","name":"judge","details":{}}\n'
    path.write_text(head + '{"kind":"consultation","id":"q","role":"judge","outcome":"failed",' + field + "}\n")
    for read in (Journal, lambda path: list(read_journal(path))):
        with pytest.raises(JournalError) as raised:
            read(path)
        assert str(raised.value) == f"{path}, line 2: {expected}"


def test_a_recording_may_begin_with_a_byte_order_mark_and_hold_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(b'\xef\xbb\xbf{"kind":"consultation","id":"q","role":"judge","outcome":"abstained"}\n\n')
    assert [found.id for found in read_journal(path)] == ["q"]


_SAID = b'{"kind":"consultation","id":"q","role":"judge","outcome":"abstained"}\n'


@pytest.mark.parametrize("name", ["j.jsonl.gz", "j.jsonl"])
def test_a_recording_may_be_compressed_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + _SAID + b"\n" + _SAID.replace(b'"q"', b'"r"')))
    assert [found.id for found in read_journal(path)] == ["q", "r"]


def test_the_torn_last_line_of_a_compressed_recording_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "j.gz"
    path.write_bytes(gzip.compress(_SAID + _SAID[:20]))
    torn = list[JournalError]()
    assert [found.id for found in read_journal(path, on_torn=torn.append)] == ["q"]
    assert len(torn) == 1


_PACKED = gzip.compress(_SAID * 9)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_PACKED[:-9], "the compressed file is damaged (Compressed file ended before the end-of-stream marker was"),
        (_PACKED[:-8] + b"12345678", "the compressed file is damaged (CRC check failed"),
        (_PACKED[:10] + b"\xff" * 20, "the compressed file is damaged (Error -3 while decompressing data"),
        (gzip.compress((b" " * 1023 + b"\n") * 2**17), "expands to more than "),
        (gzip.compress(_SAID[:-2] + b" " * MAX_LINE, 1), f", line 1: longer than {MAX_LINE:,} bytes; "),
        (gzip.compress(_PACKED), "not a text file but compressed twice; unpack it once; a recording is a journal, "),
        (b"\xfd7zXZ\x00", "not a text file but compressed by xz; use gzip; a recording is a journal, plain or .gz."),
    ],
    ids=["torn", "checksum", "corrupt", "bomb", "long line", "twice", "xz"],
)
def test_a_compressed_recording_that_cannot_be_read_is_told_from_a_torn_journal(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "j.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(JournalError) as raised:
        list(read_journal(path, on_torn=lambda error: None))
    assert said in str(raised.value) and str(raised.value).startswith(str(path))
    assert "restore the journal" not in str(raised.value)


def test_the_memory_of_a_journal_is_20_bytes_a_line(tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = (f'{{"kind":"consultation","id":"q{n}","role":"judge","outcome":"abstained"}}\n' for n in range(20_000))
    path.write_text("".join(lines))
    with Journal(path) as journal:
        assert len(journal) == 20_000
    assert memory_of(Journal, path).held / 20_000 < 20


def test_of_two_lines_for_one_key_the_last_is_found(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        for seconds in (1.0, 2.0, 3.0):
            journal.append(one("q1", seconds=seconds))
            journal.append(one("q2", seconds=seconds))
    with Journal(tmp_path / "j") as again:
        found = [again.find(one(id).key) for id in ("q1", "q2")]
        assert len(again) == 2
    assert [entry and entry.seconds for entry in found] == [3.0, 3.0]


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


def test_many_threads_append_whole_lines(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal, ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda index: journal.append(one(f"q{index}")), range(400)))
    assert {found.id for found in read_journal(tmp_path / "j")} == {f"q{index}" for index in range(400)}


def test_a_value_that_json_does_not_know_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        with pytest.raises(ValueError, match="Out of range float"):
            journal.append(Consultation("p", "q", "judge", "ok", content={"scalar": float("nan")}))
        journal.append(one())
    assert len(list(read_journal(tmp_path / "j"))) == 1


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
            with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
                journal.append(one("q2"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        assert path.read_bytes() == before
        journal.append(one("q3"))
    assert [found.id for found in read_journal(path)] == ["q1", "q3"]


class JournalMachine(RuleBasedStateMachine):
    """A journal against a model: the lines that were acknowledged. A crash cuts the file at any byte of the last."""

    asked = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "j"
        self.lines: list[Consultation] = []
        self.journal: Journal | None = Journal(self.path)
        self.torn = False

    @rule(target=asked, name=st.integers(0, 4), role=st.sampled_from(("judge", "repairer")))
    def question(self, name: int, role: str) -> tuple[str, str]:
        return (f"q{name}", role)

    @precondition(lambda self: self.journal is not None)
    @rule(key=asked, outcome=st.sampled_from(("ok", "abstained", "failed")))
    def append(self, key: tuple[str, str], outcome: Any) -> None:
        assert self.journal is not None
        content = {"preferred": len(self.lines)} if outcome == "ok" else None
        said = Consultation("p", key[0], key[1], outcome, "why", content)  # type: ignore[arg-type]
        self.journal.append(said)
        self.lines.append(said)

    @precondition(lambda self: self.journal is not None)
    @rule()
    def close(self) -> None:
        assert self.journal is not None
        self.journal.close()
        self.journal = None

    @precondition(lambda self: self.journal is None and self.lines and not self.torn)
    @rule(share=st.floats(0, 1, exclude_max=True))
    def crash_in_the_last_line(self, share: float) -> None:
        whole = self.path.read_bytes()
        last = whole.rstrip(b"\n").rfind(b"\n") + 1
        self.path.write_bytes(whole[: last + int(share * (len(whole) - last))])
        self.lines.pop()
        self.torn = True

    @precondition(lambda self: self.journal is None)
    @rule()
    def reopen(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TornLineWarning)
            self.journal = Journal(self.path)
        self.torn = False

    @precondition(lambda self: self.journal is not None)
    @rule(key=consumes(asked))
    def find(self, key: tuple[str, str]) -> None:
        assert self.journal is not None
        self.close()
        self.reopen()
        settled = [said for said in self.lines if said.key[1:] == key and said.settled]
        failed = [said for said in self.lines if said.key[1:] == key and not said.settled]
        assert self.journal.find(("p", *key)) == (settled[-1] if settled else None)
        assert self.journal.attempts(("p", *key)) == len(failed)

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


def test_the_lines_are_plain_json_without_nulls(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(one())
    record = json.loads((tmp_path / "j").read_text())
    assert record["kind"] == "consultation"
    assert None not in record.values()
