"""`eldgr freeze`: a rule with its roles in a file, to which an evaluation can be held."""

from pathlib import Path
from typing import Any, Literal

import click

from eldgr_dspy.programs.commands.evaluate import Grouped, evaluate
from eldgr_dspy.words import Role

_FROZEN = [name for _, names in Grouped.groups[:2] for name in names]  # how the roles and the rule are made


class _GroupedAlike(Grouped):
    """The groups of `eldgr evaluate` that concern roles and rule."""

    groups = Grouped.groups[:2]


@click.command(
    cls=_GroupedAlike,
    context_settings={"show_default": True},
    params=[one for one in evaluate.params if one.name in _FROZEN],
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("rule.lock.json"),
    help="File to write.",
)
def freeze(
    out: Path,
    lm: str | None,
    judge: str | None,
    deriver: str | None,
    repairer: str | None,
    api_base: str | None,
    num_ctx: int | None,
    judge_style: Literal["listwise", "pairwise", "pointwise"],
    orders: int,
    rules: str,
    **settings: Any,
) -> None:
    """Freeze rules, settings, roles and versions in a file, the lock.

    eldgr evaluate --lock then takes rule and settings from it, refuses anything else, and keeps account of the pools
    that it has been shown. Give the models there again. Nobody is asked here.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.programs.commands.console import write_out
    from eldgr_dspy.programs.commands.evaluate import lms_of, selector_of
    from eldgr_dspy.programs.run import locks

    models: dict[Role, str | None] = {"judge": judge or lm, "deriver": deriver or lm, "repairer": repairer or lm}
    names = tuple(dict.fromkeys(name.strip() for name in rules.split(",") if name.strip()))
    selector = selector_of(lms_of(models, api_base, num_ctx), settings, (judge_style, orders))
    lock = locks.freeze(selector, names, out)
    try:
        write_out(f"{out}: {', '.join(lock.rules)} frozen as {lock.sha256[:16]}.\n")
    except BrokenPipeError:
        return
    except OSError as error:
        raise click.ClickException(f"{out} holds the lock; that could not be printed: {error}.") from error
