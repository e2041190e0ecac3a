"""Bad pools and bad moments by their numbers (groups A and H), through the Python API: named at load, never mid-run."""

import ast
import gzip
import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.base.file_limits import RAISE
from eldgr_dspy.errors import PoolError
from eldgr_dspy.journal import TornLineWarning, read_journal
from eldgr_dspy.pools import Pool, Row, open_pool, pool_name, write_pool
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from tests.hazards.bad_pools import BAD_CONTENTS, BAD_POOLS, EVIDENCE, bad_file, record, write_lines
from tests.house.package_files import sources


def decisions(tmp_path: Path, *records: dict[str, Any], rule: str = "eldgr") -> dict[str, dict[str, Any]]:
    """Each question's decision line under `rule` in a run with the heuristic roles."""
    evaluate(heuristic_selector(), Plan([write_lines(tmp_path / "p.jsonl", records)], tmp_path / "run"))
    lines = map(json.loads, (tmp_path / "run" / "decisions.jsonl").read_text(encoding="utf-8").split("\n")[:-1])
    return {line["id"]: line for line in lines if line["rule"] == rule}


def count_of(tmp_path: Path, role: str) -> int:
    return sum(1 for one in read_journal(tmp_path / "run" / "journal.jsonl") if one.role == role)


def with_answers(*answers: Any) -> dict[str, Any]:
    return {"candidates": [{"answer": answer} for answer in answers]}


def refusal(path: Path) -> str:
    with pytest.raises(PoolError) as info:
        open_pool(path)
    return str(info.value)


@pytest.mark.parametrize(("records", "message"), BAD_POOLS)  # hazards 1, 4, 7, 10, 92
def test_a_bad_row_is_named_with_line_field_and_remedy(tmp_path: Path, records: Any, message: str) -> None:
    path = write_lines(tmp_path / "p.jsonl", records)
    assert refusal(path) == f"{path}{message}"


def test_one_candidate_is_consensus_without_any_answer_there_is_none_and_no_judge_is_asked(tmp_path: Path) -> None:
    # hazards 2 and 5
    bare = record(1, **with_answers("", " \t", None), evidence=[])
    result = decisions(tmp_path, record(0, **with_answers("Lyon")), bare)
    assert (result["q0"]["answer"], result["q0"]["branch"]) == ("Lyon", "consensus")
    assert (result["q1"]["answer"], result["q1"]["branch"], result["q1"]["reason"]) == (None, "consensus", "no_answers")
    assert count_of(tmp_path, "judge") == 0


def test_rows_may_have_different_numbers_of_candidates(tmp_path: Path) -> None:  # hazard 3
    sizes = [1, 2, 5, 9]
    result = decisions(tmp_path, *(record(n, **with_answers(*["Nice"] * n)) for n in sizes))
    assert [len(line["ranking"]) for line in result.values()] == sizes


def test_a_candidate_without_an_answer_does_not_vote_and_is_counted(tmp_path: Path) -> None:  # hazard 6
    line = json.dumps(record(0)).replace(
        json.dumps(record(0)["candidates"]),
        '[{"answer": NaN}, {"answer": null}, {"text": "?"}, {"answer": ""}, {"answer": "Lyon"}]',
    )
    (tmp_path / "p.jsonl").write_text(line)
    pool = open_pool(tmp_path / "p.jsonl")
    (row,) = pool.rows()
    assert (pool.missing, [one.answer for one in row.candidates]) == (4, [None, None, None, "", "Lyon"])
    assert decisions(tmp_path, row.model_dump())["q0"]["consensus"] == "Lyon"


def test_a_tie_goes_to_the_earliest_and_is_reported_in_any_order(tmp_path: Path) -> None:  # hazards 8 and 9
    crowds = (
        ("Lyon", "Nice", "nice", "lyon"),
        ("Nice", "Lyon", "Lyon", "Nice"),
        ("Nice", "Lyon", "Lyon"),
        ("Lyon", "Nice", "Brest", "Tours"),
    )
    result = decisions(tmp_path, *(record(n, **with_answers(*one)) for n, one in enumerate(crowds)), rule="majority")
    ties = [(line["answer"], line["tie"]) for line in result.values()]
    assert ties == [("Lyon", True), ("Nice", True), ("Lyon", False), ("Lyon", True)]


def test_as_many_and_as_long_candidates_as_the_caps_allow_are_decided(tmp_path: Path) -> None:  # hazard 10
    crowd = record(0, **with_answers(*["Nice"] * 999, "Lyon"), evidence=[])
    wordy = record(1, candidates=[{"text": "x" * 500_000, "answer": "Nice"}], evidence=[])
    assert [line["answer"] for line in decisions(tmp_path, crowd, wordy).values()] == ["Nice", "Nice"]


def test_identical_candidates_each_vote_and_the_judge_is_asked_once(tmp_path: Path) -> None:  # hazard 11
    same = {"text": "Nice it is", "answer": "Nice"}
    result = decisions(
        tmp_path, record(0, candidates=[same] * 4), record(1, candidates=[{"answer": "Paris"}, *[same] * 3])
    )
    assert [line["consensus"] for line in result.values()] == ["Nice", "Nice"]
    assert count_of(tmp_path, "judge") == 1


def test_a_torn_journal_is_taken_up_where_it_was_torn(tmp_path: Path) -> None:  # hazard 88
    pool = write_lines(tmp_path / "p.jsonl", (record(n, **with_answers("Nice", "Lyon")) for n in range(4)))
    plan = Plan([pool], tmp_path / "run")
    evaluate(heuristic_selector(), plan)
    journal = tmp_path / "run" / "journal.jsonl"
    before = list(read_journal(journal))
    journal.write_bytes(journal.read_bytes()[:-20])
    with pytest.warns(TornLineWarning, match=r"torn after \d+ bytes and dropped"):
        evaluate(heuristic_selector(), plan)
    after = list(read_journal(journal))
    assert [one.key for one in after] == [one.key for one in before]
    assert after[:-1] == before[:-1]


@pytest.mark.parametrize("name", BAD_CONTENTS)  # hazards 92, 94, 95, 96
def test_a_file_that_is_not_json_lines_is_refused(tmp_path: Path, name: str) -> None:
    path = bad_file(tmp_path, name)
    message = refusal(path)
    checks = (message.startswith(str(path)), message.endswith("."), BAD_CONTENTS[name][1] in message)
    assert checks == (True, True, True), message
    assert "pickles and" not in message or message == f"{path}{BAD_CONTENTS[name][1]}"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_marks_and_line_ends_of_other_systems_do_not_matter(tmp_path: Path, pack: Any) -> None:  # hazard 92
    """A byte-order mark, carriage returns, and the escape of a NUL inside a text."""
    text = "".join(json.dumps(record(n, question="Who\0?")) + "\r\n" for n in range(3))
    plain = open_pool(write_lines(tmp_path / "plain.jsonl", [record(n, question="Who\0?") for n in range(3)]))
    (tmp_path / "p.jsonl").write_bytes(pack(b"\xef\xbb\xbf" + text.encode()))
    assert open_pool(tmp_path / "p.jsonl").sha256 == plain.sha256


def test_separators_inside_a_text_end_no_line_from_pool_to_decisions(tmp_path: Path) -> None:  # hazard 93
    odd = "Ni\u2028ce\u2029\x85\x0b\x0c\x1c\x1d\x1e"
    result = decisions(tmp_path, record(0, question=f"Who {odd}?", **with_answers(odd, "Lyon", odd)), record(1))
    assert (list(result), result["q0"]["answer"], result["q0"]["question"]) == (["q0", "q1"], odd, f"Who {odd}?")


class Exploding:  # an object whose unpickling would be seen
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("unpickled"),))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_pickle_is_ever_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:  # hazard 96
    monkeypatch.chdir(tmp_path)
    content = pickle.dumps(Exploding(), protocol)
    for name in ("p.pkl", "p.jsonl", "p.jsonl.gz", "p.parquet"):
        Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        refusal(Path(name))
    assert not Path("unpickled").exists()


def test_a_pool_may_stand_behind_a_link_and_is_named_after_it(tmp_path: Path) -> None:  # hazard 98
    write_lines(tmp_path / "real.jsonl", [record(0)])
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    pool: Pool = open_pool(tmp_path / "link.jsonl")
    assert (pool.name, pool.n) == ("link", 1)


def test_a_name_that_is_not_unicode_can_be_written_into_every_result(tmp_path: Path) -> None:  # hazards 92, 98
    path = write_lines(tmp_path / "caf\udce9.jsonl", [record(0)])
    evaluate(heuristic_selector(), Plan([path], tmp_path / "run"))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert list(summary["pools"]) == [pool_name(path)] == ["caf\ufffd"]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_a_damaged_pool_is_a_sentence_or_a_pool_and_nothing_else(tmp_path: Path, suffix: str) -> None:
    """Bytes changed, dropped, doubled and moved at random in a small pool; what is still a pool reads as one."""
    chance = random.Random(suffix)
    path = tmp_path / f"p{suffix}"
    whole = write_pool(path, (Row.model_validate(record(n, evidence=EVIDENCE, meta={"n": n})) for n in range(3))).path
    content = whole.read_bytes()
    for _ in range(300):
        path.write_bytes(damage(chance, content))
        try:
            assert len(list(open_pool(path).rows())) > 0
        except PoolError as error:
            assert str(error).startswith(str(path))  # noqa: PT017 -- not all damage is an error


def damage(chance: random.Random, content: bytes) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at, upto = sorted(chance.randrange(len(content) + 1) for _ in range(2))
        piece = content[at : min(upto, at + 9)]
        content = chance.choice(
            (
                content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :],
                content[:at] + content[at + len(piece) :],
                content[:at] + piece + content[at:],
                content[:at],
                piece + content,
            )
        )
    return content


def test_nothing_asks_what_time_of_day_it_is() -> None:  # hazard 102
    """Seconds are of a clock that cannot go back, and no result holds a date."""
    assert not {name for path, name in sources() for _ in clocks(ast.parse(path.read_text(encoding="utf-8")))}


def clocks(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
        if names & {"datetime", "date", "time_ns", "localtime"}:
            yield ", ".join(sorted(names))
        if (
            isinstance(node, ast.Attribute)
            and not isinstance(node.value, ast.Call)  # a loop's clock only goes forward
            and node.attr in {"time", "time_ns", "localtime", "gmtime", "ctime"}
        ):
            yield f".{node.attr}"


def test_what_the_other_tests_call_a_good_row_is_one(tmp_path: Path) -> None:
    result = decisions(tmp_path, record(0), record(1, evidence=EVIDENCE))
    assert [line["answer"] for line in result.values()] == ["Nice", "Nice"]


def test_a_gzip_bomb_of_rows_is_stopped(tmp_path: Path) -> None:  # hazard 95
    """Rows that are each within the caps: it is their sum that is too much for so small a file."""
    line = json.dumps(record(0)).encode().replace(b"q0", b"q%05d") + b" " * 2**20 + b"\n"
    with gzip.open(tmp_path / "p.jsonl.gz", "wb", compresslevel=1) as out:
        for n in range(120):
            out.write(line % n)
    assert (tmp_path / "p.jsonl.gz").stat().st_size < 2**20
    message = f"times its size; if that is intended, unpack it and give the plain file. {RAISE}"
    assert message in refusal(tmp_path / "p.jsonl.gz")


def test_a_line_beyond_the_cap_is_an_error_and_is_not_read_whole(tmp_path: Path) -> None:  # hazard 10
    path = write_lines(tmp_path / "p.jsonl", [record(0), record(1, meta={"x": "y" * 17_000_000})])
    assert refusal(path) == f"{path}, line 2: longer than 16,777,216 bytes; one row a line is expected. {RAISE}"


def test_a_pool_of_none_through_the_selector_is_a_null_answer_and_asks_nothing() -> None:  # hazard 1
    result = heuristic_selector()(question="Who?", candidates=[], evidence=["Ada wrote."])
    assert (result.answer, result.reason, result.consulted) == (None, "empty_pool", [])
