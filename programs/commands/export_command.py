"""`eldgr export`: write the decisions of a finished run as one flat table."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import run_argument
from eldgr_dspy.programs.commands.output import run_of, writing


@click.command()
@run_argument
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File to write: .csv or .parquet."
)
def export(run: Path, out: Path) -> None:
    """Write the decisions as a CSV or Parquet file.

    RUN is the directory of a finished run. The file has one row per question and rule. In CSV, a text that a
    spreadsheet would run as a formula gets a ' in front.
    """
    from eldgr_dspy.figures.export import export as write

    results = run_of(run)
    with writing("The decisions"):
        n = write(results.decisions(results.summary()), out)
    say(f"Written to {out}: {n:,} decisions.")
