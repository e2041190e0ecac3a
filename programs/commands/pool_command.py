"""`eldgr pool`: build a pool from predictions, check pools, split one in two, join runs on parts, make pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import FILE, AnswerName, answer_option, choice, own_options
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write, writing
from eldgr_dspy.programs.commands.pairs_command import pairs

if TYPE_CHECKING:
    from eldgr_dspy.pools import Pool

_Layout = Literal["predictions", "lm-eval", "inspect"]
_By = Literal["id", "question"]
_Evidence = Literal["paragraphs", "facts"]
_FIELDS = ("id", "question", "gold", "evidence", "prediction", "answer", "source", "confidence", "tags")


def _columns(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the names of columns by field, from texts such as `prediction=output`."""
    columns: dict[str, list[str]] = {}
    for text in texts:
        field, _, name = text.partition("=")
        if field not in _FIELDS or not name.strip():
            raise click.BadParameter(f"{text!r} must be FIELD=NAME, with a FIELD of {', '.join(_FIELDS)}.")
        columns.setdefault(field, []).append(name.strip())
    return columns


@click.group()
@click.pass_context
def pool(context: click.Context, /) -> None:
    """Build, check, split and join pools; write preference pairs."""
    context.ensure_object(Session).unbegun = ""


@pool.command(context_settings={"show_default": True})
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=FILE)
@click.option("--out", required=True, type=FILE, metavar="POOL", help="File to write: .jsonl, .jsonl.gz or .parquet.")
@click.option(
    "--answer", required=True, type=AnswerName(), help="Answer type of the questions; MODULE:NAME names your own."
)
@click.option("--questions", type=FILE, metavar="FILE", help="File with questions, gold answers and evidence.")
@click.option("--layout", type=choice(_Layout), help="Layout of SOURCE.  [default: detected]")
@click.option(
    "--column",
    multiple=True,
    metavar="FIELD=NAME",
    callback=_columns,
    help="Column of a CSV or TSV file: prediction=output.",
)
@click.option("--by", type=choice(_By), help="Match questions by this.  [default: id if all have one]")
@click.option(
    "--evidence-from",
    "evidence",
    type=choice(_Evidence),
    default="paragraphs",
    help="Passages to take from HotpotQA's rows.",
)
@click.option("--shuffle", type=int, metavar="SEED", help="Shuffle the candidates of each question.")
@click.option("--unfinished", is_flag=True, help="Accept Inspect logs that failed or were cancelled.")
def build(
    sources: tuple[Path, ...], out: Path, answer: str, questions: Path | None, column: Any, **options: Any
) -> None:
    """Build a pool from predictions.

    SOURCE is a file of predictions (JSON Lines or Parquet, with the field prediction), a CSV or TSV file, a
    samples_*.jsonl of lm-evaluation-harness, or a log of Inspect (.eval or JSON). The candidates of a question are in
    the order of the files.

    A CSV or TSV file has one row per sample, or one row per question and a column per sample. --column, which can be
    repeated, names its columns: id, question, gold, evidence, prediction, answer (stated by a sample), source,
    confidence and tags.

    Questions come from --questions, or from the first file: rows of GSM8K or HotpotQA as on Hugging Face, or rows with
    question, gold and evidence.
    """
    from eldgr_dspy.answer_types import answer_type
    from eldgr_dspy.programs.pools.building import Recipe, build_pool

    task = answer_type(answer).name_in_files
    with writing(out):
        built = build_pool(Recipe(sources, task, questions, columns=column, **options), out)
    _show([built.pool], notes=built.lacking)
    for lacking in built.lacking:
        say(lacking)
    forms = built.forms
    guess = "the last number" if forms["last_number"] else "the whole text"
    guesses = forms["last_number"] + forms["whole"]
    for what, count, of in (
        (f"Left out of {questions}, because no file has a prediction", built.left_out, ""),
        (f"Answers guessed as {guess}, because nothing marks the answer", guesses, f" of {forms.total():,}"),
        ("Samples without an answer, because they stopped at their limit before they marked one", built.cut, ""),
    ):
        if count:
            say(f"{what}: {count:,}{of}.")
    say(f"Written to {out}, matched by {built.by}.")


@pool.command()
@click.argument("pools", nargs=-1, required=True, type=FILE)
@answer_option
@form_options()
@out_option()
def check(pools: tuple[Path, ...], answer: str | None, form: Form, out: Path | None) -> None:
    """Check pools and describe their content.

    An error names the file and the line. With several POOLS, it also counts the questions that they share.
    """
    from eldgr_dspy.answer_types import answer_type
    from eldgr_dspy.pools import open_pools

    _show(open_pools(pools, None if answer is None else answer_type(answer)), form=form, out=out)


@pool.command(context_settings={"show_default": True})
@click.argument("source", metavar="POOL", type=FILE)
@click.option(
    "--confirm",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    default=0.4,
    help="Share of questions for confirmation.",
)
@click.option("--seed", type=int, default=0, help="Seed of the split.")
@click.option("--out-dev", required=True, type=FILE, metavar="POOL", help="File to write: part for development.")
@click.option("--out-confirm", required=True, type=FILE, metavar="POOL", help="File to write: part for confirmation.")
def split(source: Path, confirm: float, seed: int, out_dev: Path, out_confirm: Path) -> None:
    """Split a pool for development and confirmation.

    The part of a question depends only on its text and the seed. Questions with the same text stay together, and pools
    with the same questions split alike. The share is met on average.
    """
    from eldgr_dspy.pools import open_pool
    from eldgr_dspy.splitting import split_pool

    with writing("The parts"):
        parts = split_pool(open_pool(source), out_dev, out_confirm, share=confirm, seed=seed)
    _show(parts)
    say(f"Written to {out_dev} for development and to {out_confirm} for confirmation.")


@pool.command()
@click.argument("whole", metavar="POOL", type=FILE)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=FILE)
@click.option("--part", "parts", multiple=True, type=FILE, metavar="FILE", help="A part that has moved; repeatable.")
@own_options
@click.option("--out", required=True, type=FILE, metavar="DIRECTORY", help="Run directory to write; a new one.")
def join(whole: Path, runs: tuple[Path, ...], parts: tuple[Path, ...], own: dict[str, Any], out: Path) -> None:
    """Join runs on parts of a pool into one run.

    Each RUN is the directory of a run on a part of POOL. Their journals become one; no LM is asked. Then give eldgr
    evaluate POOL with the options of the parts and this --out: it asks only what no part has asked.
    """
    from eldgr_dspy.programs.run.joining import join as join_runs

    with writing("The run"):
        join_runs(whole, runs, out, parts, **own)
    say(f"The journal is in {out}. To finish, with the options of the parts: eldgr evaluate {whole} --out {out}")


pool.add_command(pairs)


def _show(pools: "Sequence[Pool]", *, form: Form = "text", out: Path | None = None, notes: Sequence[str] = ()) -> None:
    """Print the content of pools, and how many questions each two of them share."""
    import numpy as np

    from eldgr_dspy.figures.contents import contents_of
    from eldgr_dspy.tables.plan_tables import contents_table

    contents = [(pool, *contents_of(pool.task, pool.rows())) for pool in pools]
    shared = [
        {"pools": [first.name, second.name], "questions": len(np.intersect1d(questions, others))}
        for (first, _, questions), (second, _, others) in combinations(contents, 2)
    ]
    value = {"pools": {pool.name: {"sha256": pool.sha256, **of} for pool, of, _ in contents}, "shared": shared}
    tables = [contents_table(pool.name, of) for pool, of, _ in contents]
    tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *map(_of_shared, shared), *notes))
    write(value, tables, form, out)


def _of_shared(shared: Mapping[str, Any]) -> str:
    first, second = shared["pools"]
    n = shared["questions"]
    return f"{first} and {second} have {n:,} question{'' if n == 1 else 's'} in common."
