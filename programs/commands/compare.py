"""`eldgr compare`: compare a rule in two runs on the same questions."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write


@click.command(context_settings={"show_default": True})
@click.argument("run_a", type=click.Path(path_type=Path))
@click.argument("run_b", type=click.Path(path_type=Path))
@click.option("--rule", metavar="NAME", default="eldgr", help="Rule whose answers are compared.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    metavar="POINTS",
    help="Also test whether the runs are equivalent within this many percentage points.",
)
@form_options("compare")
@out_option()
def compare(run_a: Path, run_b: Path, rule: str, margin: float | None, form: Form, out: Path | None) -> None:
    """Compare a rule's answers in two runs.

    RUN_A and RUN_B are directories of finished runs on the same pools and questions. Differences are RUN_A minus
    RUN_B. Choose a margin before you look at the results. No LM is asked.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.comparisons.two_runs import compare_runs
    from eldgr_dspy.figures.finished_run import read_run
    from eldgr_dspy.tables.two_runs import two_run_tables

    runs = read_run(run_a), read_run(run_b)
    comparison = compare_runs(*runs, rule, margin)
    for told in dict.fromkeys(run.made_by_others for run in runs):
        if told:
            say(f"Note: {told}")
    write(comparison, two_run_tables(comparison), form, out, "The comparison")
