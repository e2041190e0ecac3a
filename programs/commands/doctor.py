"""`eldgr doctor`: check that a model can judge, and say what to do if it cannot."""

import time
from pathlib import Path
from typing import Any

import click

from eldgr_dspy.programs.commands.options import ABOVE_0, FILE, FROM_1, api_base_option, structured_option
from eldgr_dspy.programs.commands.output import form_options
from eldgr_dspy.programs.commands.role_models import require_address


@click.command()
@click.option("--judge", metavar="MODEL", default="ollama/deepseek-r1:7b", help="Model to check.")
@api_base_option
@click.option("--num-ctx", type=FROM_1, metavar="N", help="Context of Ollama's models, in tokens.  [default: 8192]")
@structured_option
@click.option("--pool", type=FILE, metavar="FILE", help="Pool whose longest question is asked too.")
@click.option("--pull", is_flag=True, help="Let Ollama pull the model if it is missing.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=ABOVE_0,
    default=120.0,
    help="Limit for each call, and for a pull without progress.",
)
@form_options("text", "json")
def doctor(
    judge: str, api_base: str | None, pool: Path | None, pull: bool, timeout: float, form: str, **options: Any
) -> None:
    """Check that a model can judge.

    Prints one line per check. For an Ollama server: whether it answers, has the model, has a large enough context, and
    has thinking turned off. For any model: whether it answers a question as the Selector asks it, whether its replies
    follow a JSON schema, and the seconds and tokens of a call. A check fails only if judging would fail. Makes three
    short calls, and with --pool one as long as its longest.

    Exit code 1: a check failed.
    """
    from eldgr_dspy.pools import open_pool
    from eldgr_dspy.programs import diagnosis
    from eldgr_dspy.programs.commands.console import write_out
    from eldgr_dspy.programs.lms.models import make_lm

    require_address(api_base, [judge])
    lm = make_lm(judge, api_base, cache=False, num_retries=0, timeout=timeout, temperature=0.0, **options)
    findings = []
    for finding in diagnosis.diagnose(lm, timeout, _pull if pull else None, open_pool(pool) if pool else None):
        findings.append(finding)
        if form == "text":
            write_out(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.check}: {finding.text}\n")
    if form == "json":
        write_out(f"{diagnosis.as_json(findings, judge)}\n")
    if not all(finding.ok for finding in findings):
        click.get_current_context().exit(1)


def _pull(client: Any, model: str, seconds: float) -> None:
    """Pull a model, and show the progress on a terminal; raise TimeoutError after so many seconds without any."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from eldgr_dspy.showing import on_one_line

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    tasks: dict[str, Any] = {}
    before, since = None, time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for step in client.pull(model, stream=True):
            if (step.status, step.completed) != before:  # a server that has stalled repeats its last line
                before, since = (step.status, step.completed), time.monotonic()
            elif time.monotonic() - since > seconds:
                raise TimeoutError
            status = on_one_line(step.status or model)
            if status not in tasks:
                tasks[status] = bar.add_task(status, total=step.total)
            bar.update(tasks[status], completed=step.completed, total=step.total)
