"""The tables of the decision audit in full: what shipped and why, the way to an override, what each role said and cost.

A pool without the audit in full has None in their place: `eldgr` has no result there.
"""

from collections import defaultdict
from collections.abc import Iterator

from eldgr_dspy.figures.results.summary import AuditInFull, PoolFigures
from eldgr_dspy.formatting import count_of, figure, questions, share_of
from eldgr_dspy.tables.table import Table, per_question, tokens_of

_BECAME = ("lost", "won", "wrong", "right", "unscored")
_MEANING = "lost: consensus is right and what shipped is wrong; won: the reverse; wrong, right: both are."


def outcomes_table(name: str, pool: PoolFigures) -> Table | None:
    """Return the questions by what decided, by what vouches for the answer, and by what became of it."""
    if pool["decided"] is None:
        return None
    counts: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for one in pool["decided"]["outcomes"]:
        counts[one["branch"], one["level"]][one["outcome"]] = one["questions"]
    seen = [word for word in _BECAME if any(word in of for of in counts.values())]
    rows = [
        (f"{branch}, {level}", *(count_of(of.get(word, 0)) for word in seen), count_of(sum(of.values())))
        for (branch, level), of in counts.items()
    ]
    notes = (_MEANING,) if seen != ["unscored"] else ()
    title = f"{name}: what shipped, by decision and certificate"
    return Table(title, ("decision", *seen, "questions"), tuple(rows), notes)


def funnel_table(name: str, pool: PoolFigures) -> Table | None:
    """Return how many questions reach each stage on the way to an override."""
    if pool["decided"] is None:
        return None
    stages = pool["decided"]["funnel"]
    rows = [(one["stage"], count_of(one["questions"]), share_of(one["questions"], pool["n"])) for one in stages]
    return Table(f"{name}: the way to an override", ("stage", "questions", "%"), tuple(rows))


def roles_table(name: str, pool: PoolFigures) -> Table | None:
    """Return on how many questions `eldgr` asked each role, what came of it, and what laziness saved."""
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
    return Table(f"{name}: whom eldgr asked, in questions", headers, tuple(rows), tuple(_notes(pool, decided)))


def _notes(pool: PoolFigures, decided: AuditInFull) -> Iterator[str]:
    """What a question took and what laziness saved, and by what kinds roles said nothing."""
    lazy, eldgr, n = decided["laziness"], pool["rules"]["eldgr"], pool["n"]
    if n:
        tokens = tokens_of(eldgr)
        each = figure(None if tokens is None else tokens / n)
        calls, seconds = per_question(eldgr["calls"], n), figure(lazy["seconds"] / n)
        yield f"A question took {calls} LM calls, {each} tokens and {seconds} seconds."
    if lazy["calls_saved"] is None:
        yield "What asking always would cost more is not known: a role that it asks was never asked."
    else:
        yield (
            f"Asking always would take {count_of(lazy['calls_saved'])} LM calls and {figure(lazy['seconds_saved'])} "
            "seconds more, by the mean of the consultations that were made."
        )
    for role, silent in decided["silences"].items():
        if silent["kinds"]:
            kinds = (f"{kind}, {questions(n)}" for kind, n in silent["kinds"].items())
            yield f"Silence of the {role}: {'; '.join(kinds)}."
