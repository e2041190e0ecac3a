"""Processor time of a call of `Sampled` in service: the last hundred calls against the first, and the bare program.

Run: python -m benchmarks.service [--calls 2000] [--n 5]

The program retrieves its own passages and asks one predictor; the LM answers from this process in no time. It is called
in four ways: one call after another, the same awaited, 200 calls at once in one loop, and under `dspy.Evaluate`. Each
way has a program of its own, so that each starts with an empty history. The bare program is called as often as
`Sampled` calls it, in the same way. The aims: the last hundred calls take at most 1.2 times the first hundred, after a
few to warm up, and `Sampled` at most 3 times the bare program. A hundred calls count as five times the median of its
twenties, because other processes disturb one or two of them.
"""

import argparse
import asyncio
import itertools
import logging
import statistics
import time
from collections.abc import Callable
from typing import Any

import dspy

from benchmarks._timing import line
from benchmarks.early_stopping import REPLY
from benchmarks.throughput import Nothing
from eldgr_dspy import Sampled
from eldgr_dspy.programs.testing import scripted_lm

QUESTION = "What is the capital of Qatar?"
PASSAGES = ["Doha is the capital of Qatar.", "Qatar lies on the Persian Gulf."]
AT_ONCE, WARM, STEP = 200, 10, 20


class Desk(dspy.Module):
    """Answers from passages that it finds itself."""

    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.Predict("context: list[str], question -> answer")

    def forward(self, question: str) -> Any:
        return self.respond(context=PASSAGES, question=question)

    async def aforward(self, question: str) -> Any:
        return await self.respond.acall(context=PASSAGES, question=question)


def one_by_one(program: Any, calls: int) -> list[float]:
    """Return the processor time after every twenty calls."""
    marks = [time.process_time()]
    for number in range(1, calls + 1):
        program(question=QUESTION)
        if number % STEP == 0:
            marks.append(time.process_time())
    return marks


def in_one_task(program: Any, calls: int) -> list[float]:
    """Do the same, awaiting one call after another."""

    async def run() -> list[float]:
        marks = [time.process_time()]
        for number in range(1, calls + 1):
            await program.acall(question=QUESTION)
            if number % STEP == 0:
                marks.append(time.process_time())
        return marks

    return asyncio.run(run())


def at_once(program: Any, calls: int) -> list[float]:
    """Do the same with 200 calls at once, in one loop; a batch's time is spread over it evenly."""

    async def run() -> list[float]:
        marks = [time.process_time()]
        for _ in range(calls // AT_ONCE):
            await asyncio.gather(*(program.acall(question=QUESTION) for _ in range(AT_ONCE)))
            each = (time.process_time() - marks[-1]) * STEP / AT_ONCE
            marks += [marks[-1] + each * number for number in range(1, AT_ONCE // STEP + 1)]
        return marks

    return asyncio.run(run())


def under_evaluate(program: Any, calls: int) -> list[float]:
    """Do the same under `dspy.Evaluate`, by its metric."""
    marks, count = [time.process_time()], 0

    def right(example: Any, prediction: Any, trace: Any = None) -> bool:
        nonlocal count
        count += 1
        if count % STEP == 0:
            marks.append(time.process_time())
        return bool(prediction.answer == example.answer)

    example = dspy.Example(question=QUESTION, answer="Doha").with_inputs("question")
    evaluate = dspy.Evaluate(devset=[example] * calls, metric=right, num_threads=4, display_progress=False)
    assert evaluate(program).score == 100.0
    return marks


WAYS: dict[str, Callable[[Any, int], list[float]]] = {
    "one by one": one_by_one,
    "awaited": in_one_task,
    f"{AT_ONCE} at once": at_once,
    "dspy.Evaluate": under_evaluate,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--n", type=int, default=5)
    options = parser.parse_args()
    logging.disable(logging.INFO)
    for way, run in WAYS.items():
        lm = scripted_lm(lambda _: REPLY)
        lm.script.requests = Nothing()
        with dspy.context(lm=lm):
            bare, sampler = Desk(), Sampled(Desk(), n=options.n)
            for program in (bare, sampler):
                one_by_one(program, WARM)
            few = max(200, options.calls // 5)
            alone = run(bare, few * options.n)
            marks = run(sampler, options.calls)
        spans = [after - before for before, after in itertools.pairwise(marks)]
        each = (marks[-1] - marks[0]) / options.calls
        line(f"{way}: a call of {options.n} samples, processor time", 1e3 * each, "ms")
        first, last = (statistics.median(hundred) for hundred in (spans[: 100 // STEP], spans[-100 // STEP :]))
        line("  last hundred calls over the first", last / first, "x", "1.2")
        line("  over the bare program", each / ((alone[-1] - alone[0]) / few), "x", "3")


if __name__ == "__main__":
    main()
