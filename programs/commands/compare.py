"""`eldgr compare`: a rule in one run against the same rule in another, on the same questions."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.system import refusal


@click.command(context_settings={"show_default": True})
@click.argument("run_a", type=click.Path(path_type=Path))
@click.argument("run_b", type=click.Path(path_type=Path))
@click.option("--rule", metavar="NAME", default="eldgr", help="Rule to compare.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    metavar="POINTS",
    help="Test too whether the runs are as good as each other up to so many percentage points.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_COMPARE_JSON",
    allow_from_autoenv=False,
    help="Print the figures as JSON.",
)
def compare(run_a: Path, run_b: Path, rule: str, margin: float | None, as_json: bool) -> None:
    """Set a rule's decisions in the directory RUN_A against those in RUN_B, question by question.

    Both runs have to be finished, on pools of the same content and on the same questions. Differences are RUN_A minus
    RUN_B. A margin is to be chosen before looking. No LM is asked and nothing is written.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.comparisons.two_runs import compare_runs
    from eldgr_dspy.figures.finished_run import read_run
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.tables.two_runs import two_run_tables

    runs = read_run(run_a), read_run(run_b)
    found = compare_runs(*runs, rule, margin)
    for told in dict.fromkeys(run.made_by_others for run in runs):
        if told:
            say(f"Note: {told}")
    unprinted = print_tables(found, two_run_tables(found), as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The comparison could not be printed: {refusal(unprinted)}")
