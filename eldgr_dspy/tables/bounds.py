"""The table of the authority bounds of a pool, without a run."""

from collections.abc import Mapping

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, figure, interval, listed, questions
from eldgr_dspy.figures.allowance import Allowed
from eldgr_dspy.figures.authority import Authority
from eldgr_dspy.figures.results.summary import Bounds
from eldgr_dspy.tables.table import Table

ANY_DERIVER = (
    "Any deriver: each number that the check of derivations cannot exclude is taken for derivable, right or wrong."
)


def authority_table(name: str, pool: Authority, allowed: Allowed | None = None) -> Table:
    """Return the table of `figures.authority.pool_authority`, with the rules that pass above it."""
    repairer = shown_type(pool["task"]).repairer
    derives = repairer == "deriver"
    both, lms = ("any judge, any deriver", "judge or deriver") if derives else ("any judge, any span", "judge")
    rows = [
        (
            rule,
            interval(ends),
            _over_both(pool, rule),
            figure(pool["can_change"][rule]["judge"]),
            figure(pool["can_change"][rule][repairer]),
            *_price(pool, rule),
        )
        for rule, ends in pool["bounds"].items()
    ]
    notes = []
    asking = [rule for rule, changes in pool["can_change"].items() if changes[repairer] != 0]
    if asking:
        notes.append(
            f"Under any judge the {repairer} is assumed to abstain; {listed(asking)} may be outside by asking it."
        )
    if pool["n_scored"] == 0:
        notes.append(f"{UNDEFINED}: no question has a gold answer. What a role can change needs none.")
    elif pool["n_scored"] < pool["n"]:
        notes.append(f"Bounds are over the {questions(pool['n_scored'])} with a gold answer, of {pool['n']:,}.")
    if derives and asking:
        notes.append(ANY_DERIVER)
    if given_up := pool.get("gives_up"):
        notes.append(f"The answer type gives up {listed(given_up)}: what rests on it is not promised.")
    if any("not computed" in row for row in rows):
        notes.append("not computed: bounds over all spans are available only for the package's rules and certificates.")
    if any(pool["price"].values()):
        notes.append(
            f"{lms.capitalize()} can lose: distinct questions that majority has right and some {lms} can make wrong. "
            f"Price: the most points of accuracy that a {lms} can cost against majority on new questions, with 95 % "
            "confidence for each rule by itself."
        )
    headers = (
        "rule",
        "any judge",
        both,
        "judge can change",
        f"{repairer} can change",
        f"{lms} can lose",
        "price",
    )
    title = f"{name}: {pool['task']}, {questions(pool['n'])}: authority bounds, %"
    return Table(title, headers, tuple(rows), tuple(notes), _on(allowed, lms) if allowed else "")


def _price(pool: Authority, rule: str) -> tuple[str, str]:
    price = pool["price"][rule]
    return (
        (f"{price['lost']:,} of {price['of']:,}", f"at most {figure(price['at_most'])}")
        if price
        else (UNDEFINED, UNDEFINED)
    )


def _on(allowed: Allowed, lms: str) -> str:
    """Say which rules pass, in sentences."""
    if not allowed["chains"]:
        return "Only majority was given, which loses nothing against itself."
    most = f"at most {allowed['worst']:g} points on new questions, with 95 % confidence"
    tested = f"Tested from narrow to wide: {'; '.join(', '.join(chain) for chain in allowed['chains'])}."
    if allowed["passing"]:
        one = len(allowed["passing"]) == 1
        widest, under = ("rule that passes is", "it") if one else ("rules that pass are", "each")
        names = " and ".join(allowed["passing"])
        return f"The widest {widest} {names}: under {under} any {lms} costs {most}. {tested}"
    failed = f"Use majority: no rule is shown to cost {most}. {tested}"
    if allowed["questions"] >= allowed["needed"]:
        return f"{failed} The first rule of each chain loses too many questions to pass."
    return (
        f"{failed} A rule that loses no question passes with {allowed['needed']:,} distinct questions or more; this "
        f"pool has {allowed['questions']:,}."
    )


def _over_both(pool: Authority, rule: str) -> str:
    both = widest_bounds(pool)[rule]
    return interval(both) if both or not pool["n_scored"] else "not computed"


def widest_bounds(pool: Bounds) -> Mapping[str, list[float] | None]:
    """Return each rule's bounds over all judges and spans, or derivers where a derivation certifies."""
    return pool.get("bounds_any_deriver", pool["bounds_any_span"])
