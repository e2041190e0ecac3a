"""The `eldgr` command: one file a subcommand.

Errors that the package raises on purpose are printed as a sentence, without a traceback. Results go to standard
output; progress and remarks go to standard error. Exit codes: 0 done; 1 bad input, or results that could not be
printed; 2 wrong usage; 3 stopped unfinished (the same command, without --fresh, goes on); 130 interrupted by ctrl-C,
143 by SIGTERM (likewise).
"""

import os
import signal
import sys
import threading
import warnings
from types import FrameType
from typing import NoReturn

import click

from eldgr_dspy.errors import EldgrError, RunStoppedError
from eldgr_dspy.programs.commands.ablation import ablation
from eldgr_dspy.programs.commands.bound import bound
from eldgr_dspy.programs.commands.compare import compare
from eldgr_dspy.programs.commands.decide import decide
from eldgr_dspy.programs.commands.doctor import doctor
from eldgr_dspy.programs.commands.evaluate import Session, evaluate
from eldgr_dspy.programs.commands.export import export
from eldgr_dspy.programs.commands.freeze import freeze
from eldgr_dspy.programs.commands.inspect import inspect
from eldgr_dspy.programs.commands.plan import plan
from eldgr_dspy.programs.commands.pool import pool
from eldgr_dspy.programs.commands.report import report
from eldgr_dspy.programs.commands.reproduce import reproduce
from eldgr_dspy.programs.commands.seeds import seeds

STOPPED, INTERRUPTED, TERMINATED = 3, 130, 143


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ELDGR"})
@click.version_option(package_name="eldgr_dspy", prog_name="eldgr")
def cli() -> None:
    """Decide which of several sampled answers ships, and keep a judge from doing damage."""


cli.add_command(evaluate)
cli.add_command(report)
cli.add_command(compare)
cli.add_command(decide)
cli.add_command(export)
cli.add_command(reproduce)
cli.add_command(ablation)
cli.add_command(seeds)
cli.add_command(freeze)
cli.add_command(doctor)
cli.add_command(plan)
cli.add_command(bound)
cli.add_command(inspect)
cli.add_command(pool)


def main(argv: list[str] | None = None) -> int:
    """Run the command. Returns its exit code, except where calls were abandoned: then the process ends here."""
    with warnings.catch_warnings():
        warnings.showwarning = _remark
        if threading.current_thread() is not threading.main_thread():
            return _run(argv)
        before = signal.signal(signal.SIGTERM, _terminate)
        code = _run(argv)
        if code not in (INTERRUPTED, TERMINATED):
            signal.signal(signal.SIGTERM, before)
        return code


def _run(argv: list[str] | None) -> int:
    session = Session()
    try:
        code = cli.main(args=argv, prog_name="eldgr", standalone_mode=False, obj=session)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        code = TERMINATED if isinstance(error.__cause__ or error, _Terminated) else INTERRUPTED
        return _interrupted(code, session)
    except RunStoppedError as error:
        kept = f"\nWhat was asked is in the journal; {session.goes_on}." if session.begun else ""
        return _say(f"Stopped: {error}{kept}", STOPPED)
    except EldgrError as error:
        return _say(f"Error: {error}", 1)
    except OSError as error:
        kept = f" What was asked is in the journal; mend this, and {session.goes_on}." if session.begun else ""
        return _say(f"Stopped: {error}.{kept}", STOPPED)
    return code if isinstance(code, int) else 0


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which stops a run as ctrl-C does."""


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise _Terminated


def _interrupted(code: int, session: Session) -> int:
    """Say how to go on; where calls were abandoned, end the process, which would otherwise wait for their threads."""
    from eldgr_dspy.programs.run.concurrency import THREADS

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):  # one more would only break into the end of the process
            signal.signal(number, signal.SIG_IGN)
    abandoned = any(thread.name.startswith(THREADS) for thread in threading.enumerate())
    lost = " The calls under way were abandoned." if abandoned else ""
    kept = f"What was asked is in the journal; {session.goes_on}." if session.begun else session.unbegun
    _say(f"Interrupted.{lost} {kept}".rstrip(), code)
    if abandoned:
        sys.stderr.flush()
        os._exit(code)
    return code


def _say(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code


def _remark(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    print(f"Note: {message}", file=sys.stderr)
