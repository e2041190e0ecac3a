"""The command: `python -m benchmarks.experiments.partition --size smoke|small|gpu [--out FOLDER]`.

The same command resumes an interrupted run. `smoke` shows that everything works and nothing else.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.experiments.partition.partition_run import run
from benchmarks.experiments.partition.sizes import SIZES
from eldgr_dspy.base.system import refusal
from eldgr_dspy.errors import EldgrError
from eldgr_dspy.showing import display_text


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error that is raised on purpose is one sentence, and ends with exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments.partition", description=__doc__)
    parser.add_argument("--size", choices=[*SIZES], required=True, help="how large it is")
    parser.add_argument("--out", type=Path, help="the folder; default runs/partition-SIZE")
    options = parser.parse_args(arguments)
    out = options.out or Path(f"runs/partition-{options.size}")
    try:
        run(out, SIZES[options.size], _say)
    except EldgrError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(display_text(f"{refusal(error)} The same command then resumes the jobs that were interrupted."))
    except KeyboardInterrupt:
        sys.exit("Interrupted. The same command resumes.")
    _say(f"The tables are in {out / 'tables.md'}, all numbers in {out / 'results.json'}.")


def _say(text: str) -> None:
    sys.stdout.write(f"{display_text(text)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
