"""A line of a journal is read as it was written, or refused with its place; what was edited or damaged is noticed."""

import io
import json
import re
from codecs import BOM_UTF8
from functools import partial
from operator import mul
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy import journal as journal_module
from eldgr_dspy.errors import JournalError
from eldgr_dspy.formats.journal_lines import comparison_records
from eldgr_dspy.journal import Journal, read_journal
from eldgr_dspy.redaction import remember
from eldgr_dspy.rule.consultations import Consultation
from tests.case_tables import each_case
from tests.refusing import refusal, refuses
from tests.run.journals import journal_with_contents, json_of, one


def consultation(**changes: Any) -> str:
    return json.dumps({"kind": "consultation", "id": "q", "role": "judge", "outcome": "failed", **changes})


def read_all(path: Path) -> list[Consultation]:
    return list(read_journal(path))


@each_case("run", "unreadable journal lines", consultation=consultation, times=mul)
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_lost(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "j"
    path.write_text(line + "\n")
    for read in (Journal, read_all):
        refuses(JournalError, f"^{path}, line 1: {message}$", read, path)
    assert path.read_text() == line + "\n"


@each_case("run", "readable journal lines", consultation=consultation)
def test_lines_of_every_kind_are_read_also_without_a_checksum(tmp_path: Path, line: str) -> None:
    path, heads = tmp_path / "j", list[dict[str, Any]]()
    path.write_text(line + "\n")
    Journal(path).close()
    results: list[Any] = [*read_journal(path, heads), *heads]
    content = json.loads(line)
    if content["kind"] == "consultation":
        assert [(one.pool, one.id, one.role) for one in results] == [("", "q", content["role"])]
    else:
        assert results == [content]


def test_a_credential_is_masked_wherever_a_line_holds_it_and_so_it_is_in_memory(tmp_path: Path) -> None:
    """But the key under which a resumed run finds a question must stay, though it looks like a credential."""
    secret = "sk-journal-4711-0815"
    remember(secret)
    with Journal(tmp_path / "j") as journal:
        journal.append_head({"kind": "role", "name": "judge", "details": {"url": f"?key={secret}"}})
        journal.append(one("q1", "abstained", asked=secret))
        journal.append(Consultation("p", "q2", "judge", "ok", content={"preferred": secret}))
        journal.append(one(secret, "abstained", served=secret))
        heads = journal.heads
    assert heads == [{"kind": "role", "name": "judge", "details": {"url": "?key=***"}}]
    read = list[dict[str, Any]]()
    results = list(read_journal(tmp_path / "j", read))
    assert (read, results[0].asked, results[1].content) == (heads, "***", {"preferred": "***"})
    with Journal(tmp_path / "j") as again:
        result = again.find(one(secret).key)
    assert result is not None and result.served == "***"


def test_no_flipped_bit_is_read_as_another_journal(tmp_path: Path) -> None:
    path = journal_with_contents(tmp_path)
    whole, heads = path.read_bytes(), list[dict[str, Any]]()
    was = [*read_journal(path, heads), *heads]
    count = 0
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        heads = []
        try:
            results = [*read_journal(path, heads, on_tear=lambda error: None), *heads]
        except JournalError:
            continue
        # white space between fields, a name of the checksum itself, or the end of the last line, which is then torn
        count += 1
        assert all(one in was or without_extra(one) in was for one in results)
        assert len(results) >= len(was) - 1
    assert count < len(whole)


def without_extra(one: object) -> object:
    """A head without a field of another name than those that it may have."""
    return {name: one[name] for name in ("kind", "name", "details")} if isinstance(one, dict) else one


def test_a_line_of_a_recording_is_read_up_to_the_limit_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "_LONGEST", 5)
    path, file = tmp_path / "j", io.BytesIO(b"1234\n123456789\n")
    lines, message = journal_module.short_lines(path, file), f"{path}: a line is longer than 5 bytes"
    assert next(lines) == (1, b"1234\n")
    assert refusal(lambda: next(lines), JournalError).startswith(message)
    assert file.tell() == 11
    path.write_bytes(b"123456789\n")
    assert refusal(lambda: [*read_journal(path)], JournalError).startswith(message)
    path.write_bytes(b"123456789")
    assert refusal(lambda: Journal(path), JournalError).startswith(message)


def test_the_last_place_of_a_key_is_found_and_the_earlier_ones_are_returned() -> None:
    places, (one, other) = journal_module.Places(), (("pool", "q1", "judge"), ("pool", "q2", "judge"))
    for place, key in enumerate((one, other, one, one)):
        places.add(key, place)
    assert sorted(places.end()) == [0, 2]
    assert (places.find(one), places.find(other), len(places)) == (3, 1, 2)


def test_an_edited_line_is_refused_until_its_checksum_is_removed(tmp_path: Path) -> None:
    """And nothing may stand behind the checksum."""
    path = journal_with_contents(tmp_path)
    whole = path.read_text()
    text = whole.replace('"preferred": 2', '"preferred": 3')
    path.write_text(text)
    message = (
        f"^{path}, line 2: the line does not match its checksum '[0-9a-f]{{8}}', so it was damaged or edited; restore "
        r"the journal from a copy, or remove crc32 from the line if the change is meant\.$"
    )
    for read in (Journal, read_all):
        refuses(JournalError, message, read, path)
    assert path.read_text() == text
    path.write_text(re.sub(r', "crc32": "\w+"', "", text))
    assert {(one.content or {})["preferred"] for one in read_journal(path)} == {3}
    path.write_text(whole.removesuffix("}\n") + ', "content": {"preferred": 0}}\n')
    refuses(JournalError, "line 4: the line does not match its checksum", read_all, path)


def test_a_checksum_holds_whatever_mark_and_line_ends_an_editor_leaves(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(Consultation("p", "q", "judge", "ok", content={"preferred": 0, "crc32": "of its own"}))
    (result,) = read_journal(path)
    path.write_bytes(BOM_UTF8 + path.read_bytes().replace(b"\n", b"\r\n"))
    assert list(read_journal(path)) == [result]
    with Journal(path) as journal:
        assert journal.find(result.key) == result


@each_case("run", "fields of another type")
def test_a_field_of_another_type_is_named(tmp_path: Path, field: str, expected: str) -> None:
    path = tmp_path / "j"
    path.write_text(f'{{"kind":"role","name":"judge","details":{{}}}}\n{consultation()[:-1]},{field}}}\n')
    for read in (Journal, read_all):
        assert refusal(partial(read, path), JournalError) == f"{path}, line 2: {expected}"


@pytest.mark.parametrize(("field", "most"), [("calls", 10**15), ("seconds", 10**15), ("cost", 0)])
def test_a_number_is_journaled_from_0_to_10_to_the_15_and_no_other_value(tmp_path: Path, field: str, most: Any) -> None:
    path, others = tmp_path / "j", list[Any]([10**15 + 1, -1, "1", True])
    with Journal(path) as journal:
        journal.append(one(**{field: most}))
        for value in others:
            message = f"^{path}, a line about to be written: {field}={value!r} is not a "
            refuses(JournalError, message, journal.append, one(**{field: value}))
    assert [getattr(result, field) for result in read_journal(path)] == [most]


def test_the_lines_are_plain_json_without_nulls(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(one())
    record = json_of(tmp_path / "j")
    assert record["kind"] == "consultation" and None not in record.values()


def test_late_comparisons_are_found_by_pool_and_question() -> None:
    late: list[dict[str, Any]] = [{"id": id, "texts": [], "classes": [], "scores": []} for id in ("q1", "q1", "q2")]
    heads = [{"kind": "comparisons", "name": "p", "details": of} for of in late]
    records = comparison_records([*heads, {"kind": "pool", "name": "p"}])
    assert records == {("p", "q1"): late[:2], ("p", "q2"): late[2:]}
