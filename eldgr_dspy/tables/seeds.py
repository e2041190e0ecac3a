"""The tables of several seeds: the runs, the sources of the spread, and the contrast over questions."""

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.comparisons.seed_runs import Score, Seeds
from eldgr_dspy.formatting import figure, interval, probability, questions, signed
from eldgr_dspy.statistics import SeedVariance
from eldgr_dspy.tables.table import Table, difference, record


def seed_tables(seeds: Seeds) -> list[Table]:
    """Return the tables of `over_seeds`: the runs, the sources of the spread, and the contrast over questions."""
    return [_runs(seeds), _spread(seeds), _over_questions(seeds)]


def _score_names(seeds: Seeds) -> dict[Score, str]:
    keys: tuple[Score, ...] = ("em", "f1")
    return dict(zip(keys, shown_type(seeds["task"]).scores, strict=False))


def _runs(seeds: Seeds) -> Table:
    names, rules = _score_names(seeds), (seeds["rule"], seeds["against"])
    rows = [
        (
            run["run"],
            run["pool"],
            *(figure(mean) for score in names for mean in run[score] or ()),
            signed(run["delta"]),
            record(run),
        )
        for run in seeds["runs"]
    ]
    headers = ("run", "pool", *(f"{rule} {name} %" for name in names.values() for rule in rules), "Δ", "wins–losses")
    title = f"{seeds['rule']} against {seeds['against']}, {len(rows)} seeds, {questions(seeds['n'])}"
    return Table(title, headers, tuple(rows), tuple(seeds["remarks"]))


def _spread(seeds: Seeds) -> Table:
    rule, against, rows = seeds["rule"], seeds["against"], []
    for score, name in _score_names(seeds).items():
        spreads = seeds["variance"][score]
        if spreads is not None:
            difference = spreads["difference"]
            rows.append((f"{rule}, {name}", figure(spreads["rule"].mean), *_parts(spreads["rule"])))
            rows.append((f"{against}, {name}", figure(spreads["against"].mean), *_parts(spreads["against"])))
            rows.append((f"{rule} − {against}, {name}", signed(difference.mean), *_parts(difference)))
    headers = ("what", "mean", "95% CI", "standard error", "variance: seeds", "questions", "rest")
    note = "The interval is for another draw of both seeds and questions. A variance below 0 means that none was seen."
    return Table("whose the spread is, in percentage points", headers, tuple(rows), (note,))


def _parts(spread: SeedVariance) -> tuple[str, ...]:
    return interval(spread.interval), *map(figure, (spread.standard_error, spread.seeds, spread.questions, spread.rest))


def _over_questions(seeds: Seeds) -> Table:
    contrast, named = seeds["contrast"], f"{seeds['rule']} − {seeds['against']}"
    name, f1 = _score_names(seeds)["em"], contrast["f1"]
    rows = [
        (
            f"{named}, {name}",
            difference(contrast),
            interval(contrast["bca"]),
            probability(contrast["p"]),
            record(contrast),
        )
    ]
    if f1 is not None:
        rows.append((f"{named}, F1", difference(f1), interval(f1["bca"]), "", ""))
    headers = ("contrast", "Δ [95% CI]", "BCa 95% CI", "exact p", "wins–losses")
    note = "A question counts once, with the mean of its seeds; the result is for these seeds only."
    return Table("over questions, these seeds", headers, tuple(rows), (note, *contrast["notes"]))
