"""A run keeps every row, asks nothing twice, resumes where it stopped, and refuses to become another run."""

import os
import signal
import sys
import weakref
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Barrier, Event, Lock
from typing import Any

import dspy
import pytest

from eldgr_dspy.decision import RULES
from eldgr_dspy.errors import ArgumentError, JournalError, RunChangedError, RunLockedError, RunStoppedError
from eldgr_dspy.journal import TornLineWarning, read_journal
from eldgr_dspy.programs.heuristics import LexicalJudge, heuristic_selector
from eldgr_dspy.programs.judges import Panel
from eldgr_dspy.programs.requests.limits import FailureBudget, allowed_questions
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, Watcher, evaluate
from eldgr_dspy.programs.run.forecast import forecast
from eldgr_dspy.programs.run.plan import out_of
from eldgr_dspy.programs.run.role_calls import role_call
from eldgr_dspy.programs.run.run_directory import RunDirectory
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm, text_of
from eldgr_dspy.rule.consultations import Consultation
from tests.capitals import VERDICT, Flaky, drop_times, obliging, recording, row, selector_with, write_pool
from tests.case_tables import each_case
from tests.modules import Does, Spans
from tests.refusing import refusal, refuses
from tests.run.freezing import demonstrate, reword
from tests.run.journals import json_lines, json_of
from tests.selecting import Program, Returns, with_judge


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return write_pool(tmp_path / "capitals.jsonl", map(row, range(30)))


each_reading = pytest.mark.parametrize("run", [evaluate, forecast])


def test_rows_in_are_rows_out_in_order_whatever_the_workers(pool: Path, tmp_path: Path) -> None:  # hazard 86
    """And the summary says what each rule was worth and needed."""
    summaries = []
    for workers in (1, 8):
        (selector, lm), out = selector_with(obliging), tmp_path / f"run{workers}"
        summary: Any = evaluate(selector, Plan([pool], out, workers=workers))
        summaries.append(drop_times(summary))
        ids = [line["id"] for line in json_lines(out / "decisions.jsonl") if line["rule"] == "eldgr"]
        assert (ids, len(lm.requests)) == ([f"q{number}" for number in range(30)], 30)
        figures, record = summary["pools"]["capitals"], json_of(out / "record.json")
        assert [figures["rules"][name]["em"] for name in ("first", "majority", "judge", "eldgr")] == [0, 0, 100, 100]
        assert figures["rules"]["eldgr"]["calls"] == {"judge": 30, "deriver": 0, "repairer": 0}
        assert figures["rules"]["majority"]["asked"] == {"judge": 0, "deriver": 0, "repairer": 0}
        overrides = [figures["audit"][name] for name in ("judge_overrides", "incorrect_to_correct")]
        assert (figures["bounds"]["eldgr"], *overrides) == ([0, 100], 30, 30)
        assert (summary["consultations"]["judge"]["calls"], json_of(out / "summary.json")) == (30, summary)
        model = {"role": "judge", "asked": "scripted/lm", "served": "scripted/lm", "same": True, "calls": 30}
        assert (record["models"], record["override_rates"]["capitals"]["by_judge"]) == ([model], 100)
        assert "capitals" in (out / "report.html").read_text()
    assert len(set(summaries)) == 1


def test_a_row_that_is_slower_than_all_others_stops_none_of_them(tmp_path: Path) -> None:  # hazard 86
    """Its reply waits for the replies to all others, which take turns on the other workers."""
    pool = write_pool(tmp_path / "p.jsonl", map(row, range(60)))
    others, complete = count(1), Event()

    def reply(request: Any) -> Any:
        if "capital number 0?" in text_of(request):
            assert complete.wait(timeout=300)
        elif next(others) == 59:
            complete.set()
        return obliging(request)

    summary: Any = evaluate(selector_with(reply)[0], Plan([pool], tmp_path / "run", workers=4))
    assert (summary["pools"]["p"]["n"], complete.is_set()) == (60, True)


def test_failures_within_the_budget_stay_in_n_and_decide_as_a_silent_role(pool: Path, tmp_path: Path) -> None:
    flaky = Flaky(lambda number: number % 3 == 0)
    summary: Any = evaluate(selector_with(flaky)[0], Plan([pool], tmp_path / "run", workers=4, max_failures="100%"))
    figures, failures = summary["pools"]["capitals"], summary["consultations"]["judge"]["failed"]
    assert (figures["n"], figures["n_failed"], failures, figures["audit"]["abstentions"]) == (30, 10, 10, 0)
    assert figures["rules"]["eldgr"]["em"] == pytest.approx(100 * 20 / 30)
    decision = next(one for one in json_lines(tmp_path / "run" / "decisions.jsonl") if one["rule"] == "eldgr")
    assert (decision["id"], decision["branch"], decision["answer"]) == ("q0", "consensus", "Nice")
    assert decision["abstentions"]["judge"].startswith("failed: LMServerError: ")


@pytest.mark.parametrize("workers", [1, 4])
def test_beyond_the_budget_the_run_stops_and_the_same_plan_resumes_it(pool: Path, tmp_path: Path, workers: int) -> None:
    plan = Plan([pool], tmp_path / "run", workers=workers)
    flaky, well = Flaky(lambda number: number == 11), Flaky(lambda number: False)
    message = r"1 question failed, more than the 0 that --max-failures allows; the last: LMServer"
    refuses(RunStoppedError, message, evaluate, selector_with(flaky)[0], plan)
    assert not [*(tmp_path / "run").glob("summary.json"), *(tmp_path / "run").glob("*.part")]
    with RunDirectory(tmp_path / "run"):  # hazard 90
        message = "another process is writing to this run"
        refuses(RunLockedError, message, evaluate, selector_with(well)[0], plan)
    summary = evaluate(selector_with(well)[0], plan)
    assert flaky.calls + well.calls == 31
    whole = evaluate(selector_with(obliging)[0], Plan([pool], tmp_path / "whole"))
    assert drop_times(summary["pools"]) == drop_times(whole["pools"])
    entries = list(read_journal(tmp_path / "run" / "journal.jsonl"))
    assert sum(one.calls for one in entries if one.role == "judge") == summary["consultations"]["judge"]["calls"]
    assert [one.attempt for one in entries if one.id == "q11" and one.role == "judge"] == [1, 2]


def test_the_budget_counts_questions_however_many_of_their_calls_fail(tmp_path: Path) -> None:
    """The judge and the repairer both fail on each of these; rules ask both."""
    pool = write_pool(tmp_path / "p.jsonl", (row(number, answers=("Nice", "Oslo", "Rome")) for number in range(3)))
    selector, lm = selector_with(lambda _: dspy.LMServerError("the server is away"))
    assert evaluate(selector, Plan([pool], tmp_path / "three", max_failures=3))["pools"]["p"]["n_failed"] == 3
    assert len(lm.requests) == 6
    message = r"^3 questions failed, more than the 2 that --max-failures allows; the"
    refuses(RunStoppedError, message, evaluate, selector, Plan([pool], tmp_path / "two", max_failures=2))
    assert len(lm.requests) == 6 + 5


def test_why_a_run_stops_is_not_forgotten_over_what_fails_after_and_ends_in_one_full_stop() -> None:
    budget = FailureBudget(0)
    for question, error in zip("qqr", (dspy.LMServerError("away"), dspy.LMAuthError("no key"), OSError()), strict=True):
        budget.spend(("p", question, "judge"), error)
    refuses(RunStoppedError, r"^The call can only fail again: LMAuthError", budget.check)
    for error in (dspy.LMAuthError("There is no key."), dspy.LMServerError("The server is away.")):
        budget = FailureBudget(0)
        budget.spend(("p", "q", "judge"), error)
        reason = str(budget.reason)
        assert f"{error}" in reason and ".." not in reason


def test_an_lm_is_missing_if_the_parts_of_a_role_say_so_and_then_a_run_stops(pool: Path, tmp_path: Path) -> None:
    message = r"The judge has no LM: give --judge MODEL or --lm MODEL, or configure one"
    refuses(ArgumentError, message, evaluate, Selector(), Plan([pool], tmp_path / "run"))

    class Own(Judge):
        """A judge of the user's own, asked as ours is."""

    bringing = Does(max, judge=Judge())  # a user's module, which may set an LM when it is called
    roles = (Judge(), Own(), Panel([Judge(), LexicalJudge()]), bringing, LexicalJudge())
    assert [role_call(role).without_lm for role in roles] == [True, True, True, False, False]
    with dspy.context(lm=scripted_lm([])):
        assert not role_call(Judge()).without_lm


def test_a_bug_in_a_role_is_raised_and_what_was_asked_is_kept(tmp_path: Path) -> None:
    selector = heuristic_selector()
    selector.repairer = Returns(ZeroDivisionError("a bug"))
    pool = write_pool(tmp_path / "p.jsonl", [row(0, answers=("Nice", "Oslo"))])
    refuses(ZeroDivisionError, "a bug", evaluate, selector, Plan([pool], tmp_path / "run"))
    assert [one.role for one in read_journal(tmp_path / "run" / "journal.jsonl")] == ["judge"]


# -- what is a change, and what is not --
def test_more_rules_more_rows_and_more_pools_are_no_change(pool: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    selector, lm = selector_with(obliging)
    evaluate(selector, Plan([pool], out, rules=("majority", "eldgr"), limit=10))
    assert len(lm.requests) == 10
    other = write_pool(tmp_path / "other.jsonl", map(row, range(5)))
    summary = evaluate(selector, Plan([pool, other], out, limit=20))
    assert len(lm.requests) == 10 + 15
    assert {name: result["n"] for name, result in summary["pools"].items()} == {"capitals": 20, "other": 5}


CHANGES: dict[str, Callable[[Selector, Path], object]] = {
    "pool": lambda _, pool: write_pool(pool, [row(0, question="Another?"), *map(row, range(1, 30))]),
    "model": lambda selector, _: selector.set_lm(scripted_lm(obliging, model="scripted/other")),
    "setting": lambda selector, _: setattr(selector, "settings", Selector(certificate="token").settings),
    "temperature": lambda selector, _: selector.set_lm(scripted_lm(obliging, temperature=0.5)),
    "prompt": lambda selector, _: reword(selector),
    "demos": lambda selector, _: demonstrate(selector),
}


@each_case("run", "changed runs")
def test_a_changed_run_is_refused_with_its_difference(  # hazard 91
    pool: Path, tmp_path: Path, change: str, difference: str
) -> None:
    plan = Plan([pool], tmp_path / "run")
    evaluate(selector_with(obliging)[0], plan)
    before = (tmp_path / "run" / "journal.jsonl").read_bytes()
    selector, lm = selector_with(obliging)
    CHANGES[change](selector, pool)
    for reads in (forecast, evaluate):
        refuses(RunChangedError, difference, reads, selector, plan)
        assert (lm.requests, (tmp_path / "run" / "journal.jsonl").read_bytes()) == ([], before)
    evaluate(selector, Plan([pool], tmp_path / "run", fresh=True))
    assert (tmp_path / "run" / "journal.jsonl.1").read_bytes() == before


# -- recordings --
def test_what_is_recorded_is_not_asked_but_marked_and_what_is_not_withholds_rules(pool: Path, tmp_path: Path) -> None:
    ids, (selector, lm) = [f"q{number}" for number in range(30)], selector_with(obliging)
    whole = recording(tmp_path / "whole.jsonl", ids, calls=1)
    summary = evaluate(selector, Plan([pool], tmp_path / "run", replay=whole))
    figures = summary["pools"]["capitals"]["rules"]["eldgr"]
    assert (lm.requests, figures["em"], figures["calls"]["judge"]) == ([], 100, 0)
    assert summary["consultations"]["judge"]["recorded"] == 30
    assert all(one.recorded for one in read_journal(tmp_path / "run" / "journal.jsonl"))
    part = recording(tmp_path / "part.jsonl", ids[:28])
    result = evaluate(selector, Plan([pool], tmp_path / "part", replay=part))["pools"]["capitals"]
    assert (result["withheld"], result["audit"]) == ({"judge": {"judge": 2}, "eldgr": {"judge": 2}}, None)
    assert (lm.requests, set(result["rules"])) == ([], {"first", "majority", "certified"})
    complete = evaluate(selector, Plan([pool], tmp_path / "part"))["pools"]["capitals"]
    assert (len(lm.requests), complete["withheld"], complete["rules"]["eldgr"]["em"]) == (2, {}, 100)


def test_a_recording_that_holds_no_consultation_or_contradicts_itself_is_refused(pool: Path, tmp_path: Path) -> None:
    other = recording(tmp_path / "other", ["q1"], content={"preferred": 0}).read_text()
    (twice := tmp_path / "twice.jsonl").write_text(recording(tmp_path / "one", ["q1", "q1"]).read_text() + other)
    line = {"kind": "consultation", "id": "q1", "role": "judge", "outcome": "failed", "reason": "no"}
    empty, failure = write_pool(tmp_path / "empty.jsonl", []), write_pool(tmp_path / "failed.jsonl", [line])
    for replay, message in (
        (pool, r"capitals\.jsonl, line 1: kind=None is not one of consultation, .*journal"),
        (empty, r"empty\.jsonl: holds no consultation; a recording is a journal"),
        (failure, r"failed\.jsonl: holds no consultation that came through; a rec"),
        (twice, r"twice\.jsonl: holds different replies of the judge to question 'q1'; keep one\."),
    ):
        plan = Plan([pool], str(tmp_path / "run"), replay=replay)
        refuses(JournalError, message, evaluate, heuristic_selector(), plan)
    assert not (tmp_path / "run").exists()
    head = '{"kind": "pool", "name": "capitals", "details": {}}\n'  # so a run wrote it, and may have asked again
    twice.write_text(head + twice.read_text())
    evaluate(heuristic_selector(), Plan([pool], str(tmp_path / "run"), replay=twice))
    first = next(read_journal(tmp_path / "run" / "journal.jsonl"))
    assert (first.recorded, first.content) == (True, {"preferred": 0})
    # a role whose recorded calls all failed is not asked either
    selector, lm = selector_with(obliging)
    write_pool(failure, [line, line | {"role": "repairer", "outcome": "abstained"}])
    plan = Plan([pool], tmp_path / "failed", replay=failure)
    assert forecast(selector, plan)["pools"]["capitals"]["roles"]["judge"]["to_ask"] == 0
    assert evaluate(selector, plan)["pools"]["capitals"]["withheld"] == {"judge": {"judge": 30}, "eldgr": {"judge": 30}}
    assert lm.requests == []


@each_reading
def test_a_recording_that_was_made_for_none_of_the_pools_is_refused(pool: Path, tmp_path: Path, run: Any) -> None:
    lines = [recording(tmp_path / "one", ["q1"], pool=name).read_text() for name in ("towns", "rivers")]
    (replay := tmp_path / "replay.jsonl").write_text("".join(lines))
    selector, lm = selector_with(obliging)
    assert refusal(lambda: run(selector, Plan([pool], tmp_path / "run", replay=replay))) == (
        f"{replay}: recorded for 'rivers', 'towns', not for 'capitals', so it would answer nothing; give a "
        "pool that it was recorded for, or no --replay. If the questions are the same, name the pool as it was "
        "named then, or give recorded_for= in Python."
    )
    assert (lm.requests, (tmp_path / "run").exists()) == ([], False)
    towns = write_pool(tmp_path / "towns.jsonl", map(row, range(2)))
    run(selector, Plan([pool, towns], tmp_path / "run", replay=replay, limit=1))


@each_reading
def test_a_recording_whose_last_line_is_torn_is_used_without_it(pool: Path, tmp_path: Path, run: Any) -> None:
    replay = recording(tmp_path / "replay.jsonl", [f"q{number}" for number in range(30)])
    replay.write_bytes(replay.read_bytes()[:-20])
    plan = Plan([pool], tmp_path / "run", replay=replay, limit=10**30)  # no limit is too large
    with pytest.warns(TornLineWarning, match=r"replay\.jsonl: the last line is torn and skipped; its record"):
        result = run(selector_with(obliging)[0], plan)["pools"]["capitals"]
    assert result["n"] == 30
    if run is evaluate:
        assert result["withheld"] == {"judge": {"judge": 1}, "eldgr": {"judge": 1}}
    else:
        assert (result["roles"]["judge"]["recorded"], result["roles"]["judge"]["to_ask"]) == (29, 0)


def test_a_recording_that_was_edited_is_refused_and_one_that_was_extended_is_not(pool: Path, tmp_path: Path) -> None:
    out, ids = tmp_path / "run", [f"q{number}" for number in range(30)]
    plan = Plan([pool], out, replay=recording(tmp_path / "replay.jsonl", ids[:20]))
    evaluate(selector_with(obliging)[0], plan)
    recording(tmp_path / "replay.jsonl", ids)
    assert evaluate(selector_with(obliging)[0], plan)["pools"]["capitals"]["rules"]["eldgr"]["em"] == 100
    before = (out / "journal.jsonl").read_bytes()
    for changes in ({"content": VERDICT | {"preferred": 0}}, {"outcome": "abstained"}, {"reason": "why"}):
        lines = json_lines(recording(tmp_path / "replay.jsonl", ids))
        write_pool(tmp_path / "replay.jsonl", [*lines[:7], lines[7] | changes, *lines[8:]])
        selector, lm = selector_with(obliging)
        message = r"replay\.jsonl: the judge of question 'q7' of pool 'capitals' is not the one"
        for reads in (forecast, evaluate):
            refuses(RunChangedError, message, reads, selector, plan)
        assert (lm.requests, (out / "journal.jsonl").read_bytes()) == ([], before)
    other = write_pool(tmp_path / "other.jsonl", map(row, range(30)))
    evaluate(selector_with(obliging)[0], Plan([other], out, replay=plan.replay))


def test_a_recording_of_another_pool_of_that_name_is_refused(pool: Path, tmp_path: Path) -> None:
    evaluate(selector_with(obliging)[0], Plan([pool], tmp_path / "first"))
    replay = tmp_path / "first" / "journal.jsonl"
    evaluate(selector_with(obliging)[0], Plan([pool], tmp_path / "same", replay=replay))
    selector, lm = selector_with(obliging)
    CHANGES["pool"](selector, pool)
    message = r"journal\.jsonl: recorded on another pool 'capitals' \(sha256 '[0-9a-f]{64}"
    refuses(RunChangedError, message, evaluate, selector, Plan([pool], tmp_path / "run", replay=replay))
    assert (lm.requests, (tmp_path / "run").exists()) == ([], False)


# -- results --
def test_the_record_lists_the_pools_of_its_run_in_their_order_whatever_came_before(tmp_path: Path) -> None:
    pools = [write_pool(tmp_path / f"{name}.jsonl", map(row, range(3))) for name in "ab"]
    for some in (pools[:1], pools[::-1], pools[1:]):
        evaluate(selector_with(obliging)[0], Plan(some, tmp_path / "run"))
        record = json_of(tmp_path / "run" / "record.json")
        assert list(record["pools"]) == list(record["override_rates"]) == [pool.stem for pool in some]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_all_results_are_in_place(pool: Path, tmp_path: Path, number: signal.Signals) -> None:
    """A hook on the renames stands for the moment: the signal comes before each of them."""
    out, active = tmp_path / "run", True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if active and event == "os.rename" and str(arguments[1]).startswith(str(out)):
            signal.raise_signal(number)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    sys.addaudithook(hook)
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate(selector_with(obliging)[0], Plan([pool], out))
        assert signal.getsignal(number) is interrupt
    finally:
        active = False
        signal.signal(number, before)
    names = {"decisions.jsonl", "record.json", "questions.html", "report.html", "summary.json"}
    assert {path.name for path in out.iterdir()} - {".lock", "journal.jsonl"} == names


def test_a_signal_ends_a_run_also_where_a_handler_would_raise_in_vain(pool: Path, tmp_path: Path) -> None:
    class Target:
        pass

    def send() -> None:
        target = Target()
        reference = weakref.ref(target, lambda _: signal.raise_signal(signal.SIGINT))
        del target
        assert reference() is None

    calls: list[str] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        watcher = Watcher(on_row=send, on_interrupt=lambda: calls.append("interrupted"))
        refuses(KeyboardInterrupt, "^$", evaluate, heuristic_selector(), Plan([pool], tmp_path / "run"), watcher)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    files = {path.name for path in (tmp_path / "run").glob("*")} - {".lock", "journal.jsonl"}
    assert (calls, files) == (["interrupted"], set())


# -- plans --
@each_case("run", "plans that are refused", float=float, tuple=lambda *parts: parts, rule=RULES.__getitem__)
def test_a_plan_that_cannot_be_carried_out_is_refused(changes: dict[str, Any], message: str) -> None:
    assert refusal(lambda: Plan(["p.jsonl"], **changes)) == message


def test_a_plan_has_places_for_three_alone_and_what_is_not_a_selector_is_refused_before_anything_is_read() -> None:
    message = "takes from 2 to 4 positional arguments but 5 were given"
    refuses(TypeError, message, Plan, ["pool.jsonl"], "run", ["majority"], 10)
    for value, message in (
        (Program(), "selector must be a Selector; got Program. Give its selector, the attribute 'select'."),
        ("eldgr", "selector must be a Selector; got str. Give a Selector, such as Selector()."),
    ):
        selector: Any = value
        assert refusal(lambda: evaluate(selector, Plan(["nowhere.jsonl"]))) == message  # noqa: B023 -- called here


@each_case("run", "failure budgets")
def test_the_failure_budget_is_a_count_or_an_exact_share(values: int | str, total: int, expected: int) -> None:
    assert allowed_questions("max_failures", values, total) == expected


def test_the_directory_is_named_after_the_pools_and_those_of_other_names_have_another() -> None:  # hazard 98
    long = "x" * 200
    pools = ("a b", "a_b", "a:b", "a+b", "a|b", "a+b|c", "a|b+c", "a|b|c", f"{long}1", f"{long}2")
    names = [out_of(Plan([f"{name}.jsonl" for name in some.split("|")])).name for some in pools]
    assert (len(set(names)), names[1], names[4], names[7]) == (len(pools), "a_b", "a+b", "a+b+c")
    assert out_of(Plan(["a/x.jsonl.gz", "b/y.parquet"])) == Path("runs/x+y")
    assert out_of(Plan(["..jsonl"])) == Path("runs/pool-cdb4ee")
    assert out_of(Plan(["x" * 300 + ".jsonl"])) == Path("runs") / ("x" * 113 + "-0d4e2c")
    assert out_of(Plan(["x.jsonl"], Path("here"))) == Path("here")


def test_a_verdict_is_on_disk_before_it_decides(pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, fsync, disk, early = tmp_path / "run" / "journal.jsonl", os.fsync, [b""], list[str]()

    def flush(file: int) -> None:
        content = journal.read_bytes() if os.path.samestat(os.fstat(file), journal.stat()) else b""
        fsync(file)
        disk[0] = max(disk[0], content, key=len)

    def watch(one: Consultation) -> None:
        if f'"id": "{one.id}", "role": "{one.role}"'.encode() not in disk[0]:
            early.append(one.id)

    (selector, lm), plan = selector_with(obliging), Plan([pool], tmp_path / "run", workers=6)
    monkeypatch.setattr(os, "fsync", flush)
    evaluate(selector, plan, Watcher(on_consultation=watch))
    assert (len(lm.requests), early) == (30, [])


def test_no_more_are_asked_at_once_than_there_are_workers(pool: Path, tmp_path: Path) -> None:
    """Each call waits until three are under way; 30 questions are ten times three."""
    under_way, most, lock, three = [0], [0], Lock(), Barrier(3, timeout=300)

    def count_calls(_: Any, **inputs: Any) -> Any:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        three.wait()
        with lock:
            under_way[0] -= 1
        return dspy.Prediction(**VERDICT)

    evaluate(with_judge(Does(count_calls)), Plan([pool], tmp_path / "run", ("judge",), workers=3))
    assert most == [3]


def test_the_run_leaves_the_callers_lm_as_it_was_and_tells_the_watcher_of_all(pool: Path, tmp_path: Path) -> None:
    """And a user's callbacks of roles without an LM."""
    with dspy.context(callbacks=[spans := Spans()]):
        evaluate(heuristic_selector(), Plan([pool], tmp_path / "heuristic"))
    assert list(spans.names.values()) == ["LexicalJudge"] * 30
    lm, events = scripted_lm(obliging), list[Any]()
    watcher = Watcher(events.append, lambda: events.append("row"), lambda one: events.append(one.role))
    with dspy.context(lm=lm, trace=[]):
        evaluate(Selector(), Plan([pool], tmp_path / "run"), watcher)
        assert (dspy.settings.lm, dspy.settings.trace) == (lm, [])
    assert (lm.history, len(lm.requests)) == ([], 30)
    assert (events[0], events.count("row"), events.count("judge")) == (30, 30, 30)
