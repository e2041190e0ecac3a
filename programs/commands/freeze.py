"""`eldgr freeze`: a rule with its roles in a file, to which an evaluation can be held."""

from pathlib import Path
from typing import Any

import click

from eldgr_dspy.programs.commands.evaluate import Grouped
from eldgr_dspy.programs.commands.options import Models, model_options, names_in, rule_options
from eldgr_dspy.showing import shown
from eldgr_dspy.system import refusal


class _GroupedAlike(Grouped):
    """The groups of `eldgr evaluate` that concern roles and rule."""

    groups = Grouped.groups[:2]


@click.command(cls=_GroupedAlike, context_settings={"show_default": True})
@model_options
@rule_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("rule.lock.json"),
    help="File to write.",
)
def freeze(out: Path, models: Models, rules: str, **settings: Any) -> None:
    """Freeze rules, settings, roles and versions in a file, the lock.

    eldgr evaluate --lock then takes rule and settings from it, refuses anything else, and keeps account of the pools
    that it has been shown. Give the models there again. Nobody is asked here.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.programs.commands.console import write_out
    from eldgr_dspy.programs.run import locks

    lock = locks.freeze(models.selector(settings), names_in(rules), out)
    try:
        write_out(shown(f"{out}: {', '.join(lock.rules)} frozen as {lock.sha256[:16]}.\n"))
    except BrokenPipeError:
        return
    except OSError as error:
        raise click.ClickException(f"{out} holds the lock; that could not be printed: {refusal(error)}") from error
