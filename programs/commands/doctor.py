"""`eldgr doctor`: whether a model can be asked to judge, and what to do where it cannot."""

from typing import Any

import click

_DEFAULT = "ollama/deepseek-r1:7b"


@click.command(context_settings={"show_default": True})
@click.option("--judge", metavar="MODEL", default=_DEFAULT, help="Model to look at.")
@click.option("--api-base", metavar="URL", help="Address of the server.  [default: the provider's own]")
@click.option(
    "--num-ctx", type=click.IntRange(min=1), metavar="N", help="Context of Ollama's models, in tokens.  [default: 8192]"
)
@click.option("--pull", is_flag=True, help="Have Ollama pull the model where it is missing.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    help="Seconds a call, and without progress of a pull.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_DOCTOR_JSON",
    allow_from_autoenv=False,
    help="Print the findings as JSON.",
)
@click.pass_context
def doctor(
    context: click.Context,
    /,
    judge: str,
    api_base: str | None,
    num_ctx: int | None,
    pull: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Check whether a model can be asked to judge.

    A line for each thing. Of an Ollama server: whether it answers, has the model, and has a context large enough;
    whether thinking is off. Of any: what comes of a question put as the Selector puts it, whether replies are held to a
    JSON schema, and how long a call takes. Only what would not work fails. Three short calls are made.

    Exit codes: 0 it works, 1 something would not, 2 wrong usage.
    """
    from eldgr_dspy.programs import diagnosis
    from eldgr_dspy.programs.commands.console import write_out
    from eldgr_dspy.programs.commands.options import require_address
    from eldgr_dspy.programs.models import lm_named

    require_address(api_base, [judge])
    lm = lm_named(judge, api_base, num_ctx=num_ctx, cache=False, num_retries=0, timeout=timeout, temperature=0.0)
    findings = []
    for one in diagnosis.diagnose(lm, timeout, _pull if pull else None):
        findings.append(one)
        if not as_json:
            write_out(f"{'ok  ' if one.ok else 'FAIL'}  {one.check}: {one.text}\n")
    if as_json:
        write_out(f"{diagnosis.as_json(findings, judge)}\n")
    if not all(one.ok for one in findings):
        context.exit(1)


def _pull(host: str, model: str, seconds: float) -> None:
    """Pull a model, and show how far that is on standard error where it is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from eldgr_dspy.programs.engines.pulling import pull_model
    from eldgr_dspy.showing import on_one_line

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:

        def show(said: str, completed: int | None, total: int | None) -> None:
            status = on_one_line(said)
            if status not in tasks:
                tasks[status] = bar.add_task(status, total=total)
            bar.update(tasks[status], completed=completed, total=total)

        pull_model(host, model, seconds, show)
