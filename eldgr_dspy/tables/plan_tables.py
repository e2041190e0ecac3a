"""The tables of what is known before a run: a pool, its authority bounds, what would be asked, what a gain needs."""

from collections.abc import Mapping
from typing import Any, cast

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, figure, interval, questions, with_sign, word_list
from eldgr_dspy.figures.authority import Allowance, Authority
from eldgr_dspy.figures.contents import Column, Ends, PoolContents, Shares
from eldgr_dspy.figures.remarks import spelling_notes
from eldgr_dspy.figures.results import headings
from eldgr_dspy.figures.results.record_fields import Share
from eldgr_dspy.figures.results.summary_fields import Bounds
from eldgr_dspy.rule.named_judges import role_of
from eldgr_dspy.tables.table import Columns, Table, columns_of, field, table_of
from eldgr_dspy.words import is_role

ANY_DERIVER = (
    "Any deriver: each number that the check of derivations cannot exclude is taken for derivable, right or wrong."
)


def contents_table(name: str, contents: PoolContents) -> Table:
    """Return what a pool holds: shares, then notes on candidates, evidence and columns."""
    shares = cast(Mapping[str, Any], contents)
    rows: dict[str, Mapping[str, Any]] = {
        heading: shares[key] if shares[key]["of"] else {"of": 0} for key, heading in headings(Shares).items()
    }
    passages, characters = contents["evidence"]["passages"], contents["evidence"]["characters"]
    notes = [f"Candidates a question: {_ends(contents['candidates'])}."]
    if passages["most"]:
        notes.append(f"Evidence a question: {_ends(passages)} passages, {_ends(characters)} characters.")
    if contents["any_correct"]["of"] < contents["n"]:
        notes.append(f"With a gold answer: {questions(contents['any_correct']['of'])} of {contents['n']:,}.")
    notes += spelling_notes(contents["spelling_only"]["count"], contents["spelling_only"]["examples"])
    if columns := contents.get("columns"):
        notes.append(f"Stated of candidates: {', '.join(_column(name, one) for name, one in columns.items())}.")
    title = f"{name}: {contents['task']}, {questions(contents['n'])}"
    return table_of(title, "what the pool holds", columns_of(Share, "count of rate"), rows, notes)


def _column(name: str, column: Column) -> str:
    counts = f"{name} {column['count']:,} of {column['of']:,}"
    return counts if column["lowest"] is None else f"{counts} from {column['lowest']:g} to {column['highest']:g}"


def _ends(ends: Ends) -> str:
    fewest, most = f"{ends['fewest']:,}", f"{ends['most']:,}"
    return fewest if fewest == most else f"{fewest} to {most}"


def forecast_table(forecast: Mapping[str, Any]) -> Table:
    """Return what a run would ask, a row a pool and role."""
    columns: Columns = {
        "role": lambda of: of["role"],
        "asked of": lambda of: (
            forecast["models"][of["role"]]
            or ("heuristic" if is_role(of["role"]) else "no LM" if is_role(role_of(of["role"])) else "own code")
        ),
        **{name.replace("_", " "): field(name) for name in ("at_most", "journaled", "recorded", "to_ask")},
        "calls": lambda of: f"{of['to_ask']:,}+" if of["calls"] is None else f"{of['calls']:,}",
    }
    rows = [
        (name, {"role": role, **counts})
        for name, pool in forecast["pools"].items()
        for role, counts in pool["roles"].items()
    ]
    notes = ["Nobody was asked."]
    if any(of["calls"] is None for _, of in rows):
        notes.append("+: at least one call a question; the role does not say how many it makes.")
    return table_of("what this run would ask, in questions", "pool", columns, rows, notes)


def needed_table(need: Mapping[str, Any]) -> Table:
    """Return how many questions it takes to see a gain, for `eldgr plan`."""
    title = f"questions to see {with_sign(need['gain'])} with power {need['power']:g} at alpha {need['alpha']:g}"
    columns: Columns = {
        "questions": lambda of: f"{of['questions']:,}",
        "power there": lambda of: figure(of["power_there"], 4),
        "wins–losses to expect": lambda of: f"{of['wins']:,.0f}–{of['losses']:,.0f}",
    }
    return table_of(title, "discordant %", columns, {figure(need["discordant"]): need})


def authority_table(name: str, pool: Authority, allowance: Allowance | None = None) -> Table:
    """Return each rule's authority bound, what roles can change, and its price; rules that pass stand above."""
    repairer, changes, price = shown_type(pool["task"]).repairer, pool["can_change"], pool["price"]
    derives, widest, n_gold = repairer == "deriver", widest_bounds(pool), pool["n_scored"]
    both, lms = ("any judge, any deriver", "judge or deriver") if derives else ("any judge, any span", "judge")
    columns: Columns = {
        "any judge": lambda rule: interval(pool["bounds"][rule]),
        both: lambda rule: interval(widest[rule]) if widest[rule] or not n_gold else "not computed",
        "judge can change": lambda rule: figure(changes[rule]["judge"]),
        f"{repairer} can change": lambda rule: figure(changes[rule][repairer]),
        f"{lms} can lose": lambda rule: f"{of['lost']:,} of {of['of']:,}" if (of := price[rule]) else UNDEFINED,
        "price": lambda rule: f"at most {figure(of['at_most'])}" if (of := price[rule]) else UNDEFINED,
    }
    notes = []
    if asking := [rule for rule in changes if changes[rule][repairer] != 0]:
        notes.append(
            f"Under any judge the {repairer} is assumed to abstain; {word_list(asking)} may be outside by asking it."
        )
    if n_gold == 0:
        notes.append(f"{UNDEFINED}: no question has a gold answer. What a role can change needs none.")
    elif n_gold < pool["n"]:
        notes.append(f"Bounds are over the {questions(n_gold)} with a gold answer, of {pool['n']:,}.")
    if derives and asking:
        notes.append(ANY_DERIVER)
    if promises := pool.get("gives_up"):
        notes.append(f"The answer type gives up {word_list(promises)}: what rests on it is not promised.")
    if n_gold and not all(widest[rule] for rule in pool["bounds"]):
        general = derives or shown_type(pool["task"]).enumerates_spans
        only = "for the package's rules and certificates" if general else "where a repair is any span, as of short text"
        notes.append(f"not computed: bounds over all spans are available only {only}.")
    if any(price.values()):
        notes.append(
            f"{lms.capitalize()} can lose: distinct questions that majority has right and some {lms} can make wrong. "
            f"Price: the most points of accuracy that a {lms} can cost against majority on new questions, with 95 % "
            "confidence for each rule by itself."
        )
    title = f"{name}: {pool['task']}, {questions(pool['n'])}: authority bounds, %"
    lead = _on(allowance, lms) if allowance else ""
    return table_of(title, "rule", columns, {rule: rule for rule in pool["bounds"]}, notes, lead)


def _on(allowance: Allowance, lms: str) -> str:
    if not allowance["chains"]:
        return "Only majority was given, which loses nothing against itself."
    most = f"at most {allowance['worst']:g} points on new questions, with 95 % confidence"
    order = f"Tested from narrow to wide: {'; '.join(', '.join(chain) for chain in allowance['chains'])}."
    if allowance["passing"]:
        one = len(allowance["passing"]) == 1
        widest, under = ("rule that passes is", "it") if one else ("rules that pass are", "each")
        names = " and ".join(allowance["passing"])
        return f"The widest {widest} {names}: under {under} any {lms} costs {most}. {order}"
    refusal = f"Use majority: no rule is shown to cost {most}. {order}"
    if allowance["questions"] >= allowance["needed"]:
        return f"{refusal} The first rule of each chain loses too many questions to pass."
    return (
        f"{refusal} A rule that loses no question passes with {allowance['needed']:,} distinct questions or more; this "
        f"pool has {allowance['questions']:,}."
    )


def widest_bounds(pool: Bounds) -> Mapping[str, list[float] | None]:
    """Return each rule's bounds over all judges and spans, or derivers where a derivation certifies."""
    return pool.get("bounds_any_deriver", pool["bounds_any_span"])
