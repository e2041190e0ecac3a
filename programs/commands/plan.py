"""`eldgr plan`: how many questions a gain needs, before anything is spent, and what a finished run could have seen."""

from collections.abc import Mapping
from pathlib import Path

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.system import refusal

_PERCENT = click.FloatRange(0, 100, min_open=True)
_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command(context_settings={"show_default": True})
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--gain", type=_PERCENT, metavar="%", help="Wins minus losses, in percent of the questions.")
@click.option("--discordant", type=_PERCENT, metavar="%", help="Wins plus losses, in percent of the questions.")
@click.option("--power", type=_SHARE, metavar="P", default=0.8, help="Probability wanted of seeing the gain.")
@click.option("--alpha", type=_SHARE, metavar="P", default=0.05, help="Level of the two-sided exact McNemar test.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_PLAN_JSON",
    allow_from_autoenv=False,
    help="Print the figures as JSON.",
)
@click.pass_context
def plan(
    context: click.Context,
    /,
    run: Path | None,
    gain: float | None,
    discordant: float | None,
    power: float,
    alpha: float,
    as_json: bool,
) -> None:
    """Say how many questions a gain needs, or what the run in the directory RUN could have seen.

    Without RUN, --gain and --discordant say what to plan for. With RUN, each contrast says which gain it could have
    seen, given how many of its questions were discordant; --gain adds how many questions another run would need.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.figures.finished_run import read_run
    from eldgr_dspy.figures.planning import plan_ahead, what_it_saw
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.tables.planning import needed_table, seen_tables

    found: Mapping[str, object]
    if run is not None:
        if discordant is not None:
            raise click.UsageError("--discordant is for a plan without RUN; a run says itself what was discordant.")
        read = read_run(run)
        seen = what_it_saw(read.summary(), power=power, alpha=alpha, gain=gain)
        found, tables = seen, seen_tables(seen)
        if read.made_by_others:
            say(f"Note: {read.made_by_others}")
    elif gain is None or discordant is None:
        raise click.UsageError("Give --gain and --discordant, or the directory RUN of a finished run.")
    else:
        needed = plan_ahead(gain, discordant, power=power, alpha=alpha)
        found, tables = needed, iter([needed_table(needed)])
    unprinted = print_tables(found, tables, as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The plan could not be printed: {refusal(unprinted)}")
