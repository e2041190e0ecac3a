"""`eldgr plan`: how many questions a gain needs, before anything is spent, and what a finished run could have seen."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from eldgr_dspy.programs.commands.saying import say
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
    from eldgr_dspy.figures.finished import read_run
    from eldgr_dspy.figures.planning import plan_ahead, what_it_saw
    from eldgr_dspy.programs.commands.console import print_tables

    if run is not None:
        if discordant is not None:
            raise click.UsageError("--discordant is for a plan without RUN; a run says itself what was discordant.")
        read = read_run(run)
        found = what_it_saw(read.summary(), power=power, alpha=alpha, gain=gain)
        tables = _seen(found)
        if read.made_by_others:
            say(f"Note: {read.made_by_others}")
    elif gain is None or discordant is None:
        raise click.UsageError("Give --gain and --discordant, or the directory RUN of a finished run.")
    else:
        found = plan_ahead(gain, discordant, power=power, alpha=alpha)
        tables = iter([_needed(found)])
    unprinted = print_tables(found, tables, as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The plan could not be printed: {refusal(unprinted)}")


def _needed(found: Mapping[str, Any]) -> Any:
    from eldgr_dspy.report.tables import Table, figure, signed

    title = f"questions to see {signed(found['gain'])} with power {found['power']:g} at alpha {found['alpha']:g}"
    headers = ("discordant %", "questions", "power there", "wins–losses to expect")
    row = (
        figure(found["discordant"]),
        f"{found['questions']:,}",
        figure(found["power_there"], 4),
        f"{found['wins']:,.0f}–{found['losses']:,.0f}",
    )
    return Table(title, headers, (row,))


def _seen(found: Mapping[str, Any]) -> Iterator[Any]:
    from eldgr_dspy.report.tables import UNDEFINED, Table, questions

    level = f"with power {found['power']:g} at alpha {found['alpha']:g}"
    wanted = () if found["gain"] is None else (f"n for +{found['gain']:g}",)
    headers = ("rule", "against", "wins–losses", "discordant %", "significant from", "sees gains from", *wanted)
    for name, pool in found["pools"].items():
        rows = tuple(_row(one)[: len(headers)] for one in pool["contrasts"])
        notes = ["There is no contrast: no question has a gold answer, or eldgr has no result."] if not rows else []
        if any(UNDEFINED in row for row in rows):
            notes.append(f"{UNDEFINED}: too few questions are discordant for it.")
        if wanted and any(one["questions"] is None and one["discordant"] >= found["gain"] for one in pool["contrasts"]):
            notes.append(f"{UNDEFINED} under {wanted[0]}: more than 10,000,000 questions would be needed.")
        yield Table(f"{name}: what {questions(pool['n'])} could show {level}", headers, rows, tuple(notes))


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    from eldgr_dspy.report.tables import UNDEFINED, figure, record, signed

    split, needed = one["least_significant"], one["questions"]
    return (
        one["rule"],
        one["against"],
        record(one),
        figure(one["discordant"]),
        f"{split[0]:,}–{split[1]:,}" if split else UNDEFINED,
        signed(one["detectable_gain"]),
        f"{needed:,}" if needed else UNDEFINED,
    )
