"""The tables of one pool: what each rule scored, its bounds and its cost, and the audit in short.

Input is the content of `summary.json`. What is undefined is shown as a dash, and a note below the table says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.remarks import never_asked
from eldgr_dspy.formatting import UNDEFINED, count_of, figure, interval, probability, questions, share_of
from eldgr_dspy.tables.table import Table, difference, per_question, record, scored, tokens_of
from eldgr_dspy.words import ROLES

_AUDIT = {
    "preserved": "consensus preserved",
    "judge_overrides": "judge overrides",
    "repair_overrides": "repair overrides",
    "abstentions": "questions with an abstention",
    "homogeneous": "questions with one class of answers",
    "certified_consensus": "certified consensus",
}
_FLIPS = ("correct_to_incorrect", "incorrect_to_correct")

_UNSCORED = f"{UNDEFINED}: no question has a gold answer, so nothing is scored."
_UNREPORTED = f"{UNDEFINED}: a server did not report it, or the price of a model is not known."
_UNCOUNTED = f"{UNDEFINED}: a server did not report it."
_UNDERIVED = (
    "Over derivers nothing is bounded, since what may be derived is not in the pool: derivations move eldgr out."
)
_UNBOUNDED = f"{UNDEFINED}: withheld, or not computable for this rule or without gold answers."


def pools_of(summary: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the pools of a summary by name.

    Raises:
        ArgumentError: the summary has no mapping of pools.
    """
    pools = summary.get("pools")
    if not isinstance(pools, Mapping):
        raise ArgumentError(f"pools={pools!r} must map pool names to figures; give the content of a summary.json.")
    return pools


def headline(pool: Mapping[str, Any]) -> str:
    """Return the authority bound of a pool in a sentence; empty where the summary has none.

    Without gold answers it says instead on what share of the questions a judge can change what ships.
    """
    bounds, changes = pool.get("bounds") or {}, pool.get("can_change") or {}
    named = [(said, _range(ends)) for rule, said in _HEADED.items() if (ends := bounds.get(rule))]
    if named:
        scores = ", ".join([" scores ".join(named[0]), *map(" ".join, named[1:])])
        default = f"; majority {figure(bounds['majority'][0])} %" if bounds.get("majority") else ""
        return f"Over all judges, other roles silent, {scores}{default}."
    shares = [f"on {figure(of['judge'])} % under {rule}" for rule in _HEADED if (of := changes.get(rule))]
    known = f"Of the questions, a judge can change what ships {' and '.join(shares)}"
    return f"{known}; without gold answers nobody knows to what end." if shares else ""


_HEADED = {"eldgr": "eldgr", "judge": "the judge alone"}


def _range(ends: Sequence[float]) -> str:
    low, high = map(figure, ends)
    return f"{low} %" if low == high else f"between {low} and {high} %"


def paper_table(summary: Mapping[str, Any]) -> list[Table]:
    """Return a table like the paper's for each pool: a row a rule, with EL-DGR's lead over it.

    Columns: accuracy, or EM and F1, in percent; Δ in percentage points, `eldgr` minus the row, with its 95 % interval;
    the two-sided exact McNemar p; wins and losses of `eldgr`; LM calls a question that the rule alone would need.

    Raises:
        ArgumentError: the summary has no mapping of pools.
    """
    confirmation = summary.get("confirmation")
    return [_paper(name, pool, confirmation) for name, pool in pools_of(summary).items()]


def audit_table(summary: Mapping[str, Any]) -> list[Table]:
    """Return the decision audit of `eldgr` for each pool: counts of questions and their share in percent."""
    return [_audit(name, pool) for name, pool in pools_of(summary).items()]


def bounds_table(summary: Mapping[str, Any]) -> list[Table]:
    """Return for each pool what every rule measured beside its bounds over all judges, in percent."""
    return [_bounds(name, pool) for name, pool in pools_of(summary).items()]


def cost_table(summary: Mapping[str, Any]) -> list[Table]:
    """Return for each pool how many questions each rule puts to each role, its LM calls and seconds, all in total."""
    return [_cost(name, pool) for name, pool in pools_of(summary).items()]


_EFFECTS = {
    "position_flips": ("other answer in other order", 0.0),
    "first_shown_wins": ("first shown preferred", None),
    "longer_wins": ("longer preferred", 50.0),
    "rationale_names_another": ("rationale names another", 0.0),
}
"""What is said of each effect on a judge, and its rate in percent where the habit plays no part; None: as expected."""


def effects_table(effects: Mapping[str, Any]) -> Table | None:
    """Return what else the judge's verdicts on a pool went by; None where there is nothing to take a share of.

    Args:
        effects: What the record says of one pool under `judge_effects`.
    """
    rows = [
        (said, str(found["count"]), str(found["of"]), figure(found["rate"]), figure(found.get("expected", plain)))
        for name, (said, plain) in _EFFECTS.items()
        if (found := effects[name])["of"]
    ]
    headers = ("effect", "count", "of", "%", "without it, %")
    return Table("what else the judge's verdicts went by", headers, tuple(rows)) if rows else None


def usage_table(summary: Mapping[str, Any]) -> Table | None:
    """Return what the run asked of LMs in all: a row a role; None where no LM was asked.

    Unlike `cost_table` it counts every attempt and every session, and each consultation once, whatever rules used it.
    """
    roles = summary.get("consultations") or {}
    asked = {role: sums for role, sums in roles.items() if sums["calls"] or sums.get("cached")}
    if not asked:
        return None
    counts = ("ok", "abstained", "failed", "calls", "cached", "prompt_tokens", "completion_tokens")
    rows = [
        (role, *(count_of(sums.get(name)) for name in counts), figure(sums.get("cost"), 4))
        for role, sums in asked.items()
    ]
    headers = ("role", "answered", "abstained", "failed", "LM calls", "cached", "tokens in", "tokens out", "$")
    unknown = [_UNREPORTED] if any(UNDEFINED in row for row in rows) else []
    return Table("what the run asked of LMs, in all", headers, tuple(rows), (*unknown, *summary.get("remarks", ())))


# -- tables -----------------------------------------------------------------------------------------------------------


def _paper(name: str, pool: Mapping[str, Any], confirmation: Mapping[str, Any] | None) -> Table:
    rules, withheld = pool["rules"], pool.get("withheld") or {}
    scores = ("EM %", "F1 %") if pool["task"] == "retrieval" else ("accuracy %",)
    headers = ("rule", *scores, "Δ [95% CI]", "exact p", "wins–losses", "LM calls / question")
    rows = [_paper_row(rule, pool) for rule in rules]
    rows += [(rule, *[UNDEFINED] * (len(headers) - 1)) for rule in withheld if rule not in rules]
    seen = (confirmation or {"seen_before": {}})["seen_before"].get(name)
    notes = [*_notes(pool), *([_confirming(seen)] if seen is not None else [])]
    title = f"{name}: {pool['task']}, {questions(pool['n'])}"
    return Table(title, headers, tuple(rows), tuple(notes), headline(pool))


def _confirming(seen: int) -> str:
    """Whether the figures confirm what was frozen, for a pool that was seen so often before."""
    if not seen:
        return "Under a lock, and seen for the first time."
    return f"Under a lock, and seen {seen:,} time{'s' * (seen > 1)} before, so this run confirms nothing."


def _paper_row(rule: str, pool: Mapping[str, Any]) -> tuple[str, ...]:
    figures = pool["rules"][rule]
    scores = [figure(figures.get(score)) for score in ("em", "f1")[: 2 if pool["task"] == "retrieval" else 1]]
    calls = per_question(figures.get("calls"), pool["n"])
    if rule == "eldgr":
        return (rule, *scores, "", "", "", calls)
    for entry in pool.get("contrasts") or ():
        if (entry["rule"], entry["against"]) == ("eldgr", rule):
            return (rule, *scores, difference(entry), probability(entry["p"]), record(entry), calls)
    return (rule, *scores, UNDEFINED, UNDEFINED, UNDEFINED, calls)


def _notes(pool: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each reason why a cell is a dash, or why its figures are not over all questions."""
    n_scored, rules = scored(pool), pool["rules"]
    if n_scored == 0:
        yield _UNSCORED
    elif n_scored != pool["n"]:
        yield f"Scores and contrasts are over the {questions(n_scored)} that have a gold answer, of {pool['n']:,}."
    if rules and "eldgr" not in rules:
        yield f"{UNDEFINED} under Δ: eldgr has no result here to set against the others."
    for rule, why in (pool.get("withheld") or {}).items():
        yield f"{rule}: {_withheld(why)}"
    yield from pool.get("remarks") or ()
    if pool.get("n_failed"):
        yield f"{questions(pool['n_failed'])} had a call that did not come through and decided as with a silent role."


def _silent(pool: Mapping[str, Any]) -> list[str]:
    """That a rule which asks more than a judge can leave its bound, in a sentence; of derivers another one says so."""
    asking = [
        rule
        for rule, figures in pool["rules"].items()
        if any(n for role, n in (figures.get("asked") or {}).items() if role != "judge")
        and (rule, pool["task"]) != ("eldgr", "arithmetic")
    ]
    told = f"Under any judge all other roles are silent; asking them, {' and '.join(asking)} may measure outside."
    return [told] if asking else []


def _withheld(why: str | Mapping[str, int]) -> str:
    if isinstance(why, str):
        return why
    models = " ".join(f"--{role} MODEL" for role in why)
    return f"withheld, since {never_asked(why)}; the same command without --replay, with {models}, asks."


def _audit(name: str, pool: Mapping[str, Any]) -> Table:
    title, headers = f"{name}: decision audit of eldgr", ("decision", "questions", "%")
    audit, unscored = pool.get("audit"), scored(pool) == 0
    if audit is None:
        return Table(title, headers, (), ("There is no audit: eldgr has no result here.",))
    decided = pool.get("decided")
    counts = {_audit_words(key, pool["task"]): audit.get(key) for key in _AUDIT}
    counts |= _flips({"majority": audit, **(decided or {"flips": {}})["flips"]}, unscored=unscored)
    rows = [(words, count_of(count), share_of(count, pool["n"])) for words, count in counts.items()]
    return Table(title, headers, tuple(rows), (_UNSCORED,) if unscored else ())


def _flips(against: Mapping[str, Any], *, unscored: bool) -> dict[str, int | None]:
    """What became of the answers of other rules, in words."""
    return {
        f"{key.replace('_', ' ')}, against {rule}": None if unscored else flips.get(key)
        for rule, flips in against.items()
        for key in _FLIPS
    }


def _audit_words(key: str, task: str) -> str:
    confirms = key == "certified_consensus" and task == "arithmetic"
    return "consensus that a checked derivation confirms" if confirms else _AUDIT[key]


def _bounds(name: str, pool: Mapping[str, Any]) -> Table:
    silent, any_span = pool.get("bounds") or {}, pool.get("bounds_any_span") or {}
    spans = any(any_span.values())
    headers = ("rule", "measured", "any judge", *(["any judge, any span as repair"] if spans else []))
    rows = []
    for rule in dict.fromkeys([*pool["rules"], *silent, *any_span]):
        ends = [interval(silent.get(rule))] + [interval(any_span.get(rule))] * spans
        rows.append((rule, figure(pool["rules"].get(rule, {}).get("em")), *ends))
    notes = [_UNBOUNDED] if any(UNDEFINED in row for row in rows) else []
    derived = [_UNDERIVED] if pool["task"] == "arithmetic" and rows else []
    return Table(f"{name}: authority bounds, %", headers, tuple(rows), (*notes, *_silent(pool), *derived))


def _cost(name: str, pool: Mapping[str, Any]) -> Table:
    rules = pool["rules"]
    roles = [role for role in ROLES if any((figures.get("asked") or {}).get(role) for figures in rules.values())]
    told = any(figures.get("tokens") for figures in rules.values())
    headers = ("rule", *(f"{role} asked" for role in roles), "LM calls", *(["tokens"] * told), "seconds")
    rows = []
    for rule, figures in rules.items():
        asked, calls = figures.get("asked") or {}, figures.get("calls")
        counts = [*map(asked.get, roles), None if calls is None else sum(calls.values()), *[tokens_of(figures)] * told]
        rows.append((rule, *map(count_of, counts), figure(figures.get("seconds"))))
    unknown = [_UNCOUNTED] if any(UNDEFINED in row for row in rows) else []
    return Table(f"{name}: what each rule alone would ask, in total", headers, tuple(rows), tuple(unknown))
