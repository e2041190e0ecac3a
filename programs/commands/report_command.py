"""`eldgr report`: print the tables of a finished run in any format, from its directory alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import own_options, pools_argument, run_argument
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, run_of, write, writing

if TYPE_CHECKING:
    from eldgr_dspy.figures.finished_run import RunRead
    from eldgr_dspy.figures.results.summary_fields import Summary


FORMATS = (*get_args(Form), "html")
"""The formats of the report, the default first."""


@click.command(context_settings={"show_default": True})
@run_argument
@pools_argument
@form_options(*FORMATS)
@out_option("standard output; for html, report.html in RUN")
@click.option("--pages", is_flag=True, help="Write questions.html also beyond 20,000 questions.")
@own_options
@click.option("--mlflow", is_flag=True, help="Also log results, settings and files to MLflow.")
@click.pass_context
def report(
    context: click.Context,
    /,
    run: Path,
    pools: tuple[Path, ...],
    form: str,
    out: Path | None,
    pages: bool,
    mlflow: bool,
    own: dict[str, Any],
) -> None:
    """Print all tables of a run, or write its HTML pages.

    RUN is the directory of a finished run. The tables need nothing else: no LM and no pool. --format html writes the
    report and the page of questions again. That page needs the run's pools; give POOLS if they have moved. Beyond
    20,000 questions it is written only with --pages.
    """
    if pools and form != "html":
        raise click.UsageError(f"POOLS are only for --format html; got --format {form}. Leave them out.", context)
    if pages and form != "html":
        raise click.UsageError(f"--pages is only for --format html; got --format {form}. Leave it out.", context)
    results = run_of(run, **own)
    summary = results.summary()
    if form == "html":
        with writing("The report"):
            _pages(results, summary, out or run / "report.html", pools, pages=pages)
    else:
        from eldgr_dspy.tables.run import tables_of

        write(summary, tables_of(summary), form, out, "The report")
    if mlflow:
        from eldgr_dspy.programs.run.mlflow_tracking import log_to_mlflow

        say(f"Logged to MLflow as run {log_to_mlflow(results, summary)}.")


def _pages(run: "RunRead", summary: "Summary", path: Path, pools: tuple[Path, ...], *, pages: bool) -> None:
    from eldgr_dspy.programs.run.pages import questions_beside, write_pages

    lacking = write_pages(run, summary, path, pools, pages=pages)
    if lacking is None:
        say(f"Written to {path} and {questions_beside(path)}.")
    else:
        say(f"Written to {path}.\nNote: the page of questions was not written: {lacking}")
