"""The group of the subcommands, and the messages of a command that ends early."""

import io
import os
import sys
import warnings

import click

from eldgr_dspy.base.system import refusal
from eldgr_dspy.errors import EldgrError, RunStoppedError
from eldgr_dspy.programs.commands import INTERRUPTION, STOP, Session, has_abandoned_calls
from eldgr_dspy.programs.commands.bound import bound, plan
from eldgr_dspy.programs.commands.collect import collect
from eldgr_dspy.programs.commands.decide import decide
from eldgr_dspy.programs.commands.doctor import doctor
from eldgr_dspy.programs.commands.evaluate import evaluate, freeze
from eldgr_dspy.programs.commands.inspect import inspect
from eldgr_dspy.programs.commands.messages import log_display, say
from eldgr_dspy.programs.commands.pool_command import pool
from eldgr_dspy.programs.commands.report_command import compare, export, report, show
from eldgr_dspy.redaction import remember_environment

_GROUPS: tuple[tuple[str, tuple[click.Command, ...]], ...] = (
    ("Evaluate", (evaluate, bound, plan, freeze)),
    ("Finished runs", (report, show, compare, decide, export)),
    ("Pools and models", (collect, pool, doctor, inspect)),
)


class _GroupedCommands(click.Group):
    """A group of commands whose help lists them under headings; the usage line has the few options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for heading, commands in _GROUPS:
            formatter.write(f"{heading}:\n")
            for command in commands:
                formatter.write(f"  {command.name:<{width}}  {command.get_short_help_str(limit=formatter.width)}\n")


@click.group(
    cls=_GroupedCommands,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ELDGR", "show_default": True},
    options_metavar="[--version] [--help]",
)
@click.version_option(package_name="eldgr_dspy", prog_name="eldgr")
def cli() -> None:
    """Choose which sampled answer ships, and bound the harm that a judge can do."""


for _, _commands in _GROUPS:
    for _command in _commands:
        cli.add_command(_command)


def run(argv: list[str] | None, session: Session) -> int:
    """Run the command and return its exit code; if calls were abandoned, end the process."""
    remember_environment()
    with warnings.catch_warnings(), log_display():
        warnings.showwarning = lambda message, *_, **__: say(f"Note: {message}")
        return _run(argv, session)


def _run(argv: list[str] | None, session: Session) -> int:
    try:
        code = cli.main(args=argv, prog_name="eldgr", standalone_mode=False, obj=session)
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        return _say(message.getvalue().rstrip("\n"), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write(session.interruption())
        if has_abandoned_calls():
            sys.stderr.flush()
            os._exit(session.code or INTERRUPTION)  # and do not wait for their threads
        return session.code or INTERRUPTION
    except RunStoppedError as error:
        rest = f"\nThe replies so far are in the journal; {session.resume}." if session.is_open else ""
        return _say(f"Stopped: {error}{rest}", STOP)
    except EldgrError as error:
        return _say(" ".join([f"Error: {error}", *getattr(error, "__notes__", ())]), 1)
    except SystemExit as error:  # raised by the user's module; Python would print its text unescaped
        fault = f"Error: your code ended the process (SystemExit {error.code!r}). Guard it by __name__ == '__main__'."
        return _say(error.code if isinstance(error.code, str) else fault, 1)
    except OSError as error:
        rest = f" Then {session.resume}; the replies so far are in the journal." if session.is_open else ""
        return _say(f"Stopped: {refusal(error)}{rest}", STOP)
    return code if isinstance(code, int) else 0


def _say(message: str, code: int) -> int:
    say(message)
    return code
