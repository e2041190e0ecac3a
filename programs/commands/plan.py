"""`eldgr plan`: how many questions a gain needs, and which gain a finished run could have detected."""

from collections.abc import Mapping
from pathlib import Path

import click

from eldgr_dspy.programs.commands.output import Form, form_options, out_option, run_of, write

_PERCENT = click.FloatRange(0, 100, min_open=True)
_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command(context_settings={"show_default": True})
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--gain", type=_PERCENT, metavar="%", help="Wins minus losses, in percent of the questions.")
@click.option("--discordant", type=_PERCENT, metavar="%", help="Wins plus losses, in percent of the questions.")
@click.option("--power", type=_SHARE, metavar="P", default=0.8, help="Probability of detecting the gain.")
@click.option("--alpha", type=_SHARE, metavar="P", default=0.05, help="Level of the two-sided exact McNemar test.")
@form_options("plan")
@out_option()
@click.pass_context
def plan(
    context: click.Context,
    /,
    run: Path | None,
    gain: float | None,
    discordant: float | None,
    power: float,
    alpha: float,
    form: Form,
    out: Path | None,
) -> None:
    """Compute how many questions a gain needs.

    Without RUN, plan for the given --gain and --discordant. With RUN, the directory of a finished run, print the
    smallest gain that each of its contrasts could have detected; --gain adds how many questions another run needs.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.figures.planning import plan_ahead, what_it_saw
    from eldgr_dspy.tables.planning import needed_table, seen_tables

    value: Mapping[str, object]
    if run is not None:
        if discordant is not None:
            raise click.UsageError("--discordant cannot be combined with RUN: the run has its own count. Leave it out.")
        findings = what_it_saw(run_of(run).summary(), power=power, alpha=alpha, gain=gain)
        value, tables = findings, seen_tables(findings)
    elif gain is None or discordant is None:
        raise click.UsageError("Give --gain and --discordant, or RUN, the directory of a finished run.")
    else:
        needed = plan_ahead(gain, discordant, power=power, alpha=alpha)
        value, tables = needed, iter([needed_table(needed)])
    write(value, tables, form, out, "The plan")
