"""`eldgr reproduce`: every table of the paper, with the results of your runs next to it."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write


@click.command(context_settings={"show_default": True})
@click.argument("runs", nargs=-1, metavar="[NAME=RUN[:POOL]]...")
@form_options("reproduce")
@out_option()
def reproduce(runs: tuple[str, ...], form: Form, out: Path | None) -> None:
    """Print the paper's tables next to your results.

    NAME says which of the paper's datasets RUN stands for: gsm8k, hotpotqa or confirmation. RUN is the directory of a
    finished run. Give POOL if RUN has several pools of that task. Notes below each table say what is comparable.
    Without RUN, only the paper's results are printed. Its nine contrasts are recomputed from their counts.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.comparisons.reproduction import reproduce as rebuild
    from eldgr_dspy.tables.reproduction import reproduction_tables

    reproduction = rebuild(runs)
    write(reproduction, reproduction_tables(reproduction), form, out)
