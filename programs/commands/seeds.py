"""`eldgr seeds`: one rule against another over runs of several seeds, and whose the spread is."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.output import Form, form_option, out_option


@click.command(context_settings={"show_default": True})
@click.argument("runs", nargs=-1, required=True, metavar="RUN[:POOL]...")
@click.option("--rule", metavar="NAME", default="eldgr", help="Rule whose answers are scored.")
@click.option("--against", metavar="NAME", default="majority", help="Rule that it is set against.")
@form_option("seeds")
@out_option()
def seeds(runs: tuple[str, ...], rule: str, against: str, form: Form, out: Path | None) -> None:
    """Set one rule against another over finished runs of several seeds.

    Each RUN is a seed on the same questions, with the same gold answers: of sampling, each on a pool of its own, or
    of the judge, all on one. POOL is needed where RUN has several.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.comparisons.seed_runs import over_seeds
    from eldgr_dspy.programs.commands.output import write
    from eldgr_dspy.tables.seeds import seed_tables

    found = over_seeds(runs, rule=rule, against=against)
    write(found, seed_tables(found), form, out)
