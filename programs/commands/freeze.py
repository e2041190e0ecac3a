"""`eldgr freeze`: write rules, settings and roles to a freeze, the file that a later evaluation must follow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.base.system import refusal
from eldgr_dspy.programs.commands.evaluate import OF_ROLES, GroupedCommand
from eldgr_dspy.programs.commands.options import FILE, names_in, role_options
from eldgr_dspy.programs.commands.role_models import Models, named_judges
from eldgr_dspy.showing import display_text


@click.command(
    cls=GroupedCommand,
    context_settings={"show_default": True},
    groups={**OF_ROLES, "Models": f"{OF_ROLES['Models']} heuristic"},
)
@click.option("--heuristic", is_flag=True, help="Freeze the heuristic role where no model is given.")
@role_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("rule.freeze.json"),
    help="File to write.",
)
@click.option("--run", type=FILE, metavar="RUN", help="Run to decide again after an upgrade.")
def freeze(out: Path, run: Path | None, models: Models, rules: str, heuristic: bool, settings: dict[str, Any]) -> None:
    """Write rules, settings and roles to a freeze.

    eldgr evaluate --freeze takes rules and settings from it and refuses anything else. Give the models there again. No
    LM is asked here. Heuristic roles only compare words, so they are frozen only if --heuristic says so.
    """
    from eldgr_dspy.programs.commands.console import write_out
    from eldgr_dspy.programs.run import freezes

    selector = models.selector(settings)
    if not heuristic and (roles := _without_model(models, names_in(rules), selector.type)):
        raise click.UsageError(
            f"No model is given for the {' and the '.join(roles)}, and the rules may ask them. Give --lm MODEL, or "
            "--heuristic to freeze heuristic roles, which only compare words."
        )
    with models.asking(selector):
        freeze = freezes.write_freeze(selector, names_in(rules), out, named_judges(models, settings), run)
    try:
        write_out(display_text(f"{out}: {', '.join(freeze.rules)} frozen as {freeze.sha256[:16]}.\n"))
    except BrokenPipeError:
        return
    except OSError as error:
        raise click.ClickException(
            f"The freeze is in {out}, but this could not be printed: {refusal(error)}"
        ) from error


def _without_model(models: Models, rules: Sequence[str], kind: AnswerType) -> list[str]:
    """Return the roles that the rules may ask in questions of a type and that have no model."""
    from eldgr_dspy.programs.rule_roles import roles_of

    names = {role for rule in rules for role in roles_of(rule, kind)}
    return [
        role
        for role, model in models.named.items()
        if role in names and model is None and not (role == "judge" and models.judges)
    ]
