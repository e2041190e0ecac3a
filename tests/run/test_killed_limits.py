"""The limits of a run hold over kills, but for the requests that were under way at each kill."""

import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.programs.requests.limits import Spending
from eldgr_dspy.rule.consultations import Consultation
from tests.lm_server import Answer, Asked, LMServer, serving
from tests.run.priced import SAID, loopback_alone
from tests.run.processes import Run, until

__all__ = ["loopback_alone"]

LIMIT = 10


class Sessions:
    """Sessions of one run, each on the journal that the one before left; `lost` was under way when one was killed."""

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self.limits = (max_calls, max_cost)
        self.journal = list[Consultation]()
        self.sent = self.under_way = self.lost = 0
        self.spending = Spending(max_calls, max_cost)

    def send(self) -> None:
        """Send a request, if it is admitted."""
        try:
            admitted = self.spending.admit()
        except RunStoppedError:
            return
        self.under_way += admitted
        self.sent += admitted

    def end(self) -> None:
        """Have a request come back, for a dollar, and journal it."""
        if self.under_way:
            self.under_way -= 1
            self.spending.answered(1.0)
            consultation = Consultation("p", f"q{self.sent}", "judge", "ok", content={}, calls=1, cost=1.0)
            self.journal.append(consultation)

    def fail(self) -> None:
        """Have a request fail, and journal it: it was sent, and cost nothing."""
        if self.under_way:
            self.under_way -= 1
            self.spending.failed()
            self.journal.append(Consultation("p", f"q{self.sent}", "judge", "failed", calls=1))

    def withdraw(self) -> None:
        """Do not send a request that was admitted."""
        if self.under_way:
            self.under_way -= 1
            self.sent -= 1
            self.spending.withdraw()

    def kill(self) -> None:
        """End the process at once: what is under way is in no consultation."""
        self.lost += self.under_way
        self.under_way = 0
        self.spending = Spending(self.limits[0], self.limits[1], self.journal)


STEPS = ("send", "send", "send", "end", "fail", "withdraw")


@given(
    st.lists(st.sampled_from(STEPS), max_size=60) | st.lists(st.sampled_from((*STEPS, "kill")), max_size=60),
    st.sampled_from([(LIMIT, None), (None, float(LIMIT)), (LIMIT, 100.0), (1_000, float(LIMIT))]),
)
@example([*["send"] * 8, "kill"] * 5, (LIMIT, None))
@example(["send"] * 12, (LIMIT, None))
@example(["send", "fail"] * 12, (LIMIT, None))
@example(["send", "end", *["send"] * 12, *["end"] * 12], (None, float(LIMIT)))
def test_a_kill_lets_a_run_pass_its_limits_by_what_was_under_way(
    steps: list[str], limits: tuple[int | None, float | None]
) -> None:
    run = Sessions(*limits)
    for name in steps:
        getattr(run, name)()
        assert run.sent <= LIMIT + run.lost or limits[0] != LIMIT
        assert sum(one.cost or 0.0 for one in run.journal) <= LIMIT


# -- real processes, killed --


@contextmanager
def slow_server() -> Iterator[LMServer]:
    """A server that answers one request in five, and lets the others wait."""
    draw, opened = random.Random(14), threading.Event()

    def answer(request: Asked) -> Answer:
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
    ended, reply = process.wait(60), run.said
    if "Press ctrl-C again" in reply:
        assert ended == 130
    elif ended == 3:
        assert " allows " in reply
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
def test_a_run_that_is_killed_five_times_sends_no_more_than_was_under_way(tmp_path: Path) -> None:
    with slow_server() as server:
        run = Run(tmp_path, server)
        end_each(run, ENDS, "--max-calls", "10")
        server.behaviour = lambda request: Answer(SAID)
        assert run.finished("--workers", "8", "--max-calls", "10") == 3
        assert len(server.log) <= 10 + 8 * ENDS.count(killed) + 8 * ENDS.count(interrupted_twice)
        assert "10 requests were sent, and --max-calls allows 10; give a higher limit to resume." in run.said
        assert run.finished() == 0
