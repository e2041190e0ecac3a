"""Kills real runs at random moments, restarts them until they finish, and compares them with an undisturbed run.

Run: python -m tests.crash [--kills 1000] [--seed N] [--jobs 2]

An episode is one run directory. The command is started, killed with SIGKILL at a moment drawn over all that it has left
to do, and started again, until it finishes; in some episodes the journal is also cut at any byte between two starts, as
a power cut may leave it. What has to hold:

- the finished summary, record and decisions are those of an undisturbed run, byte for byte but for `seconds`;
- each consultation is settled in the journal exactly once, and no start changes a line that it found;
- every request that the LM server received is in the journal, or was in flight at a kill: at most one consultation a
  worker and kill. Nothing that was journaled is asked again.

The LM server runs in a process of its own, on loopback. Each start has an API key of its own, by which the server's log
says who asked.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash_runs import (
    PATIENCE,
    STAGES,
    WORKERS,
    CrashError,
    Harness,
    Key,
    Tally,
    command,
    require,
    wait,
    write_pools,
)


@contextmanager
def server() -> Iterator[str]:
    """Run the LM server in a process of its own; gives its address. Its end is tied to this process's."""
    options = [sys.executable, "-m", "tests.lm_server", "--delay", "0.03", "--faults", "0.1"]
    with subprocess.Popen(options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdin is None:
                raise CrashError("the LM server has no pipes")
            yield process.stdout.readline().strip()
            process.stdin.close()
            process.wait(PATIENCE)
        finally:
            process.kill()


def requests_of(address: str, prefix: str) -> dict[str, Counter[Key]]:
    """What each start has asked, by the server's log, once all of it is dealt with."""
    log: list[dict[str, Any]] = [{"over": False}]
    before, until = 0, time.monotonic() + PATIENCE
    while len(log) != before or not all(entry["over"] for entry in log):
        require(time.monotonic() < until, "the LM server is still busy")
        time.sleep(0.3)
        before = len(log)
        with urllib.request.urlopen(f"{address}/{prefix}", timeout=PATIENCE) as reply:
            log = json.load(reply)
    counts: dict[str, Counter[Key]] = defaultdict(Counter)
    for entry in log:
        counts[entry["token"]][entry["question"].split(":")[0], entry["role"]] += 1
    return counts


def account(tally: Tally, counts: Mapping[str, Counter[Key]]) -> dict[str, int]:
    """Hold each start's requests against what it journaled; returns the sums."""
    sums: Counter[str] = Counter()
    for start in tally.starts:
        requests, calls = counts.get(start.token, Counter[Key]()), start.calls
        require(not calls - requests, f"{start.token} journaled calls that the server never received")
        require(not start.before & requests.keys(), f"{start.token} asked what the journal had already settled")
        gap = requests - calls
        require(start.dead or not gap, f"{start.token} finished, and {len(gap)} consultations are not journaled")
        require(len(gap) <= WORKERS, f"{start.token} lost {len(gap)} consultations at one kill")
        sums.update(received=requests.total(), journaled=calls.total(), lost=gap.total())
        sums["most lost at a kill"] = max(sums["most lost at a kill"], len(gap))
        sums.update(kills=start.dead, torn=start.tear)
        sums[start.stage] += start.dead
    sums.update(episodes=tally.episodes, cuts=tally.cuts, undone=tally.undos)
    return dict(sums)


def job(name: str, address: str, folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Run episodes until so many kills have been made."""
    harness = Harness(folder, address, random.Random(f"{seed} {name}"), name)
    count = 0
    while count < kills:
        count += harness.episode(kills - count)
    return account(harness.tally, requests_of(address, f"{name}-"))


def start_child(work: Callable[[], dict[str, int]], result: Path) -> int:
    """Do some work in a child of this process, and return the child's number; what comes of it is written down."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        result.write_text(json.dumps(work()), encoding="utf-8")
        code = 0
    except BaseException:  # noqa: BLE001 -- told, and the child ends here; it must not continue as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def prepare(address: str, folder: Path) -> None:
    """Import all that a start needs, by running the command once."""
    os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="true", no_proxy="127.0.0.1", OPENBLAS_NUM_THREADS="1")
    os.environ["OPENAI_API_KEY"] = "first"
    from eldgr_dspy.programs.commands import main as run

    folder.mkdir()
    require(run(command(write_pools(folder), address, folder / "run")) == 0, "the command does not run at all")
    require(threading.active_count() == 1, "a run leaves a thread behind")


def run_jobs(kills: int, seed: int, jobs: int, folder: Path) -> Counter[str]:
    """Share the kills among jobs and add up what they find."""
    sums: Counter[str] = Counter()
    children: dict[int, Path] = {}
    with server() as address:
        prepare(address, folder / "first")
        try:
            for index in range(jobs):
                part, place = kills // jobs + (index < kills % jobs), folder / f"job{index}"
                place.mkdir()
                work = partial(job, f"job{index}", address, place, part, seed)
                children[start_child(work, place / "result.json")] = place / "result.json"
            for number in list(children):
                wait(number, PATIENCE + 5 * kills)
                result = json.loads(children.pop(number).read_text(encoding="utf-8"))
                most = max(sums.pop("most lost at a kill", 0), result.pop("most lost at a kill"))
                sums.update({**result, "most lost at a kill": most})
        finally:
            for number in children:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
    return sums


def summary(sums: Counter[str], seed: int, seconds: float) -> str:
    """What happened, in a few lines."""
    stages = ", ".join(f"{sums[stage]} {stage}" for stage in STAGES)
    return (
        f"{sums['kills']} kills in {sums['episodes']} runs (seed {seed}, {seconds:.0f} s): {stages}.\n"
        f"{sums['torn']} kills tore a line of the journal; {sums['cuts']} times it was cut besides, at any byte.\n"
        f"The server received {sums['received']} requests: {sums['journaled']} are journaled "
        f"({sums['undone']} of them were cut off again), {sums['lost']} were in flight at a kill "
        f"(at most {sums['most lost at a kill']} consultations at once, by {WORKERS} workers).\n"
        f"All {sums['episodes']} runs finished with the summary, record and decisions of an undisturbed run, "
        "byte for byte but for seconds.\n"
    )


def main() -> int:
    """Run the harness. Returns 0 if everything held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    start, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="eldgr-crash-"))
    try:
        sums = run_jobs(options.kills, options.seed, options.jobs, folder)
    except CrashError as error:
        sys.stderr.write(f"{error}\nSeed {options.seed}; what is left of the runs is in {folder}.\n")
        return 1
    shutil.rmtree(folder)
    sys.stdout.write(summary(sums, options.seed, time.monotonic() - start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
