"""`eldgr compare`: a rule in one run against the same rule in another, on the same questions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click


@click.command(context_settings={"show_default": True})
@click.argument("run_a", type=click.Path(path_type=Path))
@click.argument("run_b", type=click.Path(path_type=Path))
@click.option("--rule", metavar="NAME", default="eldgr", help="Rule to compare.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_COMPARE_JSON",
    allow_from_autoenv=False,
    help="Print the figures as JSON.",
)
def compare(run_a: Path, run_b: Path, rule: str, as_json: bool) -> None:
    """Set a rule's decisions in the directory RUN_A against those in RUN_B, question by question.

    Both runs have to be finished, on pools of the same content and on the same questions. Differences are RUN_A minus
    RUN_B. No LM is asked and nothing is written.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.finished import read_run
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.programs.run.comparing import compare_runs

    found = compare_runs(read_run(run_a), read_run(run_b), rule)
    unprinted = print_tables(found, _tables(found), as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The comparison could not be printed: {unprinted}.")


def _tables(found: Mapping[str, Any]) -> Iterator[Any]:
    for name, pool in found["pools"].items():
        yield _pool(found, name, pool)
    yield _cost(found)
    yield _made_with(found)


def _pool(found: Mapping[str, Any], name: str, pool: Mapping[str, Any]) -> Any:
    from eldgr_dspy.tables import UNDEFINED, Table, difference, figure, per_question, probability, questions, record

    scores = {"EM %": "em", "F1 %": "f1"} if pool["task"] == "retrieval" else {"accuracy %": "em"}
    contrast = pool["contrast"]
    cells = (UNDEFINED,) * 3
    if contrast:
        cells = (difference(contrast), probability(contrast["p"]), record(contrast))
    rows = [
        (
            run,
            *(figure(one[score]) for score in scores.values()),
            *(cells if number == 0 else ("", "", "")),
            per_question(one["calls"], pool["n"]),
        )
        for number, (run, one) in enumerate(zip(found["runs"], pool["figures"], strict=True))
    ]
    headers = ("run", *scores, "Δ [95% CI]", "exact p", "wins–losses", "LM calls / question")
    title = f"{name}: {found['rule']}, {questions(pool['n'])}"
    return Table(title, headers, tuple(rows), tuple(_notes(pool)))


def _notes(pool: Mapping[str, Any]) -> Iterator[str]:
    from eldgr_dspy.tables import UNDEFINED, questions

    if not pool["n_scored"]:
        yield f"{UNDEFINED}: no question has a gold answer, so nothing is scored."
    elif pool["n_scored"] < pool["n"]:
        yield f"Scores are over the {questions(pool['n_scored'])} that have a gold answer, of {pool['n']:,}."
    yield f"Another answer ships on {questions(pool['differ'])}."
    yield from (pool["contrast"] or {}).get("notes", ())


def _cost(found: Mapping[str, Any]) -> Any:
    from eldgr_dspy.tables import UNDEFINED, Table, figure

    counts = ("ok", "abstained", "failed", "recorded", "calls", "prompt_tokens", "completion_tokens")
    rows = tuple(
        (run, *(UNDEFINED if asked[name] is None else f"{asked[name]:,}" for name in counts), figure(asked["cost"], 4))
        for run, asked in zip(found["runs"], found["consultations"], strict=True)
    )
    headers = ("run", "answered", "abstained", "failed", "recorded", "LM calls", "tokens in", "tokens out", "$")
    unknown = any(UNDEFINED in row for row in rows)
    note = f"{UNDEFINED}: a server did not report it, or the price of a model is not known."
    return Table("what each run asked, in all", headers, rows, (note,) if unknown else ())


def _made_with(found: Mapping[str, Any]) -> Any:
    from eldgr_dspy.tables import Table

    rows = tuple((role, *(model or "not asked" for model in models)) for role, models in found["models"].items())
    notes = tuple(found["differences"]) or ("The same settings and the same roles.",)
    if any(asked["recorded"] for asked in found["consultations"]):
        notes += ("What was recorded is not compared: a recording does not say what made it.",)
    return Table("the model of each role, and what differs (RUN_A -> RUN_B)", ("role", *found["runs"]), rows, notes)
