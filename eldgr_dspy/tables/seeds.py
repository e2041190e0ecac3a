"""The tables of several seeds: the runs, the sources of the spread, and the contrast over questions."""

from eldgr_dspy.comparisons.seed_runs import Score, Seeds
from eldgr_dspy.formatting import figure, interval, probability, questions, signed
from eldgr_dspy.statistics import SeedVariance
from eldgr_dspy.tables.table import Table, difference, record


def seed_tables(found: Seeds) -> list[Table]:
    """Return the tables of `over_seeds`: the runs, the sources of the spread, and the contrast over questions."""
    return [_runs(found), _spread(found), _over_questions(found)]


def _score_names(found: Seeds) -> dict[Score, str]:
    return {"em": "EM", "f1": "F1"} if found["task"] == "retrieval" else {"em": "accuracy"}


def _runs(found: Seeds) -> Table:
    names, rules = _score_names(found), (found["rule"], found["against"])
    rows = [
        (
            one["run"],
            one["pool"],
            *(figure(mean) for score in names for mean in one[score] or ()),
            signed(one["delta"]),
            record(one),
        )
        for one in found["runs"]
    ]
    headers = ("run", "pool", *(f"{rule} {name} %" for name in names.values() for rule in rules), "Δ", "wins–losses")
    title = f"{found['rule']} against {found['against']}, {len(rows)} seeds, {questions(found['n'])}"
    return Table(title, headers, tuple(rows), tuple(found["remarks"]))


def _spread(found: Seeds) -> Table:
    rule, against, rows = found["rule"], found["against"], []
    for score, name in _score_names(found).items():
        spreads = found["variance"][score]
        if spreads is not None:
            difference = spreads["difference"]
            rows.append((f"{rule}, {name}", figure(spreads["rule"].mean), *_parts(spreads["rule"])))
            rows.append((f"{against}, {name}", figure(spreads["against"].mean), *_parts(spreads["against"])))
            rows.append((f"{rule} − {against}, {name}", signed(difference.mean), *_parts(difference)))
    headers = ("what", "mean", "95% CI", "standard error", "variance: seeds", "questions", "rest")
    note = "The interval is for another draw of both seeds and questions. A variance below 0 means that none was seen."
    return Table("whose the spread is, in percentage points", headers, tuple(rows), (note,))


def _parts(one: SeedVariance) -> tuple[str, ...]:
    return interval(one.interval), *map(figure, (one.standard_error, one.seeds, one.questions, one.rest))


def _over_questions(found: Seeds) -> Table:
    one, named = found["contrast"], f"{found['rule']} − {found['against']}"
    name, f1 = _score_names(found)["em"], one["f1"]
    rows = [(f"{named}, {name}", difference(one), interval(one["bca"]), probability(one["p"]), record(one))]
    if f1 is not None:
        rows.append((f"{named}, F1", difference(f1), interval(f1["bca"]), "", ""))
    headers = ("contrast", "Δ [95% CI]", "BCa 95% CI", "exact p", "wins–losses")
    note = "A question counts once, with the mean of its seeds; the result is for these seeds only."
    return Table("over questions, these seeds", headers, tuple(rows), (note, *one["notes"]))
