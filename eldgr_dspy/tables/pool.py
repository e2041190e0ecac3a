"""The tables of one pool of `summary.json`: each rule's scores, bounds and cost, and the audit."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, count_of, figure, interval, questions, share_of, word_list
from eldgr_dspy.figures.record import total_of
from eldgr_dspy.figures.remarks import missing_roles
from eldgr_dspy.figures.results import headings
from eldgr_dspy.figures.results.audit_fields import AuditCounts, Became, Flips, RoleSums
from eldgr_dspy.figures.results.summary_fields import Paired, PoolFigures, Shipped, Summary
from eldgr_dspy.rule.named_judges import first_of, judge_in, label_of, name_in
from eldgr_dspy.tables.judges import usefulness
from eldgr_dspy.tables.plan_tables import ANY_DERIVER, widest_bounds
from eldgr_dspy.tables.table import NO_REPORT, Columns, Table, columns_of, field, part, score_columns, table_of
from eldgr_dspy.words import CONSULTED, Consulted, is_role

_NO_GOLD = f"{UNDEFINED}: no question has a gold answer, so nothing is scored."
_NOTHING_SHIPS = f"{UNDEFINED}: no question that ships has a gold answer, so its risk is undefined."
_AT_MOST = (
    "At most: exact one-sided 95 % upper bound on the risk of new questions (Clopper–Pearson), if questions are "
    "drawn independently and the rule was fixed beforehand."
)
_BECAME = "lost: consensus is right and what shipped is wrong; won: the reverse; wrong, right: both are."
_NOISE = 1e-9  # percent; sums of the same shares in another order differ by less
_NO_BOUNDS = "withheld, or not computable for this rule or without gold answers."


def headline(pool: PoolFigures) -> str:
    """Return the conclusion about the judges of a run, then its bound; empty where neither is known."""
    return " ".join([*usefulness(pool), *filter(None, [bound(pool)])])


def bound(pool: PoolFigures) -> str:
    """Return the worst and best case over all judges and derivers, and over any span if the run asked a repairer."""
    derives = "bounds_any_deriver" in pool
    repairs = not derives and _repairs(pool)
    bounds = widest_bounds(pool) if derives or repairs else pool["bounds"]
    verbs = {"eldgr": "eldgr scores {} here", **({"support": "support {}"} if derives else {})}
    verbs["judge"] = "the judge alone could score {}"
    ranges = [verb.format(_range(ends)) for rule, verb in verbs.items() if (ends := bounds.get(first_of(rule, bounds)))]
    if not ranges:
        return ""
    default = f" Majority vote scores {_range(ends)}." if (ends := bounds.get("majority")) else ""
    if derives or repairs:
        return f"Whatever judge and {'deriver' if derives else 'repairer'} say, {'; '.join(ranges)}.{default}"
    silent = "Whatever the judge says (repairer and deriver silent)"
    return f"{silent}, {'; '.join(ranges)}.{default}{_range_remark(pool)}"


def _repairs(pool: PoolFigures) -> bool:
    """Whether eldgr asked a repairer in this run, and its bound over all spans is known."""
    of, spans = pool["rules"].get(first_of("eldgr", pool["rules"])), pool["bounds_any_span"]
    return of is not None and of["asked"].get("repairer", 0) > 0 and spans.get(first_of("eldgr", spans)) is not None


def _range_remark(pool: PoolFigures) -> str:
    """Say that eldgr scored outside its range, which only another role can do; empty if it did not."""
    eldgr = first_of("eldgr", pool["rules"])
    ends, of = pool["bounds"].get(eldgr), pool["rules"].get(eldgr)
    if not ends or of is None or of["em"] is None or ends[0] - _NOISE <= of["em"] <= ends[1] + _NOISE:
        return ""
    return f" The other roles of this run moved {eldgr} to {_percent(of['em'])} %."


def _range(ends: Sequence[float]) -> str:
    low, high = map(_percent, ends)
    return f"{low} %" if low == high else f"{low}–{high} %"


def _percent(value: float) -> str:
    return figure(value).removesuffix(".00")


def usage_table(summary: Summary) -> Table | None:
    """Return what the run asked of LMs in all sessions, each consultation once; None if no LM was asked."""
    callers = {role: sums for role, sums in summary["consultations"].items() if sums["calls"] or sums["cached"]}
    if not callers:
        return None
    columns = columns_of(RoleSums, "ok abstained failed calls cached prompt_tokens completion_tokens cost")
    title = "what the run asked of LMs, in all"
    return table_of(title, "role", columns, callers, summary["remarks"], undefined=NO_REPORT)


def paper_table(name: str, pool: PoolFigures, remedy: str | None = None) -> Table:
    """Return a table like the paper's: a row a rule, with its scores, `eldgr`'s lead over it, and its calls."""
    rules, n = pool["rules"], pool["n"]
    leads = {one["against"]: one for one in pool["contrasts"] if name_in(one["rule"]) == "eldgr"}

    def lead(show: Callable[[Any], str]) -> Callable[[Any], str]:
        return lambda row: "" if row["leads"] else show(row["lead"]) if row["lead"] else UNDEFINED

    columns: Columns = {
        **score_columns(pool["task"]),
        **{heading: lead(show) for heading, show in columns_of(Paired, "difference p record").items()},
        "LM calls / question": lambda row: figure(sum(row["calls"].values()) / n if n and "calls" in row else None),
    }
    rows = {rule: {**of, "lead": leads.get(rule), "leads": name_in(rule) == "eldgr"} for rule, of in rules.items()}
    rows |= {rule: {"lead": None, "leads": False} for rule in pool["withheld"]}
    title = f"{name}: {pool['task']}, {questions(pool['n'])}"
    return table_of(title, "rule", columns, rows, _notes(pool, remedy), headline(pool))


def _notes(pool: PoolFigures, remedy: str | None) -> Iterator[str]:
    """Yield a sentence for each reason why a cell is a dash, or does not cover all questions."""
    if pool["n_scored"] == 0:
        yield _NO_GOLD
    elif pool["n_scored"] != pool["n"]:
        having = f"the {questions(pool['n_scored'])} that have a gold answer"
        yield f"Scores and contrasts are over {having}, of {pool['n']:,}."
    if "judges" in pool:
        yield f"{UNDEFINED} under Δ: with several judges, only eldgr[NAME] − judge[NAME] is tested, a contrast a judge."
    elif pool["rules"] and "eldgr" not in pool["rules"]:
        yield f"{UNDEFINED} under Δ: eldgr has no result here to set against the others."
    for rule, why in pool["withheld"].items():
        if (of := pool.get("judges", {}).get(judge_in(rule) or "")) and of["lacks"]:
            yield f"{rule} is not applicable: {of['lacks']}."
            continue
        judge = judge_in(rule) if "judge" in why else None
        options = {"judge": f"--judges {judge}=MODEL"} if judge else {}
        models = " ".join(options.get(role, f"--{role} MODEL") for role in why if is_role(role))
        asks = remedy or (
            f"the same command without --replay{f', with {models},' if models else ''} asks."
            if judge is None
            else f"complete the recordings, or give {models} and another --out."
        )
        yield f"{rule}: withheld, since {missing_roles(why)}; {asks}"
    yield from pool["remarks"]
    if pool["n_failed"]:
        yield f"{questions(pool['n_failed'])} had a call that did not come through and decided as with a silent role."


def audits_in(pool: PoolFigures) -> Sequence[PoolFigures]:
    """Return the pool as it is, or with several named judges once for each, with the audit of its `eldgr[NAME]`."""
    audits: list[PoolFigures] = [
        {**pool, "rules": {rule: pool["rules"][rule]}, "audit": judge["audit"], "decided": judge["decided"]}
        for name, judge in pool.get("judges", {}).items()
        if (rule := label_of("eldgr", name)) in pool["rules"]
    ]
    return audits or [pool]


def audit_table(name: str, pool: PoolFigures) -> Table:
    """Return how often `eldgr` kept consensus, overrode it or abstained, in counts and percent."""
    audit, in_full, n_gold = pool["audit"], pool["decided"], pool["n_scored"]
    columns: Columns = {"questions": count_of, "%": lambda count: share_of(count, pool["n"])}
    counts = dict[str, int | None]()
    if audit is not None and in_full is not None:
        words, by_name = {**headings(AuditCounts)}, cast(Mapping[str, Any], audit)
        if shown_type(pool["task"]).way == "derivation":
            words["certified_consensus"] = "consensus that a checked derivation confirms"
        counts |= {word: by_name[field] for field, word in words.items() if field not in Flips.__annotations__}
        for rule, flips in {"majority": audit, **in_full["flips"]}.items():
            counts[f"correct to incorrect, against {rule}"] = flips["correct_to_incorrect"]
            counts[f"incorrect to correct, against {rule}"] = flips["incorrect_to_correct"]
    notes = ([] if n_gold else [_NO_GOLD]) if counts else ["There is no audit: eldgr has no result here."]
    title = f"{name}: decision audit of {first_of('eldgr', pool['rules'])}"
    return table_of(title, "decision", columns, counts, notes)


def outcomes_table(name: str, pool: PoolFigures) -> Table | None:
    """Return questions by deciding branch, support and outcome; None without `eldgr`'s result."""
    if pool["decided"] is None:
        return None
    counts = defaultdict[str, Counter[Became]](Counter)
    for row in pool["decided"]["outcomes"]:
        counts[f"{row['branch']}, {row['level']}"][row["outcome"]] += row["questions"]
    words = [word for word in get_args(Became) if any(of[word] for of in counts.values())]
    rows = {label: {**{word: of[word] for word in words}, "questions": of.total()} for label, of in counts.items()}
    columns = {word: field(word) for word in (*words, "questions")}
    rule = first_of("eldgr", pool["rules"])
    under = "" if judge_in(rule) is None else f", under {rule}"
    title = f"{name}: what shipped, by decision and certificate{under}"
    return table_of(title, "decision", columns, rows, [] if words == ["unscored"] else [_BECAME])


def bounds_table(name: str, pool: PoolFigures) -> Table:
    """Return each rule's measured accuracy beside its bounds over all judges, in percent."""
    rules, silent, widest = pool["rules"], pool["bounds"], widest_bounds(pool)
    derives = shown_type(pool["task"]).way == "derivation"
    columns: Columns = {
        "measured": lambda rule: figure(rules[rule]["em"] if rule in rules else None),
        "any judge": lambda rule: interval(silent.get(rule)),
    }
    if any(widest.values()):
        any_other = "any judge, any deriver" if derives else "any judge, any span as repair"
        columns = {**columns, any_other: lambda rule: interval(widest.get(rule))}
    notes = []
    if asking := [rule for rule, of in rules.items() if of["asked"]["deriver"] or of["asked"]["repairer"]]:
        condition, listing = "under any judge " if derives else "", word_list(dict.fromkeys(map(name_in, asking)))
        notes.append(
            f"The bounds {condition}hold with repairer and deriver silent; {listing} asked them, and may be outside."
        )
    notes += [ANY_DERIVER] if derives and any(widest.values()) else []
    title, rows = f"{name}: authority bounds, %", {rule: rule for rule in [*rules, *silent]}
    return table_of(title, "rule", columns, rows, [*notes, *_price_lines(pool)], undefined=_NO_BOUNDS)


def _price_lines(pool: PoolFigures) -> Iterator[str]:
    """Yield what any judge, or deriver, can cost on new questions, under each rule that asks one."""
    prices = {name_in(rule): price for rule, price in pool["price"].items()}
    derives = "bounds_any_deriver" in pool
    rules, lms = (("judge", "support", "eldgr"), "judge or deriver") if derives else (("judge", "eldgr"), "judge")
    if costs := [f"{rule} {figure(price['at_most'])}" for rule in rules if (price := prices.get(rule))]:
        yield (
            f"Price: the most points of accuracy against majority that any {lms} can cost on new questions, with 95 % "
            f"confidence: {', '.join(costs)}."
        )


def shipping_table(name: str, pool: PoolFigures) -> Table | None:
    """Return what each rule would ship under `uncertified="abstain"`, next to all that it ships; None without rules."""
    rows = dict[str, Shipped]()
    for rule, shipping in pool["shipping"].items():
        rows |= {rule: shipping["consensus"], f"{rule}, certified only": shipping["abstain"]}
    if not rows:
        return None
    derives = shown_type(pool["task"]).way == "derivation"
    ships = "derivation is checked" if derives else "certificate holds or does not apply"
    notes = [_NOTHING_SHIPS] if pool["n_scored"] and any(of["risk"] is None for of in rows.values()) else []
    notes += [f'Certified only: as under uncertified="abstain", an answer ships only if its {ships}.', _AT_MOST]
    if pool["n_scored"] == 0:
        notes.append(_NO_GOLD)
    elif pool["n_distinct"] < pool["n_scored"]:
        notes.append("The bound counts a text that stands several times once, as wrong if any of its answers is wrong.")
    if pool["conflicts"]:
        notes.append(
            f"Several answers are certified on {pool['conflicts']:,} of {questions(pool['n'])}: the evidence there "
            "contradicts itself, or mentions a wrong answer too."
        )
    title = f"{name}: risk and coverage if uncertified answers abstain"
    return table_of(title, "rule", columns_of(Shipped, "questions coverage wrong risk risk_at_most"), rows, notes)


def cost_table(name: str, pool: PoolFigures) -> Table:
    """Return how many questions each rule alone puts to each role, with its calls and seconds."""
    rules = pool["rules"]
    roles: list[Consulted] = [role for role in CONSULTED if any(of["asked"].get(role) for of in rules.values())]
    columns: Columns = {
        **{f"{role} asked": part("asked", role) for role in roles},
        "LM calls": lambda of: count_of(sum(of["calls"].values())),
        "tokens": lambda of: count_of(total_of([*of["tokens"].values()])),
        "seconds": lambda of: figure(of["seconds"]),
    }
    title = f"{name}: what each rule alone would ask, in total"
    return table_of(title, "rule", columns, rules, undefined="a server did not report it.")
