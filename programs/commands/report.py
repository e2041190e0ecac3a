"""`eldgr report`: the tables of a finished run once more, in any format, from its directory alone."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

if TYPE_CHECKING:
    from eldgr_dspy.finished import RunRead

Format = Literal["text", "markdown", "latex", "json", "html"]


@click.command(context_settings={"show_default": True})
@click.argument("run", type=click.Path(path_type=Path))
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
def report(context: click.Context, /, run: Path, form: Format, out: Path | None, mlflow: bool) -> None:
    """Show the tables of the finished run in the directory RUN.

    They are those that eldgr evaluate printed, from the run directory alone: no LM, no pool. With --format html the
    report is made again.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.finished import read_run

    found = read_run(run)
    summary = found.summary()
    path = run / "report.html" if form == "html" and out is None else out
    try:
        if path is None:
            _print(summary, form)
        else:
            _save(path, _page(found, summary) if form == "html" else [_text(summary, form)])
            click.echo(f"Written to {path}.", err=True)
    except OSError as error:
        raise click.ClickException(f"The report could not be written: {error}.") from error
    if mlflow:
        from eldgr_dspy.programs.run.tracking import log_to_mlflow

        click.echo(f"Logged to MLflow as run {log_to_mlflow(found, summary)}.", err=True)


def _print(summary: dict[str, Any], form: Format) -> None:
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


def _text(summary: dict[str, Any], form: Format) -> str:
    from eldgr_dspy.formats import as_latex, as_markdown
    from eldgr_dspy.programs.commands.console import undecorated
    from eldgr_dspy.tables import tables_of

    if form == "json":
        return json.dumps(summary, indent=2) + "\n"
    written = {"text": undecorated, "markdown": as_markdown, "latex": as_latex}[form]
    return written(tables_of(summary))


def _page(run: "RunRead", summary: dict[str, Any]) -> Iterator[str]:
    from eldgr_dspy.report import render_report

    return render_report(summary, run.decisions(summary), run.effects())


def _save(path: Path, chunks: Iterable[str]) -> None:
    from eldgr_dspy.files import replacing

    with replacing(path) as file:
        for chunk in chunks:
            file.write(chunk.encode("utf-8", "replace"))
