"""`eldgr bound`: between what and what every rule's accuracy lies over all judges, from the pool alone."""

from pathlib import Path
from typing import get_args

import click

from eldgr_dspy.decision import RULES
from eldgr_dspy.system import refusal
from eldgr_dspy.words import Homogeneous, Policy


@click.command(context_settings={"show_default": True})
@click.argument("pools", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--rules",
    default=",".join(RULES),
    help="Rules to bound, separated by commas; MODULE:FUNCTION is one of your own.",
)
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
    rules: str,
    certificate: Policy,
    homogeneous: Homogeneous | None,
    as_json: bool,
) -> None:
    """Say between what and what each rule's accuracy on POOLS lies, whatever the judge answers.

    Every judge is played, and every span of the evidence as repair. No LM is asked, and nothing is written. Without
    gold answers it still says on how many questions a role can change what ships. MODULE:FUNCTION is imported, hence
    run.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.figures.authority import pool_authority
    from eldgr_dspy.pools import open_pools
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.programs.commands.options import names_in
    from eldgr_dspy.questions import Settings
    from eldgr_dspy.rules import rule_named
    from eldgr_dspy.tables.bounds import authority_table

    names = names_in(rules)
    if not names:
        raise click.UsageError(f"--rules={rules!r} holds no rule; give one or more of {', '.join(RULES)}.", context)
    for name in names:
        rule_named(name, "rules")
    settings = Settings(certificate=certificate, homogeneous=homogeneous)
    found = {pool.name: pool_authority(pool.rows(), pool.task, settings, names) for pool in open_pools(pools)}
    tables = (authority_table(name, pool) for name, pool in found.items())
    unprinted = print_tables({"pools": found}, tables, as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The bounds could not be printed: {refusal(unprinted)}")
