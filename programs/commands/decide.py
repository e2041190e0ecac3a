"""`eldgr decide`: rules on what a run has asked already, also rules that came later."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from eldgr_dspy.finished import RunRead
    from eldgr_dspy.programs.run.deciding import Redecided
    from eldgr_dspy.words import Role

_NO_COMMAND = "no command asks: a program or another version began the run, or it is under a lock."


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("pools", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--rule",
    "rules",
    multiple=True,
    required=True,
    metavar="NAME",
    envvar="ELDGR_DECIDE_RULE",
    allow_from_autoenv=False,
    help="Rule to decide by, one of the package or MODULE:FUNCTION; may be repeated.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_DECIDE_JSON",
    allow_from_autoenv=False,
    help="Print the figures as JSON.",
)
def decide(run: Path, pools: tuple[Path, ...], rules: tuple[str, ...], as_json: bool) -> None:
    """Decide the questions of the run in the directory RUN by rules, from what it has asked.

    Nobody is asked and nothing is written. A rule that needs a role which was never asked on some question is withheld,
    with the number of such questions and the command that asks. POOLS are the files of the run's pools, where they are
    no longer where they were. MODULE:FUNCTION is imported, hence run.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.finished import read_run
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.programs.run.deciding import decide_again
    from eldgr_dspy.tables import tables_of

    read = read_run(run)
    _remark_on(read)
    found = decide_again(read, rules, pools)
    asks = _asks(read, found)
    figures = {**found.summary, "asks": asks}
    unprinted = print_tables(figures, tables_of(_explained(found.summary, asks)), as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The decisions could not be printed: {unprinted}.")


def _remark_on(run: "RunRead") -> None:
    from eldgr_dspy.finished import installed_version

    if run.torn:
        click.echo(f"Note: {run.path}: the last line of the journal is torn and passed over.", err=True)
    if not run.finished():
        click.echo(f"Note: {run.path}: the run is not finished; all questions of its pools are taken.", err=True)
    others = [version for version in run.versions if version != installed_version()]
    if others:
        click.echo(
            f"Note: {run.path} was made by eldgr_dspy {' and '.join(others)}; this is {installed_version()}, "
            "which may decide otherwise.",
            err=True,
        )


def _asks(run: "RunRead", found: "Redecided") -> str | None:
    """The command that asks what rules lack; None where they lack nothing, or no command can."""
    from eldgr_dspy.programs.commands.continuing import command_that_asks

    roles: set[Role] = {
        role for pool in found.summary["pools"].values() for lacks in pool["withheld"].values() for role in lacks
    }
    return command_that_asks(run, found, roles) if roles else None


def _explained(summary: Mapping[str, Any], asks: str | None) -> dict[str, Any]:
    """The figures with a sentence for each rule that is withheld."""
    from eldgr_dspy.tables import never_asked

    remedy = f"to have it asked: {asks}" if asks else _NO_COMMAND
    pools = {
        name: {
            **pool,
            "withheld": {
                rule: f"withheld, since {never_asked(why)}; {remedy}" for rule, why in pool["withheld"].items()
            },
        }
        for name, pool in summary["pools"].items()
    }
    return {**summary, "pools": pools}
