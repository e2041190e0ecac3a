"""`eldgr report`: the tables of a finished run once more, in any format, from its directory alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.system import refusal

if TYPE_CHECKING:
    from eldgr_dspy.figures.finished_run import RunRead
    from eldgr_dspy.figures.results.summary import Summary

Format = Literal["text", "markdown", "latex", "json", "html"]


@click.command(context_settings={"show_default": True})
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("pools", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Format)),
    default="text",
    envvar="ELDGR_REPORT_FORMAT",
    allow_from_autoenv=False,
    help="How the tables are written.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write.  [default: standard output; of html, report.html in RUN]",
)
@click.option("--mlflow", is_flag=True, help="Log figures, settings and files to MLflow too.")
@click.pass_context
def report(
    context: click.Context, /, run: Path, pools: tuple[Path, ...], form: Format, out: Path | None, mlflow: bool
) -> None:
    """Show the tables of the finished run in the directory RUN.

    They are those that eldgr evaluate printed, from the run directory alone: no LM, no pool. With --format html the
    report is made again, and beside it the page of questions, for which the run's pools are read again; POOLS are their
    files, where they are no longer where they were.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.figures.finished_run import read_run

    if pools and form != "html":
        raise click.UsageError(f"POOLS are read for --format html alone, and not for {form}.", context)
    found = read_run(run)
    if found.made_by_others:
        say(f"Note: {found.made_by_others}")
    summary = found.summary()
    try:
        if form == "html":
            _pages(found, summary, out or run / "report.html", pools)
        elif out is None:
            _print(summary, form)
        else:
            _save(out, _text(summary, form))
    except OSError as error:
        raise click.ClickException(f"The report could not be written: {refusal(error)}") from error
    if mlflow:
        from eldgr_dspy.programs.run.mlflow_tracking import log_to_mlflow

        say(f"Logged to MLflow as run {log_to_mlflow(found, summary)}.")


def _pages(run: "RunRead", summary: "Summary", path: Path, pools: tuple[Path, ...]) -> None:
    from eldgr_dspy.programs.run.pages import questions_beside, write_pages

    lacking = write_pages(run, summary, path, pools)
    if lacking is None:
        say(f"Written to {path} and {questions_beside(path)}.")
    else:
        say(f"Written to {path}.\nNote: the page of questions is not written: {lacking}")


def _print(summary: "Summary", form: Format) -> None:
    from eldgr_dspy.programs.commands.console import print_results, write_out

    if form in ("text", "json"):
        unprinted = print_results(summary, as_json=form == "json")
        if unprinted:
            raise unprinted
        return
    try:
        write_out(_text(summary, form))
    except BrokenPipeError:
        return


def _text(summary: "Summary", form: Format) -> str:
    from eldgr_dspy.programs.commands.console import undecorated
    from eldgr_dspy.tables.formats import as_latex, as_markdown
    from eldgr_dspy.tables.run import tables_of

    if form == "json":
        return json.dumps(summary, indent=2) + "\n"
    written = {"text": undecorated, "markdown": as_markdown, "latex": as_latex}[form]
    return written(tables_of(summary))


def _save(path: Path, text: str) -> None:
    from eldgr_dspy.files import replacing

    with replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))
    say(f"Written to {path}.")
