"""`eldgr collect`: collect a pool from a program."""

from typing import Any

import click

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.formats.rows import MAX_CANDIDATES
from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.evaluate import GroupedCommand, limit_options, without_fresh
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import ABOVE_0, FILE, FROM_1, AnswerName, api_base_option, structured_option
from eldgr_dspy.programs.commands.role_models import require_address
from eldgr_dspy.words import SchemaUse


@click.command(
    cls=GroupedCommand,
    groups={
        "The program": "devset answer answer_field passages columns lm api_base structured temperature",
        "The collection": "out n limit workers fresh",
        "Limits": "timeout max_failures max_calls max_cost",
    },
)
@click.argument("program", metavar="MODULE:PROGRAM")
@click.option("--devset", required=True, metavar="FILE", help="Questions and gold answers; or MODULE:LIST of examples.")
@click.option("--out", required=True, type=FILE, metavar="POOL", help="File to write.")
@click.option("--n", type=click.IntRange(1, MAX_CANDIDATES), default=8, help="Samples of each question.")
@click.option(
    "--answer", type=AnswerName(), default="short", help="Answer type of the questions; MODULE:NAME names your own."
)
@click.option("--answer-field", default="answer", metavar="FIELD", help="Field of the program's answer.")
@click.option("--passages", metavar="FIELD", help="Field of the passages.  [default: evidence, context or passages]")
@click.option("--columns", is_flag=True, help="Keep confidence, logprobs, scores and tags of predictions.")
@click.option("--lm", metavar="MODEL", help="Model for predictors without one.  [default: the module's]")
@api_base_option
@structured_option
@click.option("--temperature", type=ABOVE_0, help="Of the samples.  [default: the model's]")
@click.option("--limit", type=FROM_1, help="Questions to take.  [default: all]")
@click.option("--workers", type=click.IntRange(1, 1024), default=8, help="Samples in parallel.")
@limit_options("sample")
@click.pass_context
def collect(
    context: click.Context, /, lm: str | None, api_base: str | None, structured: SchemaUse, fresh: bool, **options: Any
) -> None:
    """Collect a pool from your DSPy program.

    The program is a dspy.Module, or a function or class that makes one without arguments; MODULE is imported, which
    runs its code. It is called --n times on each question. Its answers, reasoning and passages become a pool.

    Each sample is kept in NAME.collected, next to the pool. To resume, give the same command again, without --fresh.
    """
    from eldgr_dspy.programs.commands.console import progress_bar
    from eldgr_dspy.programs.lms.models import make_lm
    from eldgr_dspy.programs.run.collecting import Collection
    from eldgr_dspy.programs.run.collecting import collect as run_collection

    session = context.ensure_object(Session)
    if fresh:
        session.resume = without_fresh(context)
    collection = Collection(fresh=fresh, **options)
    require_address(api_base, [lm] if lm else [])
    with progress_bar(session.begin, quiet=False) as watcher:
        result = run_collection(collection, watcher, make_lm(lm, api_base, structured=structured) if lm else None)
    pool = result.pool
    bare = result.bare if answer_type(pool.task).way == "evidence" else 0
    none = "Samples without an answer, because"
    for what, count, more in (
        (f"{none} a reply could not be read", result.unreadable, "."),
        (f"{none} they failed", result.failures, ". The same command asks for them again."),
        (f"{none} their thinking does not end", result.unclosed, "."),
        ("Samples that ran on into a new turn or question, which is not read", result.cut, "."),
        ("Samples with a column that is left out", result.unusable, f". The first: {result.fault}"),
        ("Questions without passages", bare, f" of {pool.n:,}. Name their field with --passages."),
        ("Questions without a gold answer", result.without_gold, f" of {pool.n:,}. Name its field gold."),
    ):
        if count:
            say(f"{what}: {count:,}{more}")
    say(f"Written to {collection.out}: {questions(pool.n)}, {collection.n} samples each.")
