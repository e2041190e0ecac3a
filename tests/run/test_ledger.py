"""The ledger of a lock knows every look at a pool, whoever looked and however it ended."""

import asyncio
import errno
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError, RunLockedError, RunStoppedError
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run import ledger as ledger_module
from eldgr_dspy.programs.run.confirmation import Confirmation, SeenBeforeWarning
from eldgr_dspy.programs.run.evaluation import Plan, aevaluate, evaluate
from eldgr_dspy.programs.run.forecast import forecast
from eldgr_dspy.programs.run.ledger import Ledger, Look, seen_before
from eldgr_dspy.programs.run.locks import Lock, freeze, ledger_of, read_lock
from tests.capitals import obliging, row, selector_with, write_pool
from tests.run.frozen import TWO, run


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_pool(Path("capitals.jsonl"), map(row, range(6)))


@pytest.fixture
def lock(pool: Path) -> Path:
    """A lock of the heuristic roles under two rules."""
    return freeze(heuristic_selector(), TWO, Path("rule.lock.json")).path


def again(*arguments: Any, **more: Any) -> Any:
    """What a run says that is told to have been shown a pool before."""
    with pytest.warns(SeenBeforeWarning, match=r"capitals.* was seen \d times? before under this lock, last on 20"):
        return run(*arguments, **more)


def looks(lock: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger_of(lock).read_text().splitlines()]


# --- the ledger -------------------------------------------------------------------------------------------------------


def test_a_link_to_a_lock_has_the_ledger_of_the_lock(lock: Path, pool: Path, tmp_path: Path) -> None:
    run(pool, lock, "first")
    (tmp_path / "elsewhere").mkdir()
    link, twice = Path("elsewhere/other.lock.json"), Path("twice.lock.json")
    link.symlink_to(Path("..") / lock)
    twice.symlink_to(link)
    for one in (link, twice):
        with pytest.raises(ArgumentError, match=r"capitals was seen 1 time before under this lock"):
            run(pool, one, f"by-{one.stem}", once=True)
    assert again(pool, link, "second")["seen_before"] == {"capitals": 1}
    assert len(looks(lock)) == len(looks(link)) == 2
    assert [path.name for path in tmp_path.rglob("*.ledger.jsonl")] == ["rule.lock.ledger.jsonl"]


def test_the_first_evaluation_is_entered_and_the_second_says_that_it_is_one(lock: Path, pool: Path) -> None:
    frozen, content = read_lock(lock), open_pool(pool)
    first = run(pool, lock, "first")
    assert first == {"lock": frozen.sha256, "seen_before": {"capitals": 0}, "earlier": []}
    (entry,) = looks(lock)
    assert {name: entry[name] for name in ("lock", "pool", "name", "questions", "out")} == {
        "lock": frozen.sha256,
        "pool": content.sha256,
        "name": "capitals",
        "questions": 6,
        "out": "first",
    }
    second = again(pool, lock, "second")
    assert second["seen_before"] == {"capitals": 1}
    assert second["earlier"] == [{"pool": "capitals", "questions": 6, "time": entry["time"], "out": "first"}]
    for name in ("summary.json", "record.json"):
        assert json.loads(Path("second", name).read_text())["confirmation"] == second
    assert again(pool, lock, "third")["seen_before"] == {"capitals": 2}
    assert [one["out"] for one in looks(lock)] == ["first", "second", "third"]


@pytest.mark.filterwarnings("always::eldgr_dspy.programs.run.confirmation.SeenBeforeWarning")
def test_the_command_says_it_beside_the_results(lock: Path, pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for out in ("first", "second", "second"):
        assert main(["evaluate", str(pool), "--lock", str(lock), "--out", out]) == 0
        said.append(capsys.readouterr().err)
    first, seen = (
        f"\ncapitals, under rule.lock.json: {text}.\n"
        for text in ("seen for the first time", "seen 1 time before, so this run confirms nothing")
    )
    assert first in said[0] and "Note:" not in said[0]
    for text in said[1:]:
        assert text.startswith("Note: rule.lock.json: capitals was seen 1 time before under this lock, last on 20")
        assert "by first. This run does not confirm the rule again.\n" in text and text.endswith(seen)


def test_without_a_lock_there_is_no_confirmation(pool: Path) -> None:
    assert evaluate(heuristic_selector(), Plan([pool], Path("out")))["confirmation"] is None
    assert json.loads(Path("out/record.json").read_text())["confirmation"] is None


def test_the_same_run_may_be_resumed_wherever_it_is(lock: Path, pool: Path) -> None:
    first = run(pool, lock, "first")
    again(pool, lock, "second")
    shutil.move("first", "moved")
    for _ in range(2):
        assert run(pool, lock, "moved", once=True) == first
    assert len(looks(lock)) == 2


def test_a_run_that_is_begun_anew_or_made_again_looks_once_more(lock: Path, pool: Path) -> None:
    run(pool, lock, "out")
    assert again(pool, lock, "out", fresh=True)["seen_before"] == {"capitals": 1}
    shutil.rmtree("out")
    assert again(pool, lock, "out")["seen_before"] == {"capitals": 2}


def test_a_pool_is_what_its_content_is(lock: Path, pool: Path) -> None:
    run(pool, lock, "first")
    renamed = Path(shutil.copy(pool, "capitals-of-the-world.jsonl"))
    other = write_pool(Path("other.jsonl"), map(row, range(7)))
    found = again([renamed, other], lock, "second")
    assert found["seen_before"] == {"capitals-of-the-world": 1, "other": 0}
    assert [one["pool"] for one in found["earlier"]] == ["capitals-of-the-world"]
    assert [one["name"] for one in looks(lock)] == ["capitals", "capitals-of-the-world", "other"]


def other_candidates(number: int) -> dict[str, Any]:
    return {**row(number), "id": f"other{number}", "candidates": [{"text": "Rome", "answer": "Rome"}]}


@pytest.mark.parametrize(
    "rows",
    [
        [row(number) for number in reversed(range(6))],
        [other_candidates(number) for number in range(6)],
        [{**row(number), "question": f"  {row(number)['question'].upper()} "} for number in range(6)],
    ],
    ids=["reversed", "other-candidates", "case"],
)
def test_a_pool_was_seen_where_its_questions_were(lock: Path, pool: Path, rows: list[dict[str, Any]]) -> None:
    run(pool, lock, "first")
    other = write_pool(Path("other.jsonl"), rows)
    said = (
        r"^rule\.lock\.json: the same questions as in other were seen 1 time before under this lock, in another order"
    )
    with pytest.raises(ArgumentError, match=said):
        run(other, lock, "once", once=True)
    with pytest.warns(SeenBeforeWarning, match=said):
        found = run(other, lock, "second")
    assert found["seen_before"] == {"other": 1}
    assert [one["out"] for one in found["earlier"]] == ["first"]
    assert len({one["asked"] for one in looks(lock)}) == 1
    assert again(pool, lock, "third")["seen_before"] == {"capitals": 2}


def test_one_question_less_is_another_pool(lock: Path, pool: Path) -> None:
    run(pool, lock, "first")
    assert run(write_pool(Path("less.jsonl"), map(row, range(5))), lock, "second")["seen_before"] == {"less": 0}


def test_a_ledger_without_hashes_of_questions_is_read_as_it_is(lock: Path, pool: Path) -> None:
    run(pool, lock, "first")
    entry = looks(lock)[0]
    del entry["asked"]
    ledger_of(lock).write_text(json.dumps(entry) + "\n")
    assert run(write_pool(Path("b.jsonl"), map(row, reversed(range(6)))), lock, "second")["seen_before"] == {"b": 0}
    assert again(pool, lock, "third")["seen_before"] == {"capitals": 2}


def test_more_questions_of_the_same_run_are_entered_and_are_no_second_look(lock: Path, pool: Path) -> None:
    for limit in (2, 4, 3):
        assert run(pool, lock, "first", limit=limit)["seen_before"] == {"capitals": 0}
    assert [one["questions"] for one in looks(lock)] == [2, 4]
    assert again(pool, lock, "second")["earlier"][0]["questions"] == 2
    assert run(pool, lock, "first")["seen_before"] == {"capitals": 0}


def test_the_entry_is_there_before_anybody_is_asked_and_counts_where_nobody_answers(pool: Path) -> None:
    entered: list[bool] = []

    def down(request: Any) -> Any:
        entered.append(len(looks(Path("rule.lock.json"))) == 1)
        return dspy.LMServerError("the server is away")

    selector, _ = selector_with(down)
    lock = freeze(selector, TWO, Path("rule.lock.json")).path
    with pytest.raises(RunStoppedError):
        run(pool, lock, "first", selector)
    assert entered == [True]
    answering, _ = selector_with(obliging)
    assert run(pool, lock, "first", answering)["seen_before"] == {"capitals": 0}
    assert again(pool, lock, "second", answering)["seen_before"] == {"capitals": 1}


def test_tasks_enter_the_ledger_as_threads_do(lock: Path, pool: Path) -> None:
    plan = Plan([pool], Path("out"), rules=TWO, lock=lock)
    found = asyncio.run(aevaluate(heuristic_selector(), plan))["confirmation"]
    assert found and found["seen_before"] == {"capitals": 0}
    assert len(looks(lock)) == 1


def test_a_forecast_is_held_to_the_lock_and_is_not_a_look(lock: Path, pool: Path) -> None:
    plan = Plan([pool], Path("out"), rules=TWO, lock=lock, once=True)
    assert forecast(heuristic_selector(), plan)["pools"]["capitals"]["n"] == 6
    assert not ledger_of(lock).exists()


# --- once -------------------------------------------------------------------------------------------------------------


def test_once_refuses_what_was_seen_and_changes_nothing(lock: Path, pool: Path) -> None:
    run(pool, lock, "first", once=True)
    before = {path: path.read_bytes() for path in Path("first").iterdir() if path.name != ".lock"}
    for out, fresh in (("second", False), ("first", True)):
        with pytest.raises(
            ArgumentError, match=r"^rule\.lock\.json: capitals was seen 1 time before under this lock, la"
        ):
            run(pool, lock, out, once=True, fresh=fresh)
    assert not Path("second").exists()
    assert {path: path.read_bytes() for path in Path("first").iterdir() if path.name != ".lock"} == before
    assert len(looks(lock)) == 1


def test_once_refuses_to_resume_a_second_look(lock: Path, pool: Path) -> None:
    run(pool, lock, "first")
    again(pool, lock, "second")
    with pytest.raises(ArgumentError, match=r"leave --once out to evaluate anyway, which confirms nothing."):
        run(pool, lock, "second", once=True)


def test_of_several_runs_at_the_same_time_one_is_the_first(lock: Path, pool: Path) -> None:
    pools, frozen = [open_pool(pool)], read_lock(lock)

    def begins(number: int) -> bool:
        try:
            Confirmation(frozen, pools, Path(f"out{number}"), limit=None, once=True).begin()
        except ArgumentError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(begins, range(8))) == 1
    assert len(looks(lock)) == 1


# --- one run, one lock ------------------------------------------------------------------------------------------------


def test_a_run_stays_under_the_lock_that_it_began_under(lock: Path, pool: Path) -> None:
    other = freeze(heuristic_selector(preference="stratum"), TWO, Path("other.lock.json")).path
    run(pool, lock, "locked")
    evaluate(heuristic_selector(), Plan([pool], Path("free"), rules=TWO))
    with pytest.raises(RunChangedError, match=r"^free: this run was started without a lock; give another --out\."):
        run(pool, lock, "free")
    with pytest.raises(RunChangedError, match=r"^locked: this run was started under a lock; give it with --lock\."):
        evaluate(heuristic_selector(), Plan([pool], Path("locked"), rules=TWO))
    with pytest.raises(RunChangedError, match=r"started with another settings 'lock':\n  sha256: \"[0-9a-f]{64}\" -> "):
        run(pool, other, "locked", heuristic_selector(preference="stratum"))
    assert len(looks(lock)) == 1
    assert not ledger_of(other).exists()


# --- ledgers that cannot be read or written ---------------------------------------------------------------------------


def look(pool: str, run: str, time: str = "2030-01-01T00:00:00+00:00") -> Look:
    return Look(lock="", pool=pool, name="p", questions=1, time=time, run=run, out="o")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line[:-9], r"torn; the look that it was to record had not started, so remove that line\."),
        (lambda line: "what?\n", r"not a look at a pool \(Invalid JSON: .*\); restore the ledger from a copy\."),
        (lambda line: line.replace('"run"', '"ran"'), r"not a look at a pool \(run: Field required\); restore the .*"),
        (
            lambda line: line.replace('"questions": 6', '"questions": 0'),
            r"not a look at a pool \(questions: Input should.*",
        ),
        (
            lambda line: look("ab", "r").model_dump_json() + "\n",
            r"lock='' is not the lock next to it; restore either from .*",
        ),
        (lambda line: line.replace('"questions": 6', '"questions": true'), r"not a look at a pool \(questions: .*"),
    ],
    ids=["torn", "no-json", "field", "none", "other-lock", "boolean"],
)
def test_a_ledger_that_cannot_be_read_is_refused_in_one_sentence(
    lock: Path, pool: Path, change: Callable[[str], str], message: str
) -> None:
    run(pool, lock, "first")
    text = ledger_of(lock).read_text()
    ledger_of(lock).write_text(text + change(text))
    with pytest.raises(JournalError, match=rf"^rule\.lock\.ledger\.jsonl, line 2: (?:{message})$"):
        run(pool, lock, "second")
    assert not Path("second/summary.json").exists()


def test_a_ledger_that_cannot_be_opened_is_refused(lock: Path, pool: Path) -> None:
    ledger_of(lock).mkdir()
    with pytest.raises(JournalError, match=r"ledger\.jsonl: Is a directory\. Give the name of a file\."):
        run(pool, lock, "out")


def test_a_process_that_holds_the_ledger_is_waited_for_and_then_given_up(
    lock: Path, pool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_PATIENCE", 0.01)
    with (
        Ledger(ledger_of(lock), read_lock(lock).sha256).alone(),
        pytest.raises(
            RunLockedError, match=r"^rule\.lock\.ledger\.jsonl: another process is writing to it; wait for i"
        ),
    ):
        run(pool, lock, "out")
    assert run(pool, lock, "out")["seen_before"] == {"capitals": 0}


def test_a_full_disk_leaves_the_ledger_as_it_was(lock: Path, pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(pool, lock, "first")
    before = ledger_of(lock).read_bytes()
    ledger, entry = Ledger(ledger_of(lock), read_lock(lock).sha256), Look.model_validate_json(before)

    def full(file: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(JournalError, match=r"ledger\.jsonl: No space left on device\. Free space"):
            ledger.append([entry])
    assert ledger_of(lock).read_bytes() == before


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=12))
def test_a_run_has_seen_before_it_the_other_runs_whose_first_look_was_earlier(order: list[tuple[str, str]]) -> None:
    entered = [look(pool, run, str(place)) for place, (run, pool) in enumerate(order)]
    first: dict[tuple[str, str], int] = {}
    for place, key in enumerate(order):
        first.setdefault(key, place)
    for run_id in "abcz":
        for pool_id in "xy":
            mine = first.get((run_id, pool_id), len(order))
            expected = sorted(
                at for (other, pool), at in first.items() if pool == pool_id and other != run_id and at < mine
            )
            assert [int(one.time) for one in seen_before(entered, pool_id, run_id)] == expected


def test_a_ledger_is_named_after_its_lock() -> None:
    assert Lock(Path("a/rule.lock.json"), "", {}).ledger == Path("a/rule.lock.ledger.jsonl")
