"""`eldgr pool pairs`: write preference pairs for training."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from eldgr_dspy.base.formatting import questions
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import FILE, answer_option, certificate_option, choice, set_option
from eldgr_dspy.programs.commands.output import Form, form_options, write, writing

if TYPE_CHECKING:
    from eldgr_dspy.programs.pools.preference_pairs import PairCounts
    from eldgr_dspy.tables.table import Table

_Layout = Literal["dpo", "kto"]


@click.command(context_settings={"show_default": True})
@click.argument("source", metavar="POOL", type=FILE)
@click.option("--out", required=True, type=FILE, metavar="FILE", help="File to write: .jsonl, .jsonl.gz or .parquet.")
@click.option(
    "--layout", type=choice(_Layout), default="dpo", help="Rows with chosen and rejected, or with completion and label."
)
@click.option("--most", type=click.IntRange(min=1), default=1, metavar="N", help="Write at most N pairs a question.")
@click.option("--gold", is_flag=True, help="Choose right answers over wrong ones, whatever is certified.")
@click.option("--score", metavar="NAME", help="Recorded score whose difference is the margin of a pair.")
@click.option("--messages", is_flag=True, help="Write prompts and completions as messages.")
@click.option("--with-evidence", "evidence", is_flag=True, help="Show the evidence in the prompt.")
@click.option("--ask", metavar="TEXT", help="Request below the question.  [default: as in training]")
@answer_option
@certificate_option
@set_option("refusal", "refusals")
@form_options()
@click.pass_context
def pairs(context: click.Context, /, source: Path, out: Path, form: Form, **options: Any) -> None:
    """Write preference pairs for training.

    In each pair a certified answer is chosen and an uncertified one rejected. The answers with most votes come first.
    If the pool has gold answers, a right one is never rejected for a wrong one. TRL's trainers for DPO, KTO and rewards
    read the file.

    With --gold, right answers are chosen and wrong ones rejected. Use it for arithmetic, where evidence certifies
    nothing.
    """
    from eldgr_dspy.pools import open_pools
    from eldgr_dspy.programs.pools.preference_pairs import Pairing, write_pairs
    from eldgr_dspy.rule.questions import Settings

    pairing = Pairing(**{one.name: options.pop(one.name) for one in fields(Pairing)})
    if pairing.gold and context.get_parameter_source("certificate") is not ParameterSource.DEFAULT:
        raise click.UsageError("--gold and --certificate contradict each other. Give one of them.", context)
    rule_settings = Settings(**options)
    (pool,) = open_pools([source], rule_settings.type)
    with writing(out):
        counts = write_pairs(pool, out, rule_settings, pairing)
    value = {"pool": pool.name, "sha256": pool.sha256, "layout": pairing.layout, **counts.figures()}
    write(value, [_table(pool.name, pool.n, counts, gold=pairing.gold)], form, None, "The counts")
    say(f"Written to {out}.")


def _table(name: str, n: int, counts: "PairCounts", *, gold: bool) -> "Table":
    from eldgr_dspy.programs.pools.preference_pairs import fates
    from eldgr_dspy.tables.table import Table

    rows = tuple((text, f"{count:,}") for fate, text in fates(gold).items() if (count := counts.questions[fate]))
    notes = [f"Pairs: {counts.pairs:,}. Rows written: {counts.rows:,}."]
    if counts.dropped:
        notes.append(f"Pairs dropped, because they would reject a right answer for a wrong one: {counts.dropped:,}.")
    if counts.checked:
        right = f"the chosen answer is right in {counts.right_chosen:,}, the rejected one in {counts.right_rejected:,}"
        notes.append(f"Of {counts.checked:,} pairs with a gold answer, {right}.")
    if counts.checked < counts.pairs:
        unchecked = f"{counts.pairs - counts.checked:,} of {counts.pairs:,}"
        notes.append(f"Pairs without a gold answer, so that right and wrong are not checked: {unchecked}.")
    return Table(f"{name}: pairs of {questions(n)}", ("questions", "count"), rows, tuple(notes))
