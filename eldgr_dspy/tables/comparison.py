"""The tables of runs beside one another: of one rule in several runs, and of two rules over several seeds."""

from collections.abc import Iterator

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, count_of, figure, interval, probability, questions, signed
from eldgr_dspy.comparisons.compared_runs import ComparedPool, Comparison
from eldgr_dspy.comparisons.seed_runs import Seeds
from eldgr_dspy.figures.results.audit_results import RoleSums
from eldgr_dspy.figures.results.summary import Paired
from eldgr_dspy.statistics import SeedVariance, mcnemar
from eldgr_dspy.tables.table import Table, difference, record, table_of

_CUSTOMARY = 0.05


def comparison_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield for each pool the scores of the runs, each against the first; then cost, and what else differs."""
    for name, pool in comparison["pools"].items():
        yield _scores(comparison["rule"], name, pool)
    yield _cost(comparison)
    yield _made_with(comparison)


def _scores(rule: str, name: str, pool: ComparedPool) -> Table:
    kind, rows, few = shown_type(pool["task"]), [], []
    for run, of in pool["runs"].items():
        scores, contrast = [figure(of["em"]), *([figure(of["f1"])] if kind.has_f1 else [])], of["contrast"]
        cells = [UNDEFINED] * 4
        if contrast is not None:
            cells = [
                difference(contrast),
                record(contrast),
                probability(contrast["p"]),
                probability(contrast["p_holm"]),
            ]
            if mcnemar(discordant := contrast["wins"] + contrast["losses"], 0) > _CUSTOMARY:
                few.append(f"{run} ({discordant})")
        rows.append((run, *scores, *cells, count_of(of["differ"])))
    scored = (f"{score} %" for score in kind.scores)
    headers = ("run", *scored, "Δ [95% CI]", "wins–losses", "exact p", "Holm p", "other answers")
    notes = [*pool["remarks"], "Δ is the row minus the first, in points. Holm p is over all rows. F1 is not tested."]
    if few:
        notes.append(f"With so few discordant questions no split is significant at {_CUSTOMARY}: {', '.join(few)}.")
    if not pool["n_scored"]:
        notes = [f"{UNDEFINED}: no question has a gold answer, so nothing is scored."]
    return Table(f"{name}: {rule}, {questions(pool['n'])}", headers, tuple(rows), tuple(notes))


def _cost(comparison: Comparison) -> Table:
    rows = {name: run["consultations"] for name, run in comparison["runs"].items()}
    fields = "ok abstained failed recorded calls prompt_tokens completion_tokens cost"
    unknown = any(value is None for of in rows.values() for value in of.values())
    note = f"{UNDEFINED}: a server did not report it, or the price of a model is not known."
    return table_of("what each run asked, in all", "run", RoleSums, fields, rows, [note] if unknown else [])


def _made_with(comparison: Comparison) -> Table:
    runs = comparison["runs"]
    roles = dict.fromkeys(role for run in runs.values() for role in run["models"])
    models = {name: {str(role): model for role, model in run["models"].items()} for name, run in runs.items()}
    rows = tuple((name, *(of.get(role, "not asked") for role in roles)) for name, of in models.items())
    notes = [f"{name}: {line}" for name, run in runs.items() for line in run["differences"]]
    notes = notes or ["The same settings and the same roles."]
    if any(run["consultations"]["recorded"] for run in runs.values()):
        notes.append("Recorded replies are not compared: a recording does not say what made it.")
    return Table("the model of each role, and what differs from the first run", ("run", *roles), rows, tuple(notes))


# -- seeds ------------------------------------------------------------------------------------------------------------


def seed_tables(seeds: Seeds) -> Iterator[Table]:
    """Yield the tables of `over_seeds`: the runs, the sources of the spread, and the contrast over questions."""
    rules, names = (seeds["rule"], seeds["against"]), shown_type(seeds["task"]).scores
    runs = [
        (
            run["run"],
            run["pool"],
            *map(figure, [*run["em"], *(run["f1"] or [])]),
            signed(run["delta"]),
            record(run),
        )
        for run in seeds["runs"]
    ]
    headers = ("run", "pool", *(f"{rule} {name} %" for name in names for rule in rules), "Δ", "wins–losses")
    title = f"{seeds['rule']} against {seeds['against']}, {len(runs)} seeds, {questions(seeds['n'])}"
    yield Table(title, headers, tuple(runs), tuple(seeds["remarks"]))
    spreads = [
        (f"{what}, {name}", figure(spread.mean), *_parts(spread))
        for name, of in zip(names, seeds["variance"].values(), strict=True)
        for what, spread in zip((*rules, " − ".join(rules)), (of["rule"], of["against"], of["difference"]), strict=True)
    ]
    headers = ("what", "mean", "95% CI", "standard error", "variance: seeds", "questions", "rest")
    note = "The interval is for another draw of both seeds and questions. A variance below 0 means that none was seen."
    yield Table("whose the spread is, in percentage points", headers, tuple(spreads), (note,))
    note = "A question counts once, with the mean of its seeds; the result is for these seeds only."
    contrast = seeds["contrast"]
    fields = "difference graded record p" if contrast["f1"] else "difference record p"
    notes, rows = (note, *contrast["notes"]), {" − ".join(rules): contrast}
    yield table_of("over questions, these seeds", "contrast", Paired, fields, rows, notes)


def _parts(spread: SeedVariance) -> tuple[str, ...]:
    return interval(spread.interval), *map(figure, (spread.standard_error, spread.seeds, spread.questions, spread.rest))
