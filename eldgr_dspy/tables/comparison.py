"""The tables of runs beside one another: of one rule in several runs, and of two rules over several seeds."""

from collections.abc import Callable, Iterator
from typing import Any

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, count_of, figure, interval, questions
from eldgr_dspy.comparisons.compared_runs import ComparedPool, Comparison, Seeds
from eldgr_dspy.figures.results.audit_fields import RoleSums
from eldgr_dspy.figures.results.summary_fields import Adjusted, Paired
from eldgr_dspy.rule.named_judges import in_order
from eldgr_dspy.statistics import mcnemar
from eldgr_dspy.tables.table import NO_REPORT, Columns, Table, columns_of, field, part, score_columns, table_of

_CUSTOMARY = 0.05


def comparison_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield for each pool the scores of the runs, each against the first; then cost, and what else differs."""
    for name, pool in comparison["pools"].items():
        yield _scores(comparison["rule"], name, pool)
    sums = {name: run["consultations"] for name, run in comparison["runs"].items()}
    columns = columns_of(RoleSums, "ok abstained failed recorded calls prompt_tokens completion_tokens cost")
    yield table_of("what each run asked, in all", "run", columns, sums, undefined=NO_REPORT)
    yield _made_with(comparison)


def _scores(rule: str, name: str, pool: ComparedPool) -> Table:
    def of_contrast(show: Callable[[Any], str]) -> Callable[[Any], str]:
        return lambda run: show(run["contrast"]) if run["contrast"] else UNDEFINED

    columns: Columns = {
        **score_columns(pool["task"]),
        **{heading: of_contrast(show) for heading, show in columns_of(Adjusted, "difference record p p_holm").items()},
        "other answers": lambda run: count_of(run["differ"]),
    }
    notes = [*pool["remarks"], "Δ is the row minus the first, in points. Holm p is over all rows. F1 is not tested."]
    contrasts = {run: contrast for run, of in pool["runs"].items() if (contrast := of["contrast"])}
    discordant = {run: contrast["wins"] + contrast["losses"] for run, contrast in contrasts.items()}
    if few := [f"{run} ({n})" for run, n in discordant.items() if mcnemar(n, 0) > _CUSTOMARY]:
        notes.append(f"With so few discordant questions no split is significant at {_CUSTOMARY}: {', '.join(few)}.")
    if not pool["n_scored"]:
        notes = [f"{UNDEFINED}: no question has a gold answer, so nothing is scored."]
    return table_of(f"{name}: {rule}, {questions(pool['n'])}", "run", columns, pool["runs"], notes)


def _made_with(comparison: Comparison) -> Table:
    runs = comparison["runs"]
    roles = in_order({role for run in runs.values() for role in run["models"]})
    models = {name: {role: run["models"].get(role, "not asked") for role in roles} for name, run in runs.items()}
    notes = [f"{name}: {line}" for name, run in runs.items() for line in run["differences"]]
    notes = notes or ["The same settings and the same roles."]
    if any(run["consultations"]["recorded"] for run in runs.values()):
        notes.append("Recorded replies are not compared: a recording does not say what made it.")
    title = "the model of each role, and what differs from the first run"
    return table_of(title, "run", {role: field(role) for role in roles}, models, notes)


def seed_tables(seeds: Seeds) -> Iterator[Table]:
    """Yield the tables of `over_seeds`: the runs, whose the spread is, and the contrast over questions."""
    rules, names = (seeds["rule"], seeds["against"]), shown_type(seeds["task"]).scores
    columns: Columns = {
        "pool": lambda run: run["pool"],
        **{
            f"{rule} {name} %": part(score, side)
            for name, score in zip(names, seeds["variance"], strict=True)
            for side, rule in enumerate(rules)
        },
        **columns_of(Paired, "delta record"),
    }
    title = f"{seeds['rule']} against {seeds['against']}, {len(seeds['runs'])} seeds, {questions(seeds['n'])}"
    yield table_of(title, "run", columns, ((run["name"], run) for run in seeds["runs"]), seeds["remarks"])
    spreads = {
        f"{what}, {name}": spread
        for name, of in zip(names, seeds["variance"].values(), strict=True)
        for what, spread in zip((*rules, " − ".join(rules)), (of["rule"], of["against"], of["difference"]), strict=True)
    }
    columns = {
        "mean": lambda spread: figure(spread.mean),
        "95% CI": lambda spread: interval(spread.interval),
        "standard error": lambda spread: figure(spread.standard_error),
        "variance: seeds": lambda spread: figure(spread.seeds),
        "questions": lambda spread: figure(spread.questions),
        "rest": lambda spread: figure(spread.rest),
    }
    note = "The interval is for another draw of both seeds and questions. A variance below 0 means that none was seen."
    yield table_of("whose the spread is, in percentage points", "what", columns, spreads, [note])
    contrast = seeds["contrast"]
    columns = columns_of(Paired, "difference graded record p" if contrast["f1"] else "difference record p")
    notes = ["A question counts once, with the mean of its seeds; the result is for these seeds only."]
    rows = {" − ".join(rules): contrast}
    yield table_of("over questions, these seeds", "contrast", columns, rows, [*notes, *contrast["notes"]])
