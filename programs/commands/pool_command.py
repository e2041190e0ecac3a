"""`eldgr pool`: build a pool from predictions, check pools, split one in two, join runs on parts, make pairs."""

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from eldgr_dspy.programs.commands import Session
from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import (
    FILE,
    FROM_1,
    SHARE,
    AnswerName,
    answer_option,
    certificate_option,
    own_options,
    set_option,
)
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, write, writing

if TYPE_CHECKING:
    from eldgr_dspy.pools import Pool
    from eldgr_dspy.programs.pools.preference_pairs import PairCounts
    from eldgr_dspy.tables.table import Table

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
    context.ensure_object(Session).before_open = ""


@pool.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=FILE)
@click.option("--out", required=True, type=FILE, metavar="POOL", help="File to write: .jsonl, .jsonl.gz or .parquet.")
@click.option(
    "--answer", required=True, type=AnswerName(), help="Answer type of the questions; MODULE:NAME names your own."
)
@click.option("--questions", type=FILE, metavar="FILE", help="File with questions, gold answers and evidence.")
@click.option(
    "--layout", type=click.Choice(["predictions", "lm-eval", "inspect"]), help="Layout of SOURCE.  [default: detected]"
)
@click.option(
    "--column",
    multiple=True,
    metavar="FIELD=NAME",
    callback=_columns,
    help="Column of a CSV or TSV file: prediction=output.",
)
@click.option(
    "--by", type=click.Choice(["id", "question"]), help="Match questions by this.  [default: id if all have one]"
)
@click.option(
    "--evidence-from",
    "evidence",
    type=click.Choice(["paragraphs", "facts"]),
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
        result = build_pool(Recipe(sources, task, questions, columns=column, **options), out)
    _show([result.pool])
    for lacking in result.lacking:
        say(lacking)
    forms = result.forms
    guess = "the last number" if forms["last_number"] else "the whole text"
    guesses = forms["last_number"] + forms["whole"]
    for what, count, of in (
        (f"Left out of {questions}, because no file has a prediction", result.left_out, ""),
        (f"Answers guessed as {guess}, because nothing marks the answer", guesses, f" of {forms.total():,}"),
        ("Samples without an answer, because they stopped at their limit before they marked one", result.cut, ""),
    ):
        if count:
            say(f"{what}: {count:,}{of}.")
    say(f"Written to {out}, matched by {result.by}.")


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


@pool.command()
@click.argument("source", metavar="POOL", type=FILE)
@click.option("--confirm", type=SHARE, metavar="SHARE", default=0.4, help="Share of questions for confirmation.")
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


@pool.command()
@click.argument("source", metavar="POOL", type=FILE)
@click.option("--out", required=True, type=FILE, metavar="FILE", help="File to write: .jsonl, .jsonl.gz or .parquet.")
@click.option(
    "--layout",
    type=click.Choice(["dpo", "kto"]),
    default="dpo",
    help="Rows with chosen and rejected, or with completion and label.",
)
@click.option("--most", type=FROM_1, default=1, metavar="N", help="Write at most N pairs a question.")
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
        raise click.UsageError("--gold and --certificate contradict each other. Give one of them.")
    rule_settings = Settings(**options)
    (pool,) = open_pools([source], rule_settings.type)
    with writing(out):
        counts = write_pairs(pool, out, rule_settings, pairing)
    value = {"pool": pool.name, "sha256": pool.sha256, "layout": pairing.layout, **counts.figures()}
    write(value, [_pair_table(pool.name, pool.n, counts, gold=pairing.gold)], form, None, "The counts")
    say(f"Written to {out}.")


def _pair_table(name: str, n: int, counts: "PairCounts", *, gold: bool) -> "Table":
    from eldgr_dspy.base.formatting import questions
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
        without_gold = f"{counts.pairs - counts.checked:,} of {counts.pairs:,}"
        notes.append(f"Pairs without a gold answer, so that right and wrong are not checked: {without_gold}.")
    return Table(f"{name}: pairs of {questions(n)}", ("questions", "count"), rows, tuple(notes))


def _show(pools: "Sequence[Pool]", *, form: Form = "text", out: Path | None = None) -> None:
    """Print the content of pools, and how many questions each two of them share."""
    import numpy as np

    from eldgr_dspy.base.formatting import questions
    from eldgr_dspy.figures.contents import contents_of
    from eldgr_dspy.tables.plan_tables import contents_table

    contents = [(pool, *contents_of(pool.task, pool.rows())) for pool in pools]
    overlaps: list[dict[str, Any]] = [
        {"pools": [first.name, second.name], "questions": len(np.intersect1d(hashes, others))}
        for (first, _, hashes), (second, _, others) in combinations(contents, 2)
    ]
    common = [f"{' and '.join(one['pools'])} have {questions(one['questions'])} in common." for one in overlaps]
    value = {"pools": {pool.name: {"sha256": pool.sha256, **of} for pool, of, _ in contents}, "shared": overlaps}
    tables = [contents_table(pool.name, of) for pool, of, _ in contents]
    tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *common))
    write(value, tables, form, out)
