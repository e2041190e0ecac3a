"""`eldgr ablation`: compare policies on the same questions, in the form of the paper's ablation table."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write


@click.command(context_settings={"show_default": True})
@click.argument("runs", nargs=-1, required=True, metavar="NAME=RUN[:POOL]...")
@click.option("--rule", metavar="NAME", default="first", help="Rule whose answers are compared.")
@click.option(
    "--against",
    metavar="NAME",
    multiple=True,
    help="Baseline run; may be repeated.  [default: full and grpo, if given]",
)
@form_options("ablation")
@out_option()
def ablation(runs: tuple[str, ...], rule: str, against: tuple[str, ...], form: Form, out: Path | None) -> None:
    """Compare policies, each by a run of its own.

    Each RUN is a finished run on one policy's pool. All pools must have the same questions and gold answers. NAME is
    free; for full, grpo and the channels, the paper's results are shown too. A channel's name means the policy trained
    without that channel. Give POOL if RUN has several.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.comparisons.ablation import ablate
    from eldgr_dspy.tables.ablation import ablation_tables

    comparison = ablate(runs, rule=rule, against=against)
    write(comparison, ablation_tables(comparison), form, out)
