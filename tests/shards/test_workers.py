"""Workers of an engine, without one: limits hold over all of them, and a question that ends processes is let fail."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.limits import Ledger
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.running import uncommitted
from eldgr_dspy.programs.shards.suspects import UnderWay, ended_at, suspects_of
from eldgr_dspy.programs.shards.workers import Ended, Worker
from eldgr_dspy.programs.testing import text_of
from tests.capitals import Flaky, obliging, selector_with
from tests.lm_server import Answer, LMServer, serving
from tests.run.priced import SAID, loopback_alone, selector_at
from tests.shards.on_ray import flaky, scripted
from tests.shards.sharded import results, sharded

__all__ = ["loopback_alone"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return sharded(tmp_path)


class Crew:
    """Workers in this process, with one ledger."""

    def __init__(self, directory: Path, prepare: Any, allowed: int = 0, max_cost: float | None = None) -> None:
        self.ledger = Ledger(directory, max_cost)
        self._made = partial(Worker, directory=directory, prepare=prepare, allowed=allowed, ask=self.ask)
        self.asked = list[tuple[str, Any]]()

    def ask(self, name: str, *arguments: Any) -> Any:
        said = getattr(self.ledger, name)(*arguments)
        self.asked.append((name, said))
        return said

    def run(self, number: int, *, alone: bool = False) -> Ended:
        return self.worker(f"worker {number}").run(number, alone=alone)

    def worker(self, name: str) -> Worker:
        return self._made(name)


def notes(directory: Path, number: int = 1) -> Path:
    return directory / "runs" / f".{number:05d}.under-way"


def require_as_plain(directory: Path, fails: set[int], error: Exception | None = None) -> None:
    """Hold the shards, merged, against a run of the whole pool in which calls for these questions fail."""
    merge(directory, directory.parent / "merged")
    selector = selector_with(Flaky(lambda number: number in fails, error))[0]
    evaluate(selector, Plan([directory.parent / "capitals.jsonl"], directory.parent / "plain", max_failures=len(fails)))
    merged, plain = results(directory.parent / "merged"), results(directory.parent / "plain")
    assert merged["decisions"] == plain["decisions"]  # the numbers of requests differ
    assert [run["summary.json"]["pools"]["capitals"]["n_failed"] for run in (merged, plain)] == [len(fails)] * 2


# -- a question that ends processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "ended"),
    [
        (["q1", None, "q2", None], {}),
        (["q1", None, "q2"], {"q2": 1}),
        (["q2", "", "q2", "", "q2", None, "q3"], {"q2": 2, "q3": 1}),
        (["q2", "", None], {}),
    ],
)
def test_a_question_that_was_started_and_did_not_end_is_where_a_process_ended(
    tmp_path: Path, lines: list[str | None], ended: dict[str, int]
) -> None:
    (tmp_path / "notes").write_text("".join("\n" if line == "" else f"{json.dumps(line)}\n" for line in lines))
    assert ended_at(tmp_path / "notes") == ended


def test_a_torn_line_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text('"q1"\nnull\n"q')
    UnderWay(tmp_path / "notes").close()
    assert ended_at(tmp_path / "notes") == {}
    assert ended_at(tmp_path / "absent") == {}


def test_a_question_at_which_four_processes_ended_is_not_asked_and_counts_as_failed(directory: Path) -> None:
    (directory / "runs").mkdir()
    notes(directory).write_text('"q4"\n\n"q4"\n\n"q4"\n\n"q4"\n')
    assert suspects_of(notes(directory)) == ["q4"]
    asked = list[str]()

    def noting(folder: Path, request: Any) -> Any:
        asked.append(text_of(request).split("capital number ")[1].split("?")[0])
        return obliging(request)

    crew = Crew(directory, partial(scripted, directory, reply=noting), allowed=1)
    ended = crew.run(1, alone=True)
    assert (ended.error, ended.suspects) == (None, ["q4"])
    assert asked == ["3", "5"]
    failed = [one for one in read_journal(directory / "runs" / "00001" / "journal.jsonl") if one.outcome == "failed"]
    assert {(one.id, one.calls, one.role) for one in failed} == {("q4", 0, "judge"), ("q4", 0, "repairer")}
    error = dspy.LMError("every process in which this question was asked has ended")
    assert {one.reason for one in failed} == {f"LMError: {error}"}
    assert [crew.run(number).error for number in (0, 2)] == [None, None]
    require_as_plain(directory, {4}, error)


def test_a_suspect_over_the_limit_on_failures_stops_the_run(directory: Path) -> None:
    (directory / "runs").mkdir()
    notes(directory).write_text('"q4"\n\n"q4"\n\n"q4"\n\n"q4"\n')
    error = Crew(directory, partial(scripted, directory)).run(1, alone=True).error
    assert isinstance(error, RunStoppedError)
    assert "1 question failed, more than the 0 that --max-failures allows" in str(error)
    assert ended_at(notes(directory)) == {"q4": 4}  # a run that stops in order blames nothing


def test_a_suspect_that_ends_processes_without_being_asked_is_named(directory: Path) -> None:
    (directory / "runs").mkdir()
    notes(directory).write_text('"q4"\n\n' * 8)
    error = Crew(directory, partial(scripted, directory), allowed=1).run(1, alone=True).error
    assert "Question 'q4' of pool 'capitals' ends each process that decides it" in str(error)


def test_while_questions_run_alone_the_file_names_the_one_under_way(directory: Path) -> None:
    seen = list[tuple[str, str]]()

    def looking(folder: Path, request: Any) -> Any:
        number = text_of(request).split("capital number ")[1].split("?")[0]
        seen.append((number, notes(directory).read_text().splitlines()[-1]))
        return obliging(request)

    assert Crew(directory, partial(scripted, directory, reply=looking, workers=4)).run(1, alone=True).error is None
    assert seen == [("3", '"q3"'), ("4", '"q4"'), ("5", '"q5"')]
    assert ended_at(notes(directory)) == {}


def test_a_shard_that_runs_as_usual_has_no_such_file(directory: Path) -> None:
    assert Crew(directory, partial(scripted, directory)).run(1).error is None
    assert not notes(directory).exists()


# -- limits ------------------------------------------------------------------------------------------------------------


def test_questions_that_fail_are_counted_over_all_shards(directory: Path) -> None:
    crew = Crew(directory, partial(scripted, directory, reply=flaky), allowed=1)
    assert crew.run(0).error is None
    error = crew.run(2).error
    assert "2 questions failed, more than the 1 that --max-failures allows" in str(error)
    assert uncommitted(directory) == [1, 2]


def test_shards_that_are_done_count_for_a_ledger_that_is_new(directory: Path) -> None:
    assert Crew(directory, partial(scripted, directory, reply=flaky), allowed=1).run(0).error is None
    assert Ledger(directory, None).failed("00001", 2) == 3
    again = Crew(directory, partial(scripted, directory, reply=flaky), allowed=1)
    assert "2 questions failed" in str(again.run(2).error)
    more = Crew(directory, partial(scripted, directory, reply=flaky), allowed=2)
    assert [more.run(number).error for number in (1, 2)] == [None, None]
    require_as_plain(directory, {1, 7})


def test_what_failed_before_a_shard_was_resumed_is_not_counted_twice(directory: Path) -> None:
    ledger = Ledger(directory, None)
    assert [ledger.failed("00000", 2), ledger.failed("00001", 1), ledger.failed("00000", 0)] == [2, 3, 1]


@contextmanager
def paying(directory: Path, server: LMServer, **plan: Any) -> Iterator[tuple[Selector, Plan]]:
    yield selector_at(server), Plan([directory], **plan)


def test_dollars_are_counted_over_all_shards_and_sessions(directory: Path) -> None:
    with serving(lambda asked: Answer(SAID)) as server:
        crew = Crew(directory, partial(paying, directory, server, max_cost=1.0), max_cost=1.0)
        assert crew.run(0).error is None
        (price,) = {entry.cost for entry in read_journal(directory / "runs" / "00000" / "journal.jsonl")}
        assert price is not None and len(server.log) == 3
        for limit, requests in ((5.5, 5), (6.5, 6), (9.5, 8)):
            made = partial(paying, directory, server, max_cost=limit * price)
            crew = Crew(directory, made, max_cost=limit * price)
            errors = [crew.run(number).error for number in uncommitted(directory)]
            assert len(server.log) == requests
            assert (errors[-1] is None) == (requests == 8)
    assert uncommitted(directory) == []


def test_requests_of_a_worker_that_died_count_as_much_as_the_dearest(directory: Path) -> None:
    ledger = Ledger(directory, 1.0)
    assert ledger.admit("a") is True
    assert ledger.admit("b") is False  # the price is not known yet
    ledger.count("a", "answered", 0.3)
    assert [ledger.admit("a"), ledger.admit("b"), ledger.admit("b")] == [True, True, False]
    ledger.lose("b")
    ledger.count("a", "withdraw")
    assert ledger.admit("a") is True
    assert ledger.admit("b") is False
    ledger.lose("a")
    assert "$0.9000 was spent" in str(ledger.admit("b"))


def test_without_a_limit_in_dollars_the_ledger_admits_everything(directory: Path) -> None:
    ledger = Ledger(directory, None)
    assert ledger.admit("a") is True
    ledger.count("a", "answered", None)
    ledger.lose("a")
    assert ledger.admit("a") is True


# -- stopping, and progress --------------------------------------------------------------------------------------------


def test_a_worker_that_is_stopped_asks_nothing_more_and_says_how_far_it_is(directory: Path) -> None:
    workers = list[Worker]()

    def stopping(folder: Path, request: Any) -> Any:
        if "capital number 1?" in text_of(request):
            workers[0].stop("The run was stopped.")
        return obliging(request)

    workers.append(Crew(directory, partial(scripted, directory, reply=stopping)).worker("one"))
    assert "The run was stopped." in str(workers[0].run(0, alone=False).error)
    progress = workers[0].progress()
    assert (progress.number, progress.rows <= 2) == (0, True)
    assert [entry.id for entry in progress.consultations] == ["q0", "q1"]
    assert all(entry.content is None for entry in progress.consultations)
    assert workers[0].progress().consultations == []
    assert str(workers[0].run(1, alone=False).error) == "The run was stopped."
    assert len([*read_journal(directory / "runs" / "00000" / "journal.jsonl")]) == 2
