"""The experiment on real models, a resumable command a stage; each needs the extra `local` and ELDGR_POOLS.

    python -m benchmarks.experiments.real_models collect qwen2.5-coder-1.5b.gguf
    python -m benchmarks.experiments.real_models mix qwen2.5-coder-0.5b.gguf smollm2-135m.gguf
    python -m benchmarks.experiments.real_models judge qwen2.5-coder-1.5b.gguf qwen2.5-coder-0.5b.gguf smollm2-135m.gguf
    python -m benchmarks.experiments.real_models keep
    python -m benchmarks.experiments.real_models report

`keep` writes what the models wrote to `artifacts/results/real-models`. `restore` makes the pools from there, and
`eldgr evaluate POOL --replay REPLIES` the tables, without a model.

What would confirm and what would refute each claim is in `outcomes.toml`, which was written before any role was run.
"""

import argparse
import os
import sys
from pathlib import Path

from benchmarks.experiments.real_models.judging import judge
from benchmarks.experiments.real_models.pool_sampling import mix, sample
from benchmarks.experiments.real_models.real_questions import QUESTIONS
from benchmarks.experiments.real_models.recording import keep, restore
from benchmarks.experiments.real_models.reporting import report
from eldgr_dspy.errors import EldgrError
from eldgr_dspy.programs.engines.local import local


def main() -> None:
    """Run the stage; an error that is raised on purpose is one sentence."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.experiments.real_models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stage", choices=["collect", "mix", "judge", "keep", "restore", "report"])
    parser.add_argument("models", type=Path, nargs="*", help="GGUF files; judge: the first also repairs and derives")
    parser.add_argument("--pool", choices=[*QUESTIONS, "mixed"], action="append", help="default: all")
    parser.add_argument("--questions", type=int, default=200, help="of each pool; more add to what is there")
    parser.add_argument("--threads", type=int, default=1, help="of each model; they wait by spinning")
    parser.add_argument("--parallel", type=int, default=1, help="requests at once")
    parser.add_argument("--out", type=Path, default=Path("runs/real_models"), help="the folder of pools and runs")
    options = parser.parse_args()
    data = os.environ.get("ELDGR_POOLS")
    if data is None:
        sys.exit("ELDGR_POOLS must name the folder of the questions; it is not set.")
    settings = {"context": 4096, "parallel": options.parallel, "threads": options.threads}
    try:
        if options.stage == "collect":
            lm = local(options.models[0], top_p=0.9, max_tokens=512, **settings)
            for name in options.pool or QUESTIONS:
                sample(name, Path(data), options.questions, lm, options.out, options.parallel)
        elif options.stage == "mix":
            lms = [local(path, top_p=0.9, max_tokens=512, **settings) for path in options.models]
            mix(lms, options.out, options.parallel)
        elif options.stage == "judge":
            models = {path.stem: local(path, temperature=0.0, max_tokens=768, **settings) for path in options.models}
            for name in options.pool or [*QUESTIONS, "mixed"]:
                judge(name, models, options.out, options.questions, options.parallel)
        elif options.stage == "keep":
            keep(options.out)
        elif options.stage == "restore":
            restore(Path(data), options.out)
        else:
            report(options.out)
    except EldgrError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
