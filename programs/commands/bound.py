"""`eldgr bound`: between what and what every rule's accuracy lies over all judges, from the pool alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click

from eldgr_dspy.words import Homogeneous, Policy


@click.command(context_settings={"show_default": True})
@click.argument("pools", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--certificate", type=click.Choice(get_args(Policy)), default="folded", help="Certificate of retrieval answers."
)
@click.option(
    "--homogeneous", type=click.Choice(get_args(Homogeneous)), help="Repair pools of one class.  [default: by task]"
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_BOUND_JSON",
    allow_from_autoenv=False,
    help="Print the figures as JSON.",
)
@click.pass_context
def bound(
    context: click.Context,
    /,
    pools: tuple[Path, ...],
    certificate: Policy,
    homogeneous: Homogeneous | None,
    as_json: bool,
) -> None:
    """Say between what and what each rule's accuracy on POOLS lies, whatever the judge answers.

    Every judge is played, and every span of the evidence as repair. No LM is asked, and nothing is written. Without
    gold answers it still says on how many questions a role can change what ships.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.authority import pool_authority
    from eldgr_dspy.pools import open_pools
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.questions import Settings

    settings = Settings(certificate=certificate, homogeneous=homogeneous)
    found = {pool.name: pool_authority(pool.rows(), pool.task, settings) for pool in open_pools(pools)}
    tables = (_table(name, pool) for name, pool in found.items())
    unprinted = print_tables({"pools": found}, tables, as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The bounds could not be printed: {unprinted}.")


def _table(name: str, pool: Mapping[str, Any]) -> Any:
    from eldgr_dspy.tables import UNDEFINED, Table, figure, interval, questions

    repairer = "repairer" if pool["task"] == "retrieval" else "deriver"
    both = "any judge, any span" if repairer == "repairer" else "any judge, any deriver"
    rows = []
    for rule, changes in pool["can_change"].items():
        open_ended = repairer in pool["unbounded"] and changes[repairer]
        over_both = pool["bounds_any_span"][rule] or pool["bounds"][rule]
        ends = interval(pool["bounds"][rule]), "unbounded" if open_ended else interval(over_both)
        rows.append((rule, *ends, figure(changes["judge"]), figure(changes[repairer])))
    notes = []
    if pool["n_scored"] == 0:
        notes.append(f"{UNDEFINED}: no question has a gold answer. What a role can change needs none.")
    elif pool["n_scored"] < pool["n"]:
        notes.append(f"Bounds are over the {questions(pool['n_scored'])} that have a gold answer, of {pool['n']:,}.")
    if any("unbounded" in row for row in rows):
        notes.append("unbounded: what a deriver may derive is not in the pool.")
    headers = ("rule", "any judge", both, "judge can change", f"{repairer} can change")
    title = f"{name}: {pool['task']}, {questions(pool['n'])}: authority bounds, %"
    return Table(title, headers, tuple(rows), tuple(notes))
