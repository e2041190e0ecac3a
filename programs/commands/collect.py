"""`eldgr collect`: collect a pool from a program."""

from pathlib import Path
from typing import Any

import click

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.formats.rows import MAX_CANDIDATES
from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.evaluate import Grouped, limit_options, without_fresh
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import AnswerName, require_address, structured_option
from eldgr_dspy.words import SchemaUse


class _GroupedAlike(Grouped):
    groups = (
        (
            "The program",
            ("devset", "answer", "answer_field", "passages", "columns", "lm", "api_base", "structured", "temperature"),
        ),
        ("The collection", ("out", "n", "limit", "workers", "fresh")),
        ("Limits", ("timeout", "max_failures", "max_calls", "max_cost")),
    )


@click.command(cls=_GroupedAlike, context_settings={"show_default": True})
@click.argument("program", metavar="MODULE:PROGRAM")
@click.option("--devset", required=True, metavar="FILE", help="Questions and gold answers; or MODULE:LIST of examples.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="POOL", help="File to write.")
@click.option("--n", type=click.IntRange(1, MAX_CANDIDATES), default=8, help="Samples of each question.")
@click.option(
    "--answer", type=AnswerName(), default="short", help="Answer type of the questions; MODULE:NAME names your own."
)
@click.option("--answer-field", default="answer", metavar="FIELD", help="Field of the program's answer.")
@click.option("--passages", metavar="FIELD", help="Field of the passages.  [default: evidence, context or passages]")
@click.option("--columns", is_flag=True, help="Keep confidence, logprobs, scores and tags of predictions.")
@click.option("--lm", metavar="MODEL", help="Model for predictors without one.  [default: the module's]")
@click.option("--api-base", metavar="URL", help="Address of that model's server.")
@structured_option
@click.option(
    "--temperature", type=click.FloatRange(min=0, min_open=True), help="Of the samples.  [default: the model's]"
)
@click.option("--limit", type=click.IntRange(min=1), help="Questions to take.  [default: all]")
@click.option("--workers", type=click.IntRange(1, 1024), default=8, help="Samples in parallel.")
@click.option("--fresh", is_flag=True, help="Start again; the old journal is kept.")
@limit_options("sample")
@click.pass_context
def collect(
    context: click.Context, /, lm: str | None, api_base: str | None, structured: SchemaUse, fresh: bool, **options: Any
) -> None:
    """Collect a pool from your DSPy program.

    The program is a dspy.Module, or a function or class that makes one without arguments; MODULE is imported, which
    runs its code. It is called --n times on each question. Its answers, reasoning and passages become a pool.

    Each sample is kept in NAME.collected, next to the pool. To resume, give the same command again, without --fresh.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage, 3 stopped early, 130 ctrl-C, 143 SIGTERM.
    """
    from eldgr_dspy.programs.commands.console import progress_bar
    from eldgr_dspy.programs.lms.models import lm_named
    from eldgr_dspy.programs.run.collecting import Collection
    from eldgr_dspy.programs.run.collecting import collect as run_collection

    session = context.ensure_object(Session)
    session.unbegun = "Nothing was asked."
    if fresh:
        session.resume = without_fresh(context)
    collection = Collection(fresh=fresh, **options)
    require_address(api_base, [lm] if lm else [])
    with progress_bar(session.begin, quiet=False) as watcher:
        collected = run_collection(collection, watcher, lm_named(lm, api_base, structured=structured) if lm else None)
    pool = collected.pool
    if collected.unread:
        say(f"Samples without an answer, because a reply could not be read: {collected.unread:,}.")
    if collected.failed:
        again = "The same command asks for them again."
        say(f"Samples without an answer, because they failed: {collected.failed:,}. {again}")
    if collected.unclosed:
        say(f"Samples without an answer, because their thinking does not end: {collected.unclosed:,}.")
    if collected.cut:
        say(f"Samples that ran on into a new turn or question, which is not read: {collected.cut:,}.")
    if collected.unusable:
        say(f"Samples with a column that is left out: {collected.unusable:,}. The first: {collected.fault}")
    if collected.bare and answer_type(pool.task).way == "evidence":
        say(f"Questions without passages: {collected.bare:,} of {pool.n:,}. Name their field with --passages.")
    say(f"Written to {collection.out}: {pool.n:,} question{'s' * (pool.n != 1)}, {collection.n} samples each.")
