"""`eldgr reproduce`: every table of the paper, with what runs came to beside it."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.output import Form, form_option, out_option


@click.command(context_settings={"show_default": True})
@click.argument("runs", nargs=-1, metavar="[NAME=RUN[:POOL]]...")
@form_option("reproduce")
@out_option()
def reproduce(runs: tuple[str, ...], form: Form, out: Path | None) -> None:
    """Lay out the tables of the paper, and beside them what finished runs came to.

    NAME says which of the paper's data the directory RUN stands for: gsm8k, hotpotqa or confirmation. POOL is needed
    where RUN has several pools of that task. Below each table stands what is comparable and what is not. Without a
    run the tables are the paper's alone. Its nine contrasts are computed again from their counts.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.comparisons.reproduction import reproduce as rebuild
    from eldgr_dspy.programs.commands.output import write
    from eldgr_dspy.tables.reproduction import reproduction_tables

    found = rebuild(runs)
    write(found, reproduction_tables(found), form, out)
