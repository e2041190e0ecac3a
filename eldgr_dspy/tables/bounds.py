"""The table of the authority bounds of a pool, without a run."""

from eldgr_dspy.figures.authority import Authority
from eldgr_dspy.formatting import UNDEFINED, figure, interval, questions
from eldgr_dspy.tables.table import Table
from eldgr_dspy.words import Role


def authority_table(name: str, pool: Authority) -> Table:
    """Return the table of `figures.authority.pool_authority`."""
    repairer: Role = "repairer" if pool["task"] == "retrieval" else "deriver"
    both = "any judge, any span" if repairer == "repairer" else "any judge, any deriver"
    rows = [
        (
            rule,
            interval(pool["bounds"][rule]),
            _over_both(pool, rule, repairer),
            figure(changes["judge"]),
            figure(changes[repairer]),
        )
        for rule, changes in pool["can_change"].items()
    ]
    notes = []
    asking = [rule for rule, changes in pool["can_change"].items() if changes[repairer] != 0]
    if asking:
        notes.append(
            f"Under any judge the {repairer} is assumed to abstain; {' and '.join(asking)} may be outside by asking it."
        )
    if pool["n_scored"] == 0:
        notes.append(f"{UNDEFINED}: no question has a gold answer. What a role can change needs none.")
    elif pool["n_scored"] < pool["n"]:
        notes.append(f"Bounds are over the {questions(pool['n_scored'])} with a gold answer, of {pool['n']:,}.")
    if any("unbounded" in row for row in rows):
        notes.append("unbounded: a deriver's possible answers are not in the pool.")
    if any("not computed" in row for row in rows):
        notes.append("not computed: bounds over all spans are available only for the package's rules and certificates.")
    headers = ("rule", "any judge", both, "judge can change", f"{repairer} can change")
    title = f"{name}: {pool['task']}, {questions(pool['n'])}: authority bounds, %"
    return Table(title, headers, tuple(rows), tuple(notes))


def _over_both(pool: Authority, rule: str, repairer: Role) -> str:
    change, any_span = pool["can_change"][rule][repairer], pool["bounds_any_span"][rule]
    if repairer == "repairer":
        return interval(any_span) if any_span or not pool["n_scored"] else "not computed"
    return "unbounded" if change != 0 else interval(pool["bounds"][rule])
