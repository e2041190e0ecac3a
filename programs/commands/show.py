"""`eldgr show`: print one question of a finished run, and why each rule ships its answer."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from eldgr_dspy.programs.commands.options import names_in, own_options, pools_argument, rules_option, run_argument
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, run_of, write


@click.command()
@run_argument
@click.argument("id")
@pools_argument
@rules_option(default="")
@own_options
@form_options()
@out_option()
def show(
    run: Path, id: str, pools: tuple[Path, ...], rules: str, own: dict[str, Any], form: Form, out: Path | None
) -> None:
    """Print a question of a run, and why its answer ships.

    RUN is the directory of a finished run. ID is the id of a question, or POOL:ID if several pools of the run have it.
    It prints the votes, the candidates, the evidence with each witness, what the roles said, and what each rule ships
    and why. The texts are in the run's pools; give POOLS if they have moved. --rules shows only some rules.
    """
    from eldgr_dspy.programs.run.pages import question_of
    from eldgr_dspy.report.question_tables import question_tables

    results = run_of(run, **own)
    question = question_of(results, id, pools, names_in(rules))
    value = {
        "pool": question.pool,
        **question.row.model_dump(mode="json"),
        "decisions": question.decisions,
        "consultations": [asdict(one) for one in question.relevant_consultations()],
        **({} if question.ungiven is None else {"ungiven": question.ungiven}),
    }
    write(value, question_tables(question), form, out, "The question")
