"""A line of a journal is read as it was written, or refused with its place; what was edited or damaged is noticed."""

import json
import re
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import JournalError
from eldgr_dspy.journal import Journal, read_journal
from eldgr_dspy.redaction import remember
from eldgr_dspy.rule.consultations import Consultation
from tests.run.journals import journal_with_contents, one

RESTORE = r"restore the journal from a copy\."
KINDS = "consultation, settings, pool, role, reserved, comparisons; expected a journal"


def consultation(**changes: Any) -> str:
    return json.dumps({"kind": "consultation", "id": "q", "role": "judge", "outcome": "failed", **changes})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", rf"not a JSON object \(Expecting value.*\); {RESTORE}"),
        ("[1]", rf"\[1\] is not a JSON object; {RESTORE}"),
        (consultation(outcome="ok"), r"outcome 'ok' without content\."),
        (consultation(role="king"), r"role='king' is not one of judge, deriver, .*, program\."),
        (consultation(outcome="won"), r"outcome='won' is not known\."),
        (consultation(id=7), r"id=7 is not text\."),
        ('{"kind":"consultation","role":"judge","outcome":"failed"}', r"not a consultation \(.*'id'\)\."),
        (consultation(x=1), r"not a consultation \(.*'x'\)\."),
        (consultation(judge="a b"), r"judge='a b' does not name a judge\."),
        (consultation(role="deriver", judge="a"), r"judge='a' does not name a judge\."),
        ("[" * 100_000, r"nested too deeply, more than 100 lists or objects in one another; flatten it\."),
        ("{}", rf"kind=None is not one of {KINDS}\."),
        ('{"kind":"verdict"}', rf"kind='verdict' is not one of {KINDS}\."),
        ('{"kind":["role"]}', rf"kind=\['role'\] is not one of {KINDS}\."),
        ('{"kind":"role","details":{}}', r"a role without a name\."),
        ('{"kind":"role","name":7,"details":{}}', r"a role without a name\."),
        ('{"kind":"pool","name":"p"}', r"a pool without details\."),
        ('{"kind":"settings","name":"rule","details":[]}', r"a settings without details\."),
        ('{"kind":"comparisons","name":"p","details":{}}', r"comparisons without their pairs\."),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_lost(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "j"
    path.write_text(line + "\n")
    for read in (Journal, lambda path: list(read_journal(path))):
        with pytest.raises(JournalError, match=f"^{path}, line 1: {message}$"):
            read(path)
    assert path.read_text() == line + "\n"


@pytest.mark.parametrize(
    "line",
    [
        consultation(role="program"),
        consultation(role="certificate", outcome="abstained"),
        consultation(outcome="ok", judge="a", content={}),
        '{"kind":"comparisons","name":"p","details":{"id":"q","texts":["1","2"],"classes":[[0,1]],"scores":[]}}',
        '{"kind":"reserved","name":"p","details":{}}',
    ],
)
def test_lines_of_every_kind_are_read_also_without_a_checksum(tmp_path: Path, line: str) -> None:
    path, heads = tmp_path / "j", list[dict[str, Any]]()
    path.write_text(line + "\n")
    Journal(path).close()
    results: list[Any] = [*read_journal(path, heads), *heads]
    stated = json.loads(line)
    if stated["kind"] == "consultation":
        assert [(one.pool, one.id, one.role) for one in results] == [("", "q", stated["role"])]
    else:
        assert results == [stated]


def test_a_credential_is_masked_wherever_a_line_holds_it_and_so_it_is_in_memory(tmp_path: Path) -> None:
    secret = "sk-journal-4711-0815"
    remember(secret)
    with Journal(tmp_path / "j") as journal:
        journal.append_head({"kind": "role", "name": "judge", "details": {"url": f"?key={secret}"}})
        journal.append(one("q1", "abstained", asked=secret))
        journal.append(Consultation("p", "q2", "judge", "ok", content={"preferred": secret}))
        heads = journal.heads
    assert heads == [{"kind": "role", "name": "judge", "details": {"url": "?key=***"}}]
    read = list[dict[str, Any]]()
    results = list(read_journal(tmp_path / "j", read))
    assert (read, results[0].asked, results[1].content) == (heads, "***", {"preferred": "***"})


def test_a_name_of_a_question_is_kept_though_it_looks_like_a_credential(tmp_path: Path) -> None:
    """The key under which a resumed run finds it must stay; what it was told to mask is masked beside it."""
    secret = "sk-question-4711-0815"
    remember(secret)
    with Journal(tmp_path / "j") as journal:
        journal.append(one(secret, "abstained", served=secret))
    with Journal(tmp_path / "j") as again:
        result = again.find(one(secret).key)
    assert result is not None and result.served == "***"


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
            results = [*read_journal(path, heads, on_torn=lambda error: None), *heads]
        except JournalError:
            continue
        # white space between fields, a name of the checksum itself, or the end of the last line, which is then torn
        accepted += 1
        assert all(one in was or without_extra(one) in was for one in results)
        assert len(results) >= len(was) - 1
    assert accepted < len(whole)


def without_extra(one: object) -> object:
    """A head without a field of another name than those that it may have."""
    return {name: one[name] for name in ("kind", "name", "details")} if isinstance(one, dict) else one


def test_an_edited_line_is_refused_until_its_checksum_is_removed(tmp_path: Path) -> None:
    path = journal_with_contents(tmp_path)
    edited = path.read_text().replace('"preferred": 2', '"preferred": 3')
    path.write_text(edited)
    message = (
        f"^{path}, line 2: the line does not match its checksum '[0-9a-f]{{8}}', so it was damaged or edited; restore "
        r"the journal from a copy, or remove crc32 from the line if the change is meant\.$"
    )
    for read in (lambda: Journal(path), lambda: list(read_journal(path))):
        with pytest.raises(JournalError, match=message):
            read()
    assert path.read_text() == edited
    path.write_text(re.sub(r', "crc32": "\w+"', "", edited))
    assert {(one.content or {})["preferred"] for one in read_journal(path)} == {3}


def test_a_checksum_holds_whatever_mark_and_line_ends_an_editor_leaves(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(Consultation("p", "q", "judge", "ok", content={"preferred": 0, "crc32": "of its own"}))
    (result,) = read_journal(path)
    path.write_bytes(BOM_UTF8 + path.read_bytes().replace(b"\n", b"\r\n"))
    assert list(read_journal(path)) == [result]
    with Journal(path) as journal:
        assert journal.find(result.key) == result


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
    path.write_text(f"{head}{consultation()[:-1]},{field}}}\n")
    for read in (Journal, lambda path: list(read_journal(path))):
        with pytest.raises(JournalError) as raised:
            read(path)
        assert str(raised.value) == f"{path}, line 2: {expected}"


@pytest.mark.parametrize(("field", "kept"), [("calls", 10**15), ("seconds", 10**15), ("cost", 0)])
def test_a_number_is_journaled_from_0_to_10_to_the_15_and_no_other_value(tmp_path: Path, field: str, kept: Any) -> None:
    path, others = tmp_path / "j", list[Any]([10**15 + 1, -1, "1", True])
    with Journal(path) as journal:
        journal.append(one(**{field: kept}))
        for value in others:
            message = f"^{path}, a line about to be written: {field}={value!r} is not a "
            with pytest.raises(JournalError, match=message):
                journal.append(one(**{field: value}))
    assert [getattr(result, field) for result in read_journal(path)] == [kept]


def test_the_lines_are_plain_json_without_nulls(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(one())
    record = json.loads((tmp_path / "j").read_text())
    assert record["kind"] == "consultation"
    assert None not in record.values()
