"""Collects the pools of the experiment on real models: `python -m benchmarks.experiments.real_models collect MODEL`.

The same command resumes. It needs the extra `local`, and the questions in the folder that ELDGR_POOLS names. What would
confirm and what would refute each claim is in `outcomes.toml`, which was written before any role was run.
"""

import argparse
import os
import sys
from pathlib import Path

from benchmarks.experiments.real_models.questions import QUESTIONS, write_questions
from eldgr_dspy.errors import EldgrError
from eldgr_dspy.programs.engines.local import local
from eldgr_dspy.programs.run.collecting import Collection, collect
from eldgr_dspy.programs.run.evaluation import Watcher
from eldgr_dspy.words import Task

SAMPLES = 4
PROGRAMS: dict[str, tuple[str, Task]] = {"hotpotqa": ("Reader", "short"), "gsm8k": ("Solver", "number")}
"""The program that answers the questions of each data set, and their answer type."""


def main() -> None:
    """Run the stage; an error that is raised on purpose is one sentence."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments.real_models", description=__doc__)
    parser.add_argument("stage", choices=["collect"])
    parser.add_argument("model", type=Path, help="the file of the model that samples")
    parser.add_argument("--pool", choices=[*QUESTIONS], action="append", help="default: all")
    parser.add_argument("--questions", type=int, default=200, help="of each pool; more add to what is there")
    parser.add_argument("--threads", type=int, default=1, help="of the model; it waits by spinning")
    parser.add_argument("--out", type=Path, default=Path("runs/real_models"), help="the folder of the pools")
    options = parser.parse_args()
    try:
        for name in options.pool or QUESTIONS:
            _collect(name, options.model, options.questions, options.threads, options.out)
    except EldgrError as error:
        sys.exit(str(error))


def _collect(name: str, model: Path, n: int, threads: int, out: Path) -> None:
    """Sample as the paper's confirmation split: four samples, temperature 0.7, top-p 0.9."""
    data = os.environ.get("ELDGR_POOLS")
    if data is None:
        sys.exit("ELDGR_POOLS must name the folder of the questions; it is not set.")
    questions = out / f"{name}.questions.jsonl"
    write_questions(name, Path(data), n, questions)
    program, answer = PROGRAMS[name]
    collection = Collection(
        f"benchmarks.experiments.real_models.sampler:{program}",
        str(questions),
        out / f"{name}.jsonl",
        n=SAMPLES,
        answer=answer,
        workers=1,
        temperature=0.7,
        max_failures="5%",
    )
    lm = local(model, context=4096, parallel=1, threads=threads, top_p=0.9, max_tokens=512)
    pool = collect(collection, Watcher(), lm).pool
    sys.stdout.write(f"{collection.out}: {pool.n} questions, {SAMPLES} samples each.\n")


if __name__ == "__main__":
    main()
