"""The command: `python -m eldgr_dspy.training.miniature --out runs/miniature [--seed 42] [--short]`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from eldgr_dspy.errors import EldgrError
from eldgr_dspy.showing import shown
from eldgr_dspy.system import refusal
from eldgr_dspy.training.miniature.settings import FULL, SEED, SHORT


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error that is raised on purpose is one sentence, and ends with exit code 1."""
    parser = argparse.ArgumentParser(
        prog="python -m eldgr_dspy.training.miniature",
        description="The paper in miniature: train, sample, evaluate. The same command resumes an interrupted run.",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/miniature"), help="the folder; default %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, help="default %(default)s")
    parser.add_argument("--short", action="store_true", help="one policy and a smaller task, under a minute")
    given = parser.parse_args(arguments)
    try:
        from eldgr_dspy.training.miniature.run import run

        run(given.out, SHORT if given.short else FULL, given.seed, _say)
    except EldgrError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(shown(f"{refusal(error)} The same command then resumes the stage that was interrupted."))
    except KeyboardInterrupt:
        sys.exit("Interrupted. The same command resumes this stage.")
    _say(f"The tables are in {given.out / 'tables.md'}, all numbers in {given.out / 'results.json'}.")


def _say(text: str) -> None:
    sys.stdout.write(f"{shown(text)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
