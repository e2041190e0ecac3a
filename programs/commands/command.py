"""The group of the subcommands, and what is said where one of them ends early."""

import io
import os
import sys
import warnings

import click

from eldgr_dspy.errors import EldgrError, RunStoppedError
from eldgr_dspy.programs.commands import INTERRUPTED, STOPPED, Session, abandoned
from eldgr_dspy.programs.commands.ablation import ablation
from eldgr_dspy.programs.commands.bound import bound
from eldgr_dspy.programs.commands.compare import compare
from eldgr_dspy.programs.commands.decide import decide
from eldgr_dspy.programs.commands.doctor import doctor
from eldgr_dspy.programs.commands.evaluate import evaluate
from eldgr_dspy.programs.commands.export import export
from eldgr_dspy.programs.commands.freeze import freeze
from eldgr_dspy.programs.commands.inspect import inspect
from eldgr_dspy.programs.commands.messages import logs_shown, say
from eldgr_dspy.programs.commands.plan import plan
from eldgr_dspy.programs.commands.pool import pool
from eldgr_dspy.programs.commands.report import report
from eldgr_dspy.programs.commands.reproduce import reproduce
from eldgr_dspy.programs.commands.seeds import seeds
from eldgr_dspy.redaction import remember_environment
from eldgr_dspy.system import refusal


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


def run(argv: list[str] | None, session: Session) -> int:
    """Run the command and return its exit code; where calls were abandoned, end the process."""
    remember_environment()
    with warnings.catch_warnings(), logs_shown():
        warnings.showwarning = _remark
        return _run(argv, session)


def _run(argv: list[str] | None, session: Session) -> int:
    try:
        code = cli.main(args=argv, prog_name="eldgr", standalone_mode=False, obj=session)
    except click.ClickException as error:
        told = io.StringIO()
        error.show(told)
        return _say(told.getvalue().rstrip("\n"), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted(session.code or INTERRUPTED, session)
    except RunStoppedError as error:
        kept = f"\nWhat was asked is in the journal; {session.goes_on}." if session.begun else ""
        return _say(f"Stopped: {error}{kept}", STOPPED)
    except EldgrError as error:
        return _say(f"Error: {error}", 1)
    except SystemExit as error:  # of a module of the user's: Python would print its text as it is
        if not isinstance(error.code, str):
            raise
        return _say(error.code, 1)
    except OSError as error:
        kept = f" After that, {session.goes_on}; what was asked is in the journal." if session.begun else ""
        return _say(f"Stopped: {refusal(error)}{kept}", STOPPED)
    return code if isinstance(code, int) else 0


def _interrupted(code: int, session: Session) -> int:
    """Say how to go on; where calls were abandoned, end the process, which would otherwise wait for their threads."""
    sys.stderr.write(session.interrupted())
    if abandoned():
        sys.stderr.flush()
        os._exit(code)
    return code


def _say(message: str, code: int) -> int:
    say(message)
    return code


def _remark(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    say(f"Note: {message}")
