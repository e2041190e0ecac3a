"""`eldgr export`: the decisions of a finished run as one flat table."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.system import refusal


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--to", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File to write: .csv or .parquet."
)
def export(run: Path, to: Path) -> None:
    """Write the decisions of the finished run in the directory RUN as a table, a row a question and rule.

    In CSV a text that a spreadsheet would run as a formula gets a ' in front.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.figures.export import export as write
    from eldgr_dspy.figures.finished_run import read_run

    found = read_run(run)
    try:
        n = write(found.decisions(found.summary()), to)
    except OSError as error:
        raise click.ClickException(f"The decisions could not be written: {refusal(error)}") from error
    if found.made_by_others:
        say(f"Note: {found.made_by_others}")
    say(f"Written to {to}: {n:,} decisions.")
