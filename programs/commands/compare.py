"""`eldgr compare`: compare a rule over runs on the same questions, or two rules over runs of several seeds."""

from pathlib import Path

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write


@click.command(context_settings={"show_default": True})
@click.argument("runs", nargs=-1, required=True, metavar="[NAME=]RUN[:POOL]...")
@click.option("--rule", metavar="NAME", default="eldgr", help="Rule whose answers are compared.")
@click.option(
    "--seeds", metavar="RULE", help="The runs are seeds of one setup: compare the rule with this one over them."
)
@form_options()
@out_option()
def compare(runs: tuple[str, ...], rule: str, seeds: str | None, form: Form, out: Path | None) -> None:
    """Compare runs on the same questions.

    Each RUN is the directory of a finished run, such as that of another judge, policy or seed. All need the same
    questions and gold answers. NAME is free. Give POOL if the runs have different pools. Differences are a run minus
    the first. No LM is asked.

    With --seeds, the spread of both rules is split into that of seeds and that of questions.
    """
    from eldgr_dspy.comparisons.compared_runs import compare_runs, over_seeds
    from eldgr_dspy.comparisons.named_runs import named_runs
    from eldgr_dspy.tables.comparison import comparison_tables, seed_tables

    named = named_runs(runs)
    for note in dict.fromkeys(one.run.made_by_others for one in named.values()):
        if note:
            say(f"Note: {note}")
    if seeds:
        spread = over_seeds(named, rule=rule, against=seeds)
        write(spread, seed_tables(spread), form, out, "The comparison")
    else:
        comparison = compare_runs(named, rule=rule)
        write(comparison, comparison_tables(comparison), form, out, "The comparison")
