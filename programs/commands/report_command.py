"""`eldgr report`, `show`, `export` and `compare`: the tables, a question and the decisions of finished runs."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click

from eldgr_dspy.programs.commands.messages import say
from eldgr_dspy.programs.commands.options import OUT, names_in, own_options, pools_argument, rules_option, run_argument
from eldgr_dspy.programs.commands.output import Form, form_options, out_option, require_no_input, run_of, write, writing

FORMATS = (*get_args(Form), "html")


@click.command()
@run_argument
@pools_argument
@form_options(*FORMATS)
@out_option("standard output; for html, report.html in RUN")
@click.option("--pages", is_flag=True, help="Write questions.html also beyond 20,000 questions.")
@own_options
@click.option("--mlflow", is_flag=True, help="Also log results, settings and files to MLflow.")
def report(
    run: Path, pools: tuple[Path, ...], form: str, out: Path | None, pages: bool, mlflow: bool, own: dict[str, Any]
) -> None:
    """Print all tables of a run, or write its HTML pages.

    RUN is the directory of a finished run. The tables need nothing else: no LM and no pool. --format html writes the
    report and the page of questions again. That page needs the run's pools; give POOLS if they have moved. Beyond
    20,000 questions it is written only with --pages.
    """
    for what, which, value in (("POOLS are", "them", pools), ("--pages is", "it", pages)):
        if value and form != "html":
            raise click.UsageError(f"{what} only for --format html; got --format {form}. Leave {which} out.")
    results = run_of(run, **own)
    summary = results.summary()
    if form == "html":
        from eldgr_dspy.programs.run.results import questions_beside, write_pages

        path = out or run / "report.html"
        require_no_input(path, [results], "report.html")
        with writing("The report"):
            lacking = write_pages(results, summary, path, pools, pages=pages)
        if lacking is None:
            say(f"Written to {path} and {questions_beside(path)}.")
        else:
            say(f"Written to {path}.\nNote: the page of questions was not written: {lacking}")
    else:
        from eldgr_dspy.tables.run import tables_of

        write(summary, tables_of(summary), form, out, "The report", [results])
    if mlflow:
        from eldgr_dspy.programs.run.mlflow_tracking import log_to_mlflow

        say(f"Logged to MLflow as run {log_to_mlflow(results, summary)}.")


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
    from eldgr_dspy.programs.run.results import question_of
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
    write(value, question_tables(question), form, out, "The question", [results])


@click.command()
@run_argument
@click.option("--out", required=True, type=OUT, help="File to write: .csv or .parquet.")
def export(run: Path, out: Path) -> None:
    """Write the decisions as a CSV or Parquet file.

    RUN is the directory of a finished run. The file has one row per question and rule. In CSV, a text that a
    spreadsheet would run as a formula gets a ' in front.
    """
    from eldgr_dspy.figures.export import export as write_decisions

    results = run_of(run)
    require_no_input(out, [results])
    with writing("The decisions"):
        n = write_decisions(results.decisions(results.summary()), out)
    say(f"Written to {out}: {n:,} decisions.")


@click.command()
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

    by_name = named_runs(runs)
    reads = [one.run for one in by_name.values()]
    for note in dict.fromkeys(run.made_by_others for run in reads):
        if note:
            say(f"Note: {note}")
    if seeds:
        spread = over_seeds(by_name, rule=rule, against=seeds)
        write(spread, seed_tables(spread), form, out, "The comparison", reads)
    else:
        comparison = compare_runs(by_name, rule=rule)
        write(comparison, comparison_tables(comparison), form, out, "The comparison", reads)
