"""How close a run gets to the LM's latency alone: 1,000 judged questions, 50 ms a call, 64 at once.

Run: python -m benchmarks.throughput [--rows 1000] [--delay 0.05] [--workers 64]

It runs with an LM that answers from this process, and with a server on loopback in its own process, which also counts
the requests; and last with an LM that answers at once, asked for 256 questions at a time.

The ideal is rows * delay / workers. There are three spans,
each from the first question. Asking ends when the last verdict is on the disk and every rule has chosen. Judging ends
when the last decision is scored and written. The whole run also includes its start and end: reading the pool, the
statistics, the audit, the report. Python runs on one processor at a time, so a run takes at least the processor time of
its questions. The same calls of the judge alone, without a run, show the share of DSPy and the client. Memory is
measured after the first and after the last questions.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import dspy
from dspy.lm15 import Message, Response, TextPart, Usage

from benchmarks._timing import line, peak_mib
from benchmarks.runs import rows
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.engines.strict import strict_parsing
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, Watcher, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.consultations import Consultation

AIM = 1.25
RULES = ("majority", "judge")
VERDICT = {"assessments": [], "preferred": 3, "judge_rationale": "none"}

AT_ONCE = 256
"""Questions under way with an LM that answers at once."""


class Clock(Watcher):
    """When a run's first question started, its last verdict arrived, and its last decision was made, in seconds."""

    def __init__(self) -> None:
        super().__init__(on_start=self._start, on_row=self._row, on_consultation=self._consultation)
        self.start = self.last_reply = self.last_row = 0.0

    def _start(self, _: int) -> None:
        self.start = time.perf_counter()

    def _row(self) -> None:
        self.last_row = time.perf_counter()

    def _consultation(self, _: Consultation) -> None:
        self.last_reply = time.perf_counter()


def in_process(delay: float = 0.0) -> Any:
    """An LM that gives the same verdict after a delay, uses almost no processor time and keeps no request."""
    text, usage = TextPart(json.dumps(VERDICT)), Usage(input_tokens=400, output_tokens=20, total_tokens=420)
    verdict = Response(
        id=None, model="scripted/lm", message=Message.assistant([text]), finish_reason="stop", usage=usage
    )
    lm = scripted_lm(lambda _: verdict, delay=delay)
    lm.script.requests = Nothing()
    return lm


def bare(what: str, pool: Path, lm: Any, workers: int) -> None:
    """Print the wall and the processor time of the judge alone on the same questions, in as many threads."""
    judge, questions = Judge(), [row.to_question().role_inputs("judge") for row in open_pool(pool).rows()]
    with dspy.context(lm=lm, disable_history=True), strict_parsing(), ThreadPoolExecutor(workers) as threads:
        judge(**questions[0])
        start, cpu = time.perf_counter(), time.process_time()
        wait([threads.submit(copy_context().run, lambda inputs=inputs: judge(**inputs)) for inputs in questions])
        line(f"{what}, the judge alone in as many threads, wall", time.perf_counter() - start, "s")
        line("the same, processor time a question", (time.process_time() - cpu) / len(questions) * 1e3, "ms")


@contextmanager
def server(delay: float) -> Iterator[str]:
    """Run a server on loopback in its own process; yields its address."""
    command = [sys.executable, "-m", "tests.lm_server", "--delay", str(delay), "--steady"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def count_requests(address: str, token: str) -> int:
    """Return how many requests the server has received under a key."""
    with build_opener(ProxyHandler({})).open(f"{address}/{token}") as reply:
        return len(json.load(reply))


def measure(what: str, lm: Any, plan: Plan, n: int, ideal: float) -> None:
    """Print the wall and the processor time of a run."""
    selector = Selector()
    selector.set_lm(lm)
    clock, start, cpu = Clock(), time.perf_counter(), time.process_time()
    summary = evaluate(selector, plan, clock)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    assert summary["consultations"]["judge"]["calls"] == n
    asking, judging = clock.last_reply - clock.start, clock.last_row - clock.start
    for span, seconds in (("asking", asking), ("judging", judging), ("whole run", wall)):
        line(f"{what}, {span}, wall", seconds, "s")
        line("the same, over the ideal", seconds / ideal, "x", str(AIM))
    line("the same, once a run", wall - judging, "s")
    line("the same, processor time a question", cpu / n * 1e3, "ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--workers", type=int, default=64)
    options = parser.parse_args()
    os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "true", "no_proxy": "127.0.0.1"}
    n, ideal = options.rows, options.rows * options.delay / options.workers
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pool = folder / "pool.jsonl"
        pool.write_text("".join(rows(n)), encoding="utf-8")
        line("the ideal: rows * delay / workers", ideal, "s")
        bare("LM in this process", pool, in_process(options.delay), options.workers)
        plan = Plan([pool], folder / "run", RULES, workers=options.workers)
        measure("LM in this process", in_process(options.delay), plan, n, ideal)
        with server(options.delay) as address:
            lm = dspy.LM("openai/gpt-4o-mini", api_base=address, api_key="bare", cache=False)
            bare("server on loopback", pool, lm, options.workers)
            lm = dspy.LM("openai/gpt-4o-mini", api_base=address, api_key="run", cache=False)
            measure("server on loopback", lm, Plan([pool], folder / "http", RULES, workers=options.workers), n, ideal)
            assert count_requests(address, "run") == n
        before = peak_mib()
        large = folder / "large.jsonl"
        large.write_text("".join(rows(10 * n)), encoding="utf-8")
        selector = Selector()
        selector.set_lm(in_process())
        clock = Clock()
        evaluate(selector, Plan([large], folder / "large", RULES, workers=AT_ONCE), clock)
        rate = 10 * n / (clock.last_reply - clock.start)
        line(f"an LM that answers at once, {AT_ONCE} questions at a time: requests a second", rate, "")
        line(f"peak memory after {n:,} questions", before, "MiB")
        line(f"peak memory after {10 * n:,} more", peak_mib(), "MiB")


class Nothing(list[Any]):
    """A list that stays empty."""

    def append(self, item: Any) -> None:
        """Keep nothing."""


if __name__ == "__main__":
    main()
