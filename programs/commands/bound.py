"""`eldgr bound`: each rule's lowest and highest possible accuracy over all judges, from the pool alone."""

from pathlib import Path
from typing import Any

import click

from eldgr_dspy.decision import RULES
from eldgr_dspy.programs.commands.options import (
    certificate_option,
    homogeneous_option,
    names_in,
    refusal_options,
    rules_option,
)
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write


@click.command(context_settings={"show_default": True})
@click.argument("pools", nargs=-1, required=True, type=click.Path(path_type=Path))
@rules_option()
@certificate_option
@homogeneous_option
@refusal_options
@form_options("bound")
@out_option()
@click.pass_context
def bound(
    context: click.Context,
    /,
    pools: tuple[Path, ...],
    rules: str,
    form: Form,
    out: Path | None,
    **settings: Any,
) -> None:
    """Bound each rule's accuracy over all judges.

    Tries every judge, and every span of the evidence as a repair. No LM is asked. Without gold answers, it still
    counts the questions on which a role can change the answer. MODULE:FUNCTION imports the module, which runs its code.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.figures.authority import pool_authority
    from eldgr_dspy.pools import open_pools
    from eldgr_dspy.questions import Settings
    from eldgr_dspy.rules import rule_named
    from eldgr_dspy.tables.bounds import authority_table

    names = names_in(rules)
    if not names:
        raise click.UsageError(
            f"--rules must name at least one rule; got {rules!r}. Give one or more of {', '.join(RULES)}.", context
        )
    for name in names:
        rule_named(name, "rules")
    chosen = Settings(**settings)
    bounds = {pool.name: pool_authority(pool.rows(), pool.task, chosen, names, pool.name) for pool in open_pools(pools)}
    tables = (authority_table(name, pool) for name, pool in bounds.items())
    write({"pools": bounds}, tables, form, out, "The bounds")
