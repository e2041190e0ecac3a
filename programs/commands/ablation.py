"""`eldgr ablation`: policies against policies on the same questions, in the form of the paper's ablation table."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.output import Form, form_option, out_option


@click.command(context_settings={"show_default": True})
@click.argument("runs", nargs=-1, required=True, metavar="NAME=RUN[:POOL]...")
@click.option("--rule", metavar="NAME", default="first", help="Rule whose answers are scored.")
@click.option(
    "--against",
    metavar="NAME",
    multiple=True,
    help="Run that the others are set against; may be repeated.  [default: full and grpo, where given]",
)
@form_option("ablation")
@out_option()
def ablation(runs: tuple[str, ...], rule: str, against: tuple[str, ...], form: Form, out: Path | None) -> None:
    """Set policies against each other, each by its finished run on a pool of its own, question by question.

    Any names will do; full, grpo and the channels have the paper's figures beside them, a channel's name being the
    policy trained without it. Questions and gold answers have to be the same in all pools. POOL is needed where RUN
    has several.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.comparisons.ablation import ablate
    from eldgr_dspy.programs.commands.output import write
    from eldgr_dspy.tables.ablation import ablation_tables

    found = ablate(runs, rule=rule, against=against)
    write(found, ablation_tables(found), form, out)
