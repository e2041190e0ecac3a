"""`eldgr seeds`: compare two rules over runs of several seeds, and split the variance by source."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write


@click.command(context_settings={"show_default": True})
@click.argument("runs", nargs=-1, required=True, metavar="RUN[:POOL]...")
@click.option("--rule", metavar="NAME", default="eldgr", help="Rule whose answers are compared.")
@click.option("--against", metavar="NAME", default="majority", help="Baseline rule.")
@form_options("seeds")
@out_option()
def seeds(runs: tuple[str, ...], rule: str, against: str, form: Form, out: Path | None) -> None:
    """Compare two rules over runs of several seeds.

    Each RUN is a finished run with one seed, on the same questions and gold answers. With sampling seeds, each run
    has its own pool. With judge seeds, all have the same pool. Give POOL if RUN has several.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.comparisons.seed_runs import over_seeds
    from eldgr_dspy.tables.seeds import seed_tables

    comparison = over_seeds(runs, rule=rule, against=against)
    write(comparison, seed_tables(comparison), form, out)
