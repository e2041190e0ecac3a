"""Whatever goes wrong on the way to an LM is a verdict, an abstention or a failure, in every way of running."""

import asyncio
import html
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.pools import open_pools
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.lms.consulting import FAILURES
from eldgr_dspy.programs.run.evaluation import evaluate
from eldgr_dspy.programs.selector import Selector
from tests.asking.transport import FAULTS, FINAL, GOOD, WAYS, Silent, each_way, log_of, number_of, plan_of, selector_at
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.lm_server import Answer, Request, serving
from tests.refusing import refuses

ROOT = Path(__file__).resolve().parents[2]
PASSING = {name: fault for name, fault in FAULTS.items() if fault.outcome != "fatal"}
AGAIN = {name: fault for name, fault in PASSING.items() if fault.retries}
ONCE = {name: fault for name, fault in PASSING.items() if not fault.retries}
ENGINES = ["lm15", pytest.param("litellm", marks=pytest.mark.slow)]  # the second takes seconds to import
HANGING = """
import sys, asyncio
from tests.asking.transport import *
from tests.lm_server import serving
plan = plan_of(Path(sys.argv[1]), 2, 2, timeout=0.3)
with serving(lambda asked: Answer(FINAL, delay=120)) as server:
    WAYS["threads"][0](selector_at(server), plan)
print("done")
"""


@each_way
@pytest.mark.parametrize("faults", [AGAIN, ONCE], ids=["asked again", "asked once"])
def test_the_outcome_of_each_fault(tmp_path: Path, faults: Any, way: str) -> None:  # hazards 79, 82, 83 and 84
    """A question each, in one run, and once more when the server is well."""
    (run, workers), health, each = WAYS[way], list[bool](), [*faults.values()]
    outcomes = Counter(fault.outcome for fault in each)
    plan = plan_of(tmp_path, workers, len(each))
    with serving(lambda request: GOOD if health else each[number_of(request)].answer) as server:
        result = run(selector_at(server, num_retries=each[0].retries), plan)["pools"]["p"]
        assert result["rules"]["judge"]["em"] == pytest.approx(100 * outcomes["ok"] / len(each))
        assert result["n_failed"] == outcomes["failed"]
        entries, counts = {one.id: one for one in log_of(tmp_path)}, Counter(map(number_of, server.log))
        for number, (name, fault) in enumerate(faults.items()):
            one = entries[f"q{number}"]
            result_of = (one.outcome, one.calls, counts[number], (one.reason or "")[: len(fault.reason)])
            assert result_of == (fault.outcome, fault.requests, fault.requests, fault.reason), name
        health.append(True)
        healthy = run(selector_at(server), plan)["pools"]["p"]
        assert len(server.log) - counts.total() == outcomes["failed"]
        assert healthy["rules"]["judge"]["em"] == pytest.approx(100 * (1 - outcomes["abstained"] / len(each)))


@each_way
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in PASSING])
def test_what_can_only_fail_again_stops_the_run(tmp_path: Path, name: str, way: str) -> None:  # hazard 80
    fault, (run, workers), health = FAULTS[name], WAYS[way], list[bool]()
    plan = plan_of(tmp_path, workers)
    with serving(lambda request: GOOD if health else fault.answer) as server:
        selector = selector_at(server, num_retries=fault.retries)
        refuses(RunStoppedError, "The call can only fail again", run, selector, plan)
        total, entries = len(server.log), log_of(tmp_path)
        assert total == sum(one.calls for one in entries) <= workers
        assert all(one.outcome == "failed" and (one.reason or "").startswith(fault.reason) for one in entries)
        health.append(True)
        assert run(selector_at(server), plan)["pools"]["p"]["rules"]["judge"]["em"] == 100
        assert len(server.log) - total == 3  # the questions


def directly(server: Any, folder: Path, is_async: bool = False, **options: Any) -> Any:
    """What a direct call makes of the question that a run finds in the pool."""
    select = selector_at(server, **options)
    select.repairer = Silent()
    [pool] = open_pools(plan_of(folder, questions=1).pools)
    [case] = [row.to_question() for row in pool.rows(1)]
    inputs = {"question": case.text, "candidates": list(case.answers), "evidence": [one.text for one in case.passages]}
    return asyncio.run(select.acall(**inputs)) if is_async else select(**inputs)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_the_same_outcome_in_a_direct_call(tmp_path: Path, name: str, is_async: bool) -> None:
    fault = FAULTS[name]
    with serving(lambda request: fault.answer) as server:
        if fault.outcome in ("failed", "fatal"):
            refuses(FAILURES, ".", directly, server, tmp_path, is_async)
            return
        reply = directly(server, tmp_path, is_async)
    if fault.outcome == "ok":
        assert (reply.branch, reply.preference, reply.abstentions) == ("judge", 2, {})
    else:
        assert (reply.branch, reply.preference, bool(reply.failures)) == ("consensus", None, False)
        assert reply.abstentions["judge"].startswith(fault.reason)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two choices", "a reply cut by its limit", "a reply withheld"])
def test_a_flaw_is_seen_through_litellm_too(tmp_path: Path, name: str) -> None:
    with serving(lambda request: replace(FAULTS[name].answer, closes=True)) as server:
        reply = directly(server, tmp_path, engine="litellm")
        evaluate(selector_at(server, engine="litellm"), plan_of(tmp_path, 1, 1))
    assert reply.abstentions["judge"].startswith(FAULTS[name].reason)
    assert log_of(tmp_path)[0].reason == reply.abstentions["judge"]


@pytest.mark.slow
def test_a_call_that_broke_off_is_repeated(tmp_path: Path) -> None:  # hazard 79
    """All of them beside each other, since the pause is a second; a body of another kind is a fault of the client's."""
    faults = [fault.answer for fault in FAULTS.values() if fault.outcome == "failed" and fault.answer.status < 300]

    def behave(request: Request) -> Answer:
        return faults[number_of(request)] if request.times == 1 else GOOD

    assert len(faults) == 6
    with serving(behave) as server:
        result = evaluate(selector_at(server, num_retries=1), plan_of(tmp_path, 8, 6))["pools"]["p"]
        assert (result["n_failed"], len(server.log)) == (1, 11)
    assert sorted((one.outcome, one.calls) for one in log_of(tmp_path)) == [("failed", 1), *[("ok", 2)] * 5]


@each_way
@pytest.mark.parametrize("engine", ENGINES)
def test_clients_repeat_nothing_of_their_own(tmp_path: Path, way: str, engine: str) -> None:  # hazard 87
    """Retries of a client below ours would multiply: three times three requests a question."""
    run, workers = WAYS[way]
    with serving(lambda request: Answer(status=503, closes=True)) as server:
        run(selector_at(server, num_retries=2, engine=engine), plan_of(tmp_path, workers, 2))
        assert len(server.log) == sum(one.calls for one in log_of(tmp_path)) == 2 * 3


@pytest.mark.parametrize(("workers", "gap"), [(1, 0.0), (4, 0.0), (4, 0.005)])
def test_an_answer_delivered_twice_answers_one_question(tmp_path: Path, workers: int, gap: float) -> None:  # hazard 85
    """Clients may read the second copy as the answer to the next request, or wait for one that never comes."""

    def behave(request: Request) -> Answer:
        return Answer(json.dumps({**json.loads(FINAL), "judge_rationale": request.question}), copies=2, gap=gap)

    with serving(behave) as server:
        evaluate(selector_at(server, num_retries=0), plan_of(tmp_path, workers, 16))
        assert workers > 1 or len(server.log) == sum(one.calls for one in log_of(tmp_path))
    rationales = {one.id: (one.content or {})["judge_rationale"] for one in log_of(tmp_path) if one.settled}
    assert rationales == {f"q{number}": f"What is capital number {number}?" for number in range(16)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_may_ask_for_a_pause(tmp_path: Path, engine: str, status: int) -> None:  # hazard 79
    """Its half second is kept where the first pause of our own is a second."""
    answers = {1: Answer(status=status, retry_after="0.5", closes=True), 2: Answer(FINAL, closes=True)}
    with serving(lambda request: answers[request.times]) as server:
        run, start = selector_at(server, num_retries=1, engine=engine), time.monotonic()
        assert evaluate(run, plan_of(tmp_path, 1, 1))["pools"]["p"]["n_failed"] == 0
    assert time.monotonic() - start > 0.5
    assert log_of(tmp_path)[0].calls == 2


@each_way
def test_a_run_that_stops_ends_the_pauses_of_others(tmp_path: Path, way: str) -> None:
    """One question waits for the minute that the server asked for when another one's key is refused."""
    run, workers = WAYS[way]

    def behave(request: Request) -> Answer:
        waits = "number 0?" in request.question
        return Answer(status=503, retry_after="60") if waits else Answer(status=401, delay=0.3)

    with serving(behave) as server:
        start = time.monotonic()
        if workers == 1:  # nobody else is under way: the deadline of the question ends its pause
            plan = plan_of(tmp_path, 1, 1, timeout=0.5)
            assert run(selector_at(server, num_retries=3), plan)["pools"]["p"]["n_failed"] == 1
        else:
            selector = selector_at(server, num_retries=3)
            refuses(RunStoppedError, "LMAuthError", run, selector, plan_of(tmp_path, workers, 2))
        assert time.monotonic() - start < 30
    assert [one.calls for one in log_of(tmp_path)] == [1] * (1 if workers == 1 else 2)


@each_way
@pytest.mark.parametrize("late", [Answer(FINAL, delay=30), Answer(FINAL, drip=0.5)], ids=["a hang", "a slow drip"])
def test_a_late_call_is_a_failure_and_the_run_continues(tmp_path: Path, way: str, late: Answer) -> None:  # hazard 81
    run, workers = WAYS[way]

    def behave(request: Request) -> Answer:
        return late if "number 1?" in request.question and request.times == 1 else GOOD

    with serving(behave) as server:
        plan, start = plan_of(tmp_path, workers, 3, timeout=0.4), time.monotonic()
        result = run(selector_at(server, num_retries=2), plan)["pools"]["p"]
        assert time.monotonic() - start < 20
        assert (result["n_failed"], result["rules"]["judge"]["em"]) == (1, pytest.approx(200 / 3))
        failure = next(one for one in log_of(tmp_path) if one.outcome == "failed")
        assert failure.reason == "TimeoutError: nothing was said within 0.4 s; a longer --timeout waits longer"
        assert (failure.id, failure.calls, failure.cost) == ("q1", 1, None)
        assert run(selector_at(server), plan)["pools"]["p"]["rules"]["judge"]["em"] == 100
        assert len(server.log) == sum(one.calls for one in log_of(tmp_path)) == 4


@each_way
def test_a_role_that_calls_no_lm_has_the_deadline_too(tmp_path: Path, way: str) -> None:
    class Sleeper(dspy.Module):
        def forward(self, **inputs: Any) -> Any:
            time.sleep(30)

    (run, workers), selector = WAYS[way], Selector()
    selector.judge = Sleeper()
    assert run(selector, plan_of(tmp_path, workers, 2, timeout=0.2))["pools"]["p"]["n_failed"] == 2


def test_what_was_given_up_sends_nothing_more(tmp_path: Path) -> None:
    """The pause before the second request outlasts the deadline, and the first request's thread with it."""
    with serving(lambda request: Answer(status=503, retry_after="0.6")) as server:
        evaluate(selector_at(server, num_retries=5), plan_of(tmp_path, 1, 1, timeout=0.3))
        time.sleep(0.8)
        assert len(server.log) == log_of(tmp_path)[0].calls == 1


@pytest.mark.slow
def test_a_call_that_hangs_does_not_hold_up_the_end_of_the_process(tmp_path: Path) -> None:  # hazard 81
    command = [sys.executable, "-c", HANGING, str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_a_server_that_is_away_stops_the_run_whatever_may_fail(tmp_path: Path) -> None:
    message = "^16 calls in a row failed, so that the server seems to be away; the"
    with serving(lambda request: Answer(status=503)) as server:
        refuses(RunStoppedError, message, evaluate, selector_at(server), plan_of(tmp_path, 1, 40))
        assert len(server.log) == 16


@pytest.mark.parametrize(("retries", "requests"), [(0, 40), (9, 40 + 100 + 4)])
def test_failures_with_others_between_do_not_stop_a_run(tmp_path: Path, retries: int, requests: int) -> None:
    """Of a server that fails nine of ten; it repeats itself a hundred times, then once for each reply."""

    def behave(request: Request) -> Answer:
        return GOOD if request.question.endswith("5?") else Answer(status=503)

    with serving(behave) as server:
        result = evaluate(selector_at(server, num_retries=retries), plan_of(tmp_path, 1, 40))["pools"]["p"]
        assert len(server.log) == requests and (retries or (result["n"], result["n_failed"]) == (40, 36))


def test_a_server_that_dies_and_comes_back_costs_no_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run waits, asks again and finishes; each question is judged once."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    pool, numbers = write_pool(tmp_path / "pool.jsonl", map(row, range(8))), count(1)
    away = {5: Answer(status=0), 6: Answer(status=503)}  # it dies, and starts
    with serving(lambda request: away.get(next(numbers), GOOD)) as server:
        asking = ["--judge", "openai/weak", "--api-base", server.address, "--workers", "1", "--rules", "judge"]
        assert main(["evaluate", str(pool), "--out", str(tmp_path / "run"), "--quiet", *asking]) == 0
        assert len(server.log) == 8 + 2
    assert sorted((one.id, one.outcome) for one in log_of(tmp_path)) == [(f"q{number}", "ok") for number in range(8)]


@each_case("asking", "remarks on servers")
def test_a_server_is_remarked_on(tmp_path: Path, changes: Mapping[str, Any], remark: str) -> None:  # hazards 82 and 83
    with serving(lambda request: Answer(FINAL, changes=changes)) as server:
        summary = evaluate(selector_at(server), plan_of(tmp_path))
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert summary["remarks"] == record["remarks"] == [remark]
    assert [one["same"] for one in record["models"]] == ["model" not in changes]
    assert remark in html.unescape((tmp_path / "run" / "report.html").read_text())


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_server_does_not_report_is_unknown(tmp_path: Path, engine: str) -> None:  # hazard 84
    """LiteLLM fills in zeros."""
    with serving(lambda request: Answer(FINAL, changes={"usage": None}, closes=True)) as server:
        summary = evaluate(selector_at(server, engine=engine), plan_of(tmp_path))
    figures: Any = summary["consultations"]["judge"]
    values = [figures[name] for name in ("calls", "prompt_tokens", "completion_tokens", "cost")]
    assert (values, summary["remarks"]) == ([3, None, None, None], [])
    assert all((one.prompt_tokens, one.cost) == (None, None) for one in log_of(tmp_path))
