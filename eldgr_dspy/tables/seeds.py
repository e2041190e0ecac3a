"""The tables of several seeds: the runs, whose the spread is, and the contrast over questions."""

from collections.abc import Mapping
from typing import Any

from eldgr_dspy.comparisons.seed_runs import Score
from eldgr_dspy.formatting import figure, interval, probability, questions, signed
from eldgr_dspy.tables.table import Table, difference, record


def seed_tables(found: Mapping[str, Any]) -> list[Table]:
    """Return the tables of `over_seeds`: the runs, whose the spread is, and the contrast over questions."""
    return [_runs(found), _spread(found), _over_questions(found)]


def _score_names(found: Mapping[str, Any]) -> dict[Score, str]:
    return {"em": "EM", "f1": "F1"} if found["task"] == "retrieval" else {"em": "accuracy"}


def _runs(found: Mapping[str, Any]) -> Table:
    names, rules = _score_names(found), (found["rule"], found["against"])
    rows = [
        (
            one["run"],
            one["pool"],
            *(figure(mean) for score in names for mean in one[score]),
            signed(one["delta"]),
            record(one),
        )
        for one in found["runs"]
    ]
    headers = ("run", "pool", *(f"{rule} {name} %" for name in names.values() for rule in rules), "Δ", "wins–losses")
    title = f"{found['rule']} against {found['against']}, {len(rows)} seeds, {questions(found['n'])}"
    return Table(title, headers, tuple(rows), tuple(found["remarks"]))


def _spread(found: Mapping[str, Any]) -> Table:
    said = {"rule": found["rule"], "against": found["against"], "difference": f"{found['rule']} − {found['against']}"}
    rows = []
    for score, name in _score_names(found).items():
        for key, of in said.items():
            one = found["variance"][score][key]
            mean = signed(one["mean"]) if key == "difference" else figure(one["mean"])
            parts = (figure(one[part]) for part in ("standard_error", "seeds", "questions", "rest"))
            rows.append((f"{of}, {name}", mean, interval(one["interval"]), *parts))
    headers = ("what", "mean", "95% CI", "standard error", "variance: seeds", "questions", "rest")
    note = "The interval is for another draw of both seeds and questions. A variance below 0 is none that was seen."
    return Table("whose the spread is, in percentage points", headers, tuple(rows), (note,))


def _over_questions(found: Mapping[str, Any]) -> Table:
    one, named = found["contrast"], f"{found['rule']} − {found['against']}"
    name, *graded = _score_names(found).values()
    rows = [(f"{named}, {name}", difference(one), interval(one["bca"]), probability(one["p"]), record(one))]
    rows += [(f"{named}, {score}", difference(one["f1"]), interval(one["f1"]["bca"]), "", "") for score in graded]
    headers = ("contrast", "Δ [95% CI]", "BCa 95% CI", "exact p", "wins–losses")
    note = "A question counts once, with the mean of its seeds; nothing is said of other seeds."
    return Table("over questions, these seeds", headers, tuple(rows), (note, *one["notes"]))
