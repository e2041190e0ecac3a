"""The limits of a run hold over kills: a request is reserved in the journal before it is sent."""

import json
import os
import random
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.journal import Journal, read_journal
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.reservations import Reserved
from eldgr_dspy.programs.run.spending import Spending
from tests.capitals import obliging as scripted
from tests.capitals import row, selector_with, write_pool
from tests.lm_server import Answer, Asked, LMServer, serving
from tests.run.priced import SAID, loopback_alone, selector_at
from tests.run.processes import Run, until

__all__ = ["loopback_alone"]

LIMIT = 10


class Sessions:
    """Sessions of one run, each on the journal that the one before left, and what the server has seen."""

    def __init__(self, folder: Path, max_calls: int | None, max_cost: float | None) -> None:
        self.path, self.limits = folder / "journal.jsonl", (max_calls, max_cost)
        self.received, self.paid, self.kills = 0, 0.0, 0
        self.begin()

    def begin(self) -> None:
        self.journal = Journal(self.path)
        before = list(read_journal(self.path)) if self.path.stat().st_size else []
        self.spending = Spending(*self.limits, before, Reserved(self.journal))
        self.under_way = 0

    def send(self) -> None:
        """A request is sent, if it is admitted."""
        try:
            admitted = self.spending.admit()
        except RunStoppedError:
            return
        self.under_way += admitted
        self.received += admitted
        self.paid += admitted

    def end(self, outcome: str) -> None:
        """A request comes back, for a dollar, and is journaled."""
        if self.under_way:
            self.under_way -= 1
            self.spending.answered(1.0)
            said = Consultation("p", f"q{self.received}", "judge", "ok", content={}, calls=1, cost=1.0)
            self.journal.append(replace(said, outcome="failed") if outcome == "failed" else said)

    def kill(self) -> None:
        """The process ends at once: what is under way is in no consultation."""
        self.kills += 1
        self.journal.close()
        self.begin()

    def stop(self) -> None:
        """The process ends in order, and waits for nothing."""
        self.spending.close()
        self.journal.close()
        self.begin()


steps = st.lists(
    st.sampled_from([("send",), ("send",), ("send",), ("end", "ok"), ("end", "failed"), ("kill",), ("stop",)]),
    max_size=60,
)


@settings(max_examples=100)
@given(steps, st.sampled_from([(LIMIT, None), (None, float(LIMIT)), (LIMIT, 100.0), (1_000, float(LIMIT))]))
@example([*[("send",)] * 8, ("kill",)] * 5, (LIMIT, None))
@example([*[("send",)] * 8, ("stop",)] * 5, (LIMIT, None))
def test_no_kill_lets_a_run_pass_its_limits(
    steps: list[tuple[str, ...]], limits: tuple[int | None, float | None]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Sessions(Path(folder), *limits)
        for name, *arguments in steps:
            getattr(run, name)(*arguments)
            # before any price is known one request goes alone, once after each kill
            assert run.received <= LIMIT + (run.kills if limits[1] else 0)
            assert run.paid <= LIMIT + (run.kills if limits[1] else 0)


@given(steps)
def test_a_small_limit_is_used_up_whatever_kills_there_are(steps: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Sessions(Path(folder), LIMIT, None)
        for name, *arguments in steps:
            getattr(run, name)(*arguments)
        for _ in range(LIMIT):
            run.send()
        assert run.received == LIMIT


def test_a_kill_wastes_at_most_a_hundredth_of_what_is_allowed(tmp_path: Path) -> None:
    run = Sessions(tmp_path, 1_000, None)
    for _ in range(3):
        run.send()
        run.kill()
    while run.received < 1_000:
        before = run.received
        run.send()
        run.end("ok")
        if run.received == before:
            break
    assert 1_000 - 3 * 10 <= run.received <= 1_000
    lines = [json.loads(line) for line in run.path.read_text().splitlines()]
    assert sum("sent" in line["details"] for line in lines if line["kind"] == "reserved") < 450


def test_a_session_without_a_limit_forgets_no_lost_request(tmp_path: Path) -> None:
    run = Sessions(tmp_path, LIMIT, None)
    for _ in range(4):
        run.send()
    run.limits = (None, None)
    run.kill()
    run.send()
    run.end("ok")
    run.limits = (LIMIT, None)
    run.stop()
    for _ in range(LIMIT):
        run.send()
    assert run.received == LIMIT


def test_threads_reserve_what_they_send(tmp_path: Path) -> None:
    run = Sessions(tmp_path, 500, None)
    admitted = []

    def send() -> None:
        for _ in range(100):
            try:
                admitted.append(run.spending.admit())
            except RunStoppedError:
                return

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(admitted) == 500
    assert Reserved(run.journal).sent == 500


def test_a_run_without_a_limit_reserves_nothing(tmp_path: Path) -> None:
    selector, _ = selector_with(scripted)
    evaluate(selector, Plan([write_pool(tmp_path / "p.jsonl", map(row, range(4)))], tmp_path / "run"))
    assert b'"reserved"' not in (tmp_path / "run" / "journal.jsonl").read_bytes()


def test_a_disk_that_takes_no_reservation_stops_the_run_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Journal.append_head

    def append_head(self: Journal, head: Any) -> None:
        if head["kind"] == "reserved":
            raise OSError(28, "No space left on device", str(self.path))
        whole(self, head)

    monkeypatch.setattr(Journal, "append_head", append_head)
    pool = write_pool(tmp_path / "p.jsonl", map(row, range(4)))
    with (
        serving(lambda asked: Answer(SAID)) as server,
        pytest.raises(RunStoppedError, match=r"journal\.jsonl: No space left on device\. Free space on its disk"),
    ):
        evaluate(selector_at(server), Plan([pool], tmp_path / "run", max_calls=5))
    assert not server.log


# -- real processes, killed --


@contextmanager
def slow_server() -> Iterator[LMServer]:
    """A server that answers one request in five, and lets the others wait."""
    draw, opened = random.Random(14), threading.Event()

    def answer(asked: Asked) -> Answer:
        if draw.random() < 0.8:
            opened.wait(30)
        return Answer(SAID)

    with serving(answer) as server:
        yield server
        opened.set()


def killed(process: "subprocess.Popen[bytes]", run: Run) -> None:
    process.kill()


def interrupted_twice(process: "subprocess.Popen[bytes]", run: Run) -> None:
    """A run that has reached its limit waits for its calls, and the first ctrl-C abandons them, or comes too late."""
    process.send_signal(signal.SIGINT)
    until(lambda: "Press ctrl-C again to abandon them." in run.said or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    ended, said = process.wait(60), run.said
    if "Press ctrl-C again" in said:
        assert ended == 130
    elif ended == 3:
        assert " allows " in said
    else:
        assert ended in (130, -signal.SIGINT)  # the latter before the command listens


ENDS = (interrupted_twice, killed, killed, interrupted_twice, killed)


def end_each(run: Run, ends: Sequence[Callable[["subprocess.Popen[bytes]", Run], None]], *limit: str) -> None:
    """Start the command again and again, and end it once the server has seen something of it."""
    for end in ends:
        seen = len(run.server.log)
        with run.started("--workers", "8", *limit) as process:
            until(lambda: len(run.server.log) > seen or process.poll() is not None)  # noqa: B023 -- called here
            if process.poll() is None:
                end(process, run)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the signals of POSIX")
def test_a_run_that_is_killed_five_times_sends_no_more_than_it_may(tmp_path: Path) -> None:
    with slow_server() as server:
        run = Run(tmp_path, server)
        end_each(run, ENDS, "--max-calls", "10")
        server.behaviour = lambda asked: Answer(SAID)
        assert run.finished("--workers", "8", "--max-calls", "10") == 3
        assert len(server.log) <= 10
        assert (
            "just before a session was killed), and --max-calls allows 10; give a higher limit to resume." in run.said
        )
        assert run.finished() == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the signals of POSIX")
def test_a_run_that_is_killed_spends_no_more_than_it_may(tmp_path: Path) -> None:
    with slow_server() as server:
        slow, server.behaviour = server.behaviour, lambda asked: Answer(SAID)
        run = Run(tmp_path, server)
        assert run.finished("--max-calls", "1") == 3
        server.behaviour = slow
        price = sum(one.cost or 0.0 for one in read_journal(run.out / "journal.jsonl"))
        end_each(run, ENDS[:3], "--max-cost", f"{5.5 * price}")
        server.behaviour = lambda asked: Answer(SAID)
        assert run.finished("--max-cost", f"{5.5 * price}") == 3
        assert len(server.log) <= 5
