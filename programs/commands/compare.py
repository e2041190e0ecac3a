"""`eldgr compare`: a rule in one run against the same rule in another, on the same questions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from eldgr_dspy.programs.commands.saying import say
from eldgr_dspy.system import refusal


@click.command(context_settings={"show_default": True})
@click.argument("run_a", type=click.Path(path_type=Path))
@click.argument("run_b", type=click.Path(path_type=Path))
@click.option("--rule", metavar="NAME", default="eldgr", help="Rule to compare.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    metavar="POINTS",
    help="Test too whether the runs are as good as each other up to so many percentage points.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    envvar="ELDGR_COMPARE_JSON",
    allow_from_autoenv=False,
    help="Print the figures as JSON.",
)
def compare(run_a: Path, run_b: Path, rule: str, margin: float | None, as_json: bool) -> None:
    """Set a rule's decisions in the directory RUN_A against those in RUN_B, question by question.

    Both runs have to be finished, on pools of the same content and on the same questions. Differences are RUN_A minus
    RUN_B. A margin is to be chosen before looking. No LM is asked and nothing is written.

    Exit codes: 0 done, 1 bad input or output, 2 wrong usage.
    """
    from eldgr_dspy.figures.finished import read_run
    from eldgr_dspy.programs.commands.console import print_tables
    from eldgr_dspy.programs.run.comparing import compare_runs

    runs = read_run(run_a), read_run(run_b)
    found = compare_runs(*runs, rule, margin)
    for told in dict.fromkeys(run.made_by_others for run in runs):
        if told:
            say(f"Note: {told}")
    unprinted = print_tables(found, _tables(found), as_json=as_json)
    if unprinted:
        raise click.ClickException(f"The comparison could not be printed: {refusal(unprinted)}")


def _tables(found: Mapping[str, Any]) -> Iterator[Any]:
    for name, pool in found["pools"].items():
        yield _pool(found, name, pool)
    contrasts = {name: pool["contrast"] for name, pool in found["pools"].items() if pool["contrast"]}
    if contrasts:
        yield _intervals(contrasts)
        tested = {name: one["equivalence"] for name, one in contrasts.items() if one.get("equivalence")}
        if tested:
            yield _equivalence(tested)
    yield _cost(found)
    yield _made_with(found)


def _pool(found: Mapping[str, Any], name: str, pool: Mapping[str, Any]) -> Any:
    from eldgr_dspy.report.tables import (
        UNDEFINED,
        Table,
        difference,
        figure,
        per_question,
        probability,
        questions,
        record,
    )

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
    from eldgr_dspy.report.tables import UNDEFINED, questions

    if not pool["n_scored"]:
        yield f"{UNDEFINED}: no question has a gold answer, so nothing is scored."
    elif pool["n_scored"] < pool["n"]:
        yield f"Scores are over the {questions(pool['n_scored'])} with a gold answer, of {pool['n']:,}."
    yield f"Another answer ships on {questions(pool['differ'])}."
    distinct = (pool["contrast"] or {"n_distinct": pool["n_scored"]})["n_distinct"]
    if distinct < pool["n_scored"]:
        yield (
            f"{questions(pool['n_scored'])} have {distinct:,} different texts: one that stands several times counts "
            "once in Δ and p, with the mean of its outcomes, and is not tested for equivalence."
        )
    yield from (pool["contrast"] or {}).get("notes", ())


def _intervals(contrasts: Mapping[str, Any]) -> Any:
    """Both intervals of each score, and p among the pools."""
    from eldgr_dspy.report.tables import Table, difference, interval, probability

    rows = []
    for name, one in contrasts.items():
        score = "EM" if one["f1"] else "accuracy"
        adjusted = probability(one["p"]), probability(one["p_holm"])
        rows.append((name, score, difference(one), interval(one["bca"]), *adjusted))
        if one["f1"]:
            rows.append((name, "F1", difference(one["f1"]), interval(one["f1"]["bca"]), "", ""))
    headers = ("pool", "score", "Δ [95% CI]", "BCa 95% CI", "exact p", "Holm p")
    note = (
        f"Holm p is over {'this pool' if len(contrasts) == 1 else f'these {len(contrasts)} pools'}. F1 is not tested."
    )
    return Table("RUN_A − RUN_B, percentage points", headers, tuple(rows), (note,))


def _equivalence(found: Mapping[str, Any]) -> Any:
    from eldgr_dspy.report.tables import Table, figure, interval, probability, signed

    rows = [
        (
            name,
            signed(one["delta"]),
            interval(one["interval"]),
            probability(one["p"]),
            "yes" if one["equivalent"] else "not shown",
            probability(one["p_below"]),
        )
        for name, one in found.items()
    ]
    margin = figure(next(iter(found.values()))["margin"])
    headers = ("pool", "Δ", "90% CI", "TOST p", "equivalent at .05", "p, A not worse")
    note = (
        f"Equivalent: the 90% interval lies within ±{margin}. p, A not worse: of RUN_A being worse by {margin} or more."
    )
    return Table(f"equivalence of right and wrong within ±{margin} points", headers, tuple(rows), (note,))


def _cost(found: Mapping[str, Any]) -> Any:
    from eldgr_dspy.report.tables import UNDEFINED, Table, figure

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
    from eldgr_dspy.report.tables import Table

    rows = tuple((role, *(model or "not asked" for model in models)) for role, models in found["models"].items())
    notes = tuple(found["differences"]) or ("The same settings and the same roles.",)
    if any(asked["recorded"] for asked in found["consultations"]):
        notes += ("What was recorded is not compared: a recording does not say what made it.",)
    return Table("the model of each role, and what differs (RUN_A -> RUN_B)", ("role", *found["runs"]), rows, notes)
