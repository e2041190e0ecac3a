"""The tables of the full decision audit: what shipped and why, the stages before an override, each role and its cost.

A pool in which `eldgr` has no result has None instead of a table.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from eldgr_dspy.figures.results.audit_results import AuditInFull
from eldgr_dspy.figures.results.summary import PoolFigures
from eldgr_dspy.formatting import count_of, figure, questions, share_of
from eldgr_dspy.named_judges import first_of, judge_in, labelled
from eldgr_dspy.tables.table import Table, per_question, tokens_of

_BECAME = ("lost", "won", "wrong", "right", "unscored")
_MEANING = "lost: consensus is right and what shipped is wrong; won: the reverse; wrong, right: both are."


def audits_in(pool: PoolFigures) -> Sequence[PoolFigures]:
    """Return the pool as it is, or with several named judges once for each, with the audit of its `eldgr[NAME]`."""
    of = {labelled("eldgr", name): judge for name, judge in pool.get("judges", {}).items()}
    audits: list[PoolFigures] = [
        {**pool, "rules": {rule: pool["rules"][rule]}, "audit": judge["audit"], "decided": judge["decided"]}
        for rule, judge in of.items()
        if rule in pool["rules"] and "audit" in judge and "decided" in judge
    ]
    return audits or [pool]


def _title(pool: PoolFigures, words: str) -> str:
    """Return a title that names the rule if it has a named judge."""
    rule = first_of("eldgr", pool["rules"])
    return words if judge_in(rule) is None else f"{words}, under {rule}"


def outcomes_table(name: str, pool: PoolFigures) -> Table | None:
    """Return the questions by the branch that decided, by the support of the answer, and by its outcome."""
    if pool["decided"] is None:
        return None
    counts: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in pool["decided"]["outcomes"]:
        counts[row["branch"], row["level"]][row["outcome"]] = row["questions"]
    seen = [word for word in _BECAME if any(word in of for of in counts.values())]
    rows = [
        (f"{branch}, {level}", *(count_of(of.get(word, 0)) for word in seen), count_of(sum(of.values())))
        for (branch, level), of in counts.items()
    ]
    notes = (_MEANING,) if seen != ["unscored"] else ()
    title = _title(pool, f"{name}: what shipped, by decision and certificate")
    return Table(title, ("decision", *seen, "questions"), tuple(rows), notes)


def funnel_table(name: str, pool: PoolFigures) -> Table | None:
    """Return how many questions reach each stage on the way to an override."""
    if pool["decided"] is None:
        return None
    stages = pool["decided"]["funnel"]
    rows = [(stage["stage"], count_of(stage["questions"]), share_of(stage["questions"], pool["n"])) for stage in stages]
    return Table(_title(pool, f"{name}: the way to an override"), ("stage", "questions", "%"), tuple(rows))


def roles_table(name: str, pool: PoolFigures) -> Table | None:
    """Return on how many questions `eldgr` asked each role, the results, and what lazy asking saved."""
    decided = pool["decided"]
    if decided is None:
        return None
    lazy, rows = decided["laziness"], []
    for role, always in lazy["always"].items():
        if always:
            asked, silent = lazy["asked"][role], decided["silences"].get(role)
            silences = (silent["abstained"], silent["failed"]) if silent else (0, 0)
            rows.append((role, *map(count_of, (asked, *silences, always, always - asked))))
    headers = ("role", "asked", "abstained", "failed", "always would ask", "spared")
    title = f"{name}: whom {first_of('eldgr', pool['rules'])} asked, in questions"
    return Table(title, headers, tuple(rows), tuple(_notes(pool, decided)))


def _notes(pool: PoolFigures, decided: AuditInFull) -> Iterator[str]:
    """Notes on the cost of a question, what lazy asking saved, and the kinds of abstentions."""
    lazy, eldgr, n = decided["laziness"], pool["rules"][first_of("eldgr", pool["rules"])], pool["n"]
    if n:
        tokens = tokens_of(eldgr)
        each = figure(None if tokens is None else tokens / n)
        calls, seconds = per_question(eldgr["calls"], n), figure(lazy["seconds"] / n)
        yield f"A question took {calls} LM calls, {each} tokens and {seconds} seconds."
    if lazy["calls_saved"] is None:
        yield "The extra cost of asking always is not known: a role that it asks was never asked."
    else:
        yield (
            f"Asking always would take {count_of(lazy['calls_saved'])} LM calls and {figure(lazy['seconds_saved'])} "
            "seconds more, by the mean of the consultations that were made."
        )
    for role, silent in decided["silences"].items():
        if silent["kinds"]:
            kinds = (f"{kind}, {questions(n)}" for kind, n in silent["kinds"].items())
            yield f"Abstentions and failures of the {role}: {'; '.join(kinds)}."
