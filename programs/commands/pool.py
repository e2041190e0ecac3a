"""`eldgr pool`: makes a pool of files of predictions, says what pools hold, and splits one in two."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.system import refusal
from eldgr_dspy.words import Task

if TYPE_CHECKING:
    from eldgr_dspy.pools import Pool

_FILE = click.Path(path_type=Path)
_Layout = Literal["predictions", "lm-eval", "inspect"]
_By = Literal["id", "question"]
_Evidence = Literal["paragraphs", "facts"]

"""The shares that a pool is seen by, and what is said of each."""


@click.group()
@click.pass_context
def pool(context: click.Context, /) -> None:
    """Make a pool, look at it, split it.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    context.ensure_object(Session).unbegun = ""


@pool.command(context_settings={"show_default": True})
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=_FILE)
@click.option("--out", required=True, type=_FILE, metavar="POOL", help="File of the pool: .jsonl, .jsonl.gz, .parquet.")
@click.option("--task", required=True, type=click.Choice(get_args(Task)), help="Task of all questions.")
@click.option("--questions", type=_FILE, metavar="FILE", help="Questions, gold answers, evidence.")
@click.option("--format", "layout", type=click.Choice(get_args(_Layout)), help="Layout.  [default: as recognised]")
@click.option("--by", type=click.Choice(get_args(_By)), help="What joins files.  [default: id where all have one]")
@click.option(
    "--evidence", type=click.Choice(get_args(_Evidence)), default="paragraphs", help="Evidence of HotpotQA's rows."
)
@click.option("--shuffle", type=int, metavar="SEED", help="Put the candidates of each question in a random order.")
@click.option("--unfinished", is_flag=True, help="Take logs of inspect that failed or were cancelled.")
def build(
    sources: tuple[Path, ...],
    out: Path,
    task: Task,
    questions: Path | None,
    layout: _Layout | None,
    by: _By | None,
    evidence: _Evidence,
    shuffle: int | None,
    unfinished: bool,
) -> None:
    """Make a pool of predictions, and say what it holds.

    SOURCE is a file of predictions (JSON lines or Parquet, with prediction), samples_*.jsonl of
    lm-evaluation-harness, or a JSON log of inspect. The candidates of a question stand in the order of the files.

    The questions are those of --questions, or of the first file: rows of GSM8K or HotpotQA as Hugging Face has them, or
    with question, gold and evidence.
    """
    from eldgr_dspy.programs.pools.building import Recipe, build_pool

    recipe = Recipe(sources, task, questions, layout, by, evidence, shuffle, unfinished)
    try:
        built = build_pool(recipe, out)
    except OSError as error:
        raise click.ClickException(f"{out} could not be written: {refusal(error)}") from error
    _show([built.pool], notes=built.lacking)
    for lacking in built.lacking:
        say(lacking)
    if built.left_out:
        say(f"Left out of {questions}, since no file has a prediction: {built.left_out:,}.")
    guessed = built.forms["last_number"] + built.forms["whole"]
    if guessed:
        said = "the last number" if task == "arithmetic" else "the whole text"
        counts = f"{guessed:,} of {built.forms.total():,}"
        say(f"Answers that are {said}, since no mark says which: {counts}.")
    say(f"Written to {out}, joined by {built.by}.")


@pool.command()
@click.argument("pools", nargs=-1, required=True, type=_FILE)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_POOL_CHECK_JSON",
    allow_from_autoenv=False,
    help="Print the figures as JSON.",
)
def check(pools: tuple[Path, ...], as_json: bool) -> None:
    """Read POOLS through, and say what they hold.

    What is wrong with a pool is named with file and line. Of several pools it says how many questions they share.
    """
    from eldgr_dspy.pools import open_pools

    _show(open_pools(pools), as_json=as_json)


@pool.command(context_settings={"show_default": True})
@click.argument("source", metavar="POOL", type=_FILE)
@click.option(
    "--confirm",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    default=0.4,
    help="Share of the questions for confirmation.",
)
@click.option("--seed", type=int, default=0, help="Which split.")
@click.option("--out-dev", required=True, type=_FILE, metavar="POOL", help="File of the part for development.")
@click.option("--out-confirm", required=True, type=_FILE, metavar="POOL", help="File of the part for confirmation.")
def split(source: Path, confirm: float, seed: int, out_dev: Path, out_confirm: Path) -> None:
    """Split POOL into a part for development and one for confirmation.

    The side of a question depends on its text and the seed alone: questions of the same text stay together, and pools
    of the same questions split alike. The share is met on average.
    """
    from eldgr_dspy.pools import open_pool
    from eldgr_dspy.splitting import split_pool

    try:
        parts = split_pool(open_pool(source), out_dev, out_confirm, share=confirm, seed=seed)
    except OSError as error:
        raise click.ClickException(f"The parts could not be written: {refusal(error)}") from error
    _show(parts)
    say(f"Written to {out_dev} for development and to {out_confirm} for confirmation.")


def _show(pools: "Sequence[Pool]", *, as_json: bool = False, notes: Sequence[str] = ()) -> None:
    """Print what pools hold, and how many questions each two of them share."""
    from eldgr_dspy.figures.contents import contents_of
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.tables.contents import contents_table

    found = [(pool, contents_of(pool)) for pool in pools]
    shared = [
        {"pools": [one.name, other.name], "questions": seen.shared(also)}
        for (one, seen), (other, also) in combinations(found, 2)
    ]
    value = {"pools": {pool.name: {"sha256": pool.sha256, **seen.figures()} for pool, seen in found}, "shared": shared}
    tables = [contents_table(pool.name, seen.figures()) for pool, seen in found]
    tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *map(_of_shared, shared), *notes))
    unprinted = print_tables(value, tables, as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The figures could not be printed: {refusal(unprinted)}")


def _of_shared(shared: Mapping[str, Any]) -> str:
    one, other = shared["pools"]
    n = shared["questions"]
    return f"{one} and {other} have {n:,} question{'' if n == 1 else 's'} in common."
