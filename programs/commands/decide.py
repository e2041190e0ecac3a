"""`eldgr decide`: rules on what a run has asked already, also rules that came later."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import names_in
from eldgr_dspy.system import refusal

if TYPE_CHECKING:
    from eldgr_dspy.figures.finished_run import RunRead
    from eldgr_dspy.programs.run.redecisions import Redecided
    from eldgr_dspy.words import Role

_NO_COMMAND = "no command asks: a program or another version began the run."
_LOCKED = (
    "the run is under a lock, so that nothing asks for a rule which the lock has not; for one which it has, give the "
    "command that began the run once more, with its --lock."
)


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("pools", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--rule",
    "--rules",
    "rules",
    multiple=True,
    required=True,
    metavar="NAME",
    envvar="ELDGR_DECIDE_RULE",
    allow_from_autoenv=False,
    callback=lambda _, __, given: list(names_in(",".join(given))) or [""],
    help="Rule to decide by, one of the package or MODULE:FUNCTION; several separated by commas, or repeated.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_DECIDE_JSON",
    allow_from_autoenv=False,
    help="Print the figures as JSON.",
)
def decide(run: Path, pools: tuple[Path, ...], rules: list[str], as_json: bool) -> None:
    """Decide the questions of the run in the directory RUN by rules, from what it has asked.

    Nobody is asked and nothing is written. A rule that needs a role which was never asked on some question is withheld,
    with the number of such questions and the command that asks. POOLS are the files of the run's pools, where they are
    no longer where they were. MODULE:FUNCTION is imported, hence run.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.figures.finished_run import read_run
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.programs.commands.resume_command import is_locked
    from eldgr_dspy.programs.run.redecisions import decide_again
    from eldgr_dspy.tables.run import pool_tables

    read = read_run(run)
    _remark_on(read)
    found = decide_again(read, rules, pools)
    asks = _asks(read, found)
    remedy = (
        f"to have it asked{_of_whom(read, found, asks)}: {asks}"
        if asks
        else _LOCKED
        if is_locked(read)
        else _NO_COMMAND
    )
    tables = (table for name, pool in found.figures.items() for table in pool_tables(name, pool, remedy=remedy))
    unprinted = print_tables({"pools": found.figures, "asks": asks}, tables, as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The decisions could not be printed: {refusal(unprinted)}")


def _remark_on(run: "RunRead") -> None:
    if run.torn:
        say(f"Note: {run.path}: the last line of the journal is torn and passed over.")
    if not run.finished():
        say(f"Note: {run.path}: the run is not finished; all questions of its pools are taken.")
    if run.made_by_others:
        say(f"Note: {run.made_by_others}")


def _asks(run: "RunRead", found: "Redecided") -> str | None:
    """The command that asks what rules lack; None where they lack nothing, or no command can."""
    from eldgr_dspy.programs.commands.resume_command import command_that_asks

    roles = _lacking(found)
    return command_that_asks(run, found, roles) if roles else None


def _lacking(found: "Redecided") -> "list[Role]":
    lacks: set[Role] = {
        role for pool in found.figures.values() for lacking in pool["withheld"].values() for role in lacking
    }
    return sorted(lacks)


def _of_whom(run: "RunRead", found: "Redecided", command: str) -> str:
    """That a role is the embedded one in the command, where the run is of a recording, which names no model."""
    if not any(sums["recorded"] for sums in run.totals.roles().values()):
        return ""
    words = shlex.split(command)
    embedded = [role for role in _lacking(found) if f"--{role}" not in words]
    if not embedded:
        return ""
    models = " ".join(f"--{role} MODEL" for role in embedded)
    return (
        f", here of the embedded {' and '.join(embedded)}, since a recording names no model (add {models} to ask one)"
    )
