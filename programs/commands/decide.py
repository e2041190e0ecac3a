"""`eldgr decide`: apply rules, also new ones, to the replies that a run has recorded."""

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import names_in, own_options, pools_argument, rules_option, run_argument
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, run_of, write
from eldgr_dspy.words import Consulted, is_role

if TYPE_CHECKING:
    from eldgr_dspy.figures.finished_run import RunRead

_NO_COMMAND = "no command can ask for it: a program or another version started the run."
_FROZEN = (
    "the run is under a freeze, which admits only its own rules; for one of these, repeat the command that started the "
    "run, with its --freeze."
)


@click.command()
@run_argument
@pools_argument
@rules_option(required=True)
@own_options
@form_options()
@out_option()
def decide(run: Path, pools: tuple[Path, ...], rules: str, own: dict[str, Any], form: Form, out: Path | None) -> None:
    """Apply other rules to the replies of a run.

    RUN is a run directory. No LM is asked, and the run does not change. If a rule needs a reply that the run does not
    have, its results are withheld, and a note gives the command that asks for it. Give POOLS if the run's pools have
    moved. MODULE:FUNCTION imports the module, which runs its code. A run is data, and no name in it is imported: if it
    was made with a certificate, refusals or an answer type of your own, name it again.
    """
    from eldgr_dspy.programs.commands.resume_command import command_that_asks, is_frozen
    from eldgr_dspy.programs.run.redecisions import decide_again
    from eldgr_dspy.tables.run import pool_tables

    results = run_of(run, **own)
    _remark_on(results)
    decided = decide_again(results, [*names_in(rules)] or [""], pools)
    lacks: set[Consulted] = {
        role for pool in decided.figures.values() for lacking in pool["withheld"].values() for role in lacking
    }
    asks = command_that_asks(results, decided, lacks) if lacks else None
    remedy = _FROZEN if is_frozen(results) else _NO_COMMAND
    if asks:
        remedy = f"to ask for it{_of_whom(results, lacks, asks)}: {asks}"
    tables = (table for name, pool in decided.figures.items() for table in pool_tables(name, pool, remedy=remedy))
    write({"pools": decided.figures, "asks": asks}, tables, form, out, "The decisions")


def _remark_on(run: "RunRead") -> None:
    if run.torn:
        say(f"Note: {run.path}: the last line of the journal is incomplete and is skipped.")
    if not run.finished():
        say(f"Note: {run.path}: the run is not finished, so all questions of its pools are decided.")


def _of_whom(run: "RunRead", lacks: Collection[Consulted], command: str) -> str:
    """Say which roles are heuristic in the command because the run was replayed; a recording names no model."""
    if not any(sums["recorded"] for sums in run.totals.roles.values()):
        return ""
    words = shlex.split(command)
    heuristic = [role for role in sorted(lacks) if is_role(role) and f"--{role}" not in words]
    if not heuristic:
        return ""
    models = " ".join(f"--{role} MODEL" for role in heuristic)
    return (
        f", here of the heuristic {' and '.join(heuristic)}, because a recording names no model (add {models} to ask "
        "a model)"
    )
