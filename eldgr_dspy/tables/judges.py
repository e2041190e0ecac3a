"""The tables of several judges on one pool: each alone and under the lock, and how it judges.

The input is a pool of `summary.json`. An undefined value is N/A, and a note below the table says why.
"""

from collections.abc import Iterable, Iterator, Sequence

from eldgr_dspy.figures.results.audit_results import Flips
from eldgr_dspy.figures.results.summary import JudgeFigures, Measured, PoolFigures
from eldgr_dspy.formatting import UNDEFINED, count_of, figure, interval, listed, probability, questions
from eldgr_dspy.named_judges import labelled
from eldgr_dspy.tables.table import Table, difference

_ABSENT = "N/A"
_NO_SCORES = "the judge gives no scores"
_LACKS = "the run lacks the rule, or no question has a gold answer"
_REASONS = {
    **dict.fromkeys(("alone %", "locked %", "Δ [95% CI]", "Holm p", "lock fixes–breaks", "judge fixes–breaks"), _LACKS),
    **dict.fromkeys(("worst alone %", "worst locked %"), _LACKS),
    "tokens": "a server did not report them",
    **dict.fromkeys(("gold in training", "logprobs"), "a recording, or a judge of your own, does not state it"),
    "recovers %": "the run lacks the rule judge, or no question has a wrong consensus and a right candidate",
    "right above wrong": f"{_NO_SCORES}, or not for a right and a wrong candidate of one question",
    "tied scores %": _NO_SCORES,
    "moved by order %": "the judge was not asked in several orders",
}


def judges_table(name: str, pool: PoolFigures) -> Table | None:
    """Return what each judge is worth alone and locked; None if no judge has a name.

    Columns: accuracy or EM; Δ, locked minus alone, with its interval of 95 % and its p, adjusted by Holm for the
    judges of the pool; answers fixed and broken; the lowest accuracy over all judges; calls, tokens, abstentions.
    """
    if "judges" not in pool:
        return None
    tested = {contrast["against"]: contrast["p_holm"] for contrast in pool["contrasts"]}
    rows = [
        (
            judge,
            *_figures(of, tested.get(labelled("judge", judge))),
            *(UNDEFINED if fact is None else str(fact).lower() for fact in (of["gold_in_training"], of["logprobs"])),
        )
        for judge, of in pool["judges"].items()
    ]
    headers = (
        *("judge", "alone %", "locked %", "Δ [95% CI]", "Holm p", "lock fixes–breaks", "judge fixes–breaks"),
        *("worst alone %", "worst locked %", "asked", "abstained", "failed", "calls", "tokens"),
        *("gold in training", "logprobs"),
    )
    notes = (
        "Alone: the judge has full authority. Locked: under the rule eldgr, where only a certified answer replaces "
        "consensus. Δ: locked minus alone, in points. Holm p: the p of Δ, adjusted for the judges of this pool, a "
        "family that is fixed before the run. Everything else is descriptive.",
        "Lock fixes–breaks: wrong answers of the judge alone that the lock makes right, and right ones that it makes "
        "wrong. Judge fixes–breaks: the same for answers of majority that the judge alone replaces. Worst: the lowest "
        "accuracy over all judges.",
    )
    return _table(f"{name}: judges alone and under the lock", headers, rows, (*notes, *_on_judges(pool)), pool)


def _figures(of: JudgeFigures, p_holm: float | None) -> tuple[str, ...]:
    """A judge's figures; undefined, all of them, if it applies to no question."""
    cells = (
        figure(of["alone"]),
        figure(of["locked"]),
        UNDEFINED if of["delta"] is None else difference(of["delta"]),
        probability(p_holm),
        _flipped(of["locked_against_alone"]),
        _flipped(of["alone_against_majority"]),
        figure(of["worst_alone"]),
        figure(of["worst_locked"]),
        *map(count_of, (of["asked"], of["abstained"], of["failed"], of["calls"], of["tokens"])),
    )
    return (UNDEFINED,) * len(cells) if of.get("lacks") else cells


def _on_judges(pool: PoolFigures) -> Iterator[str]:
    """A sentence for each judge that does not apply, and one on judges that are not tested."""
    judges = pool.get("judges", {})
    yield from (f"{judge} is {_ABSENT}: {of.get('lacks')}." for judge, of in judges.items() if of.get("lacks"))
    if positioned := [judge for judge, of in judges.items() if of.get("positioned")]:
        yield (
            f"In the style of published systems that were not rerun, and so not tested: {listed(positioned)}. Their "
            "Holm p is N/A."
        )


def judging_table(name: str, pool: PoolFigures) -> Table | None:
    """Return how each judge judges, each figure with its interval of 95 % and its count; None if none has a name."""
    if "judges" not in pool:
        return None
    measured = [
        (judge, (of["recovery"], of["discrimination"], of["score_ties"], of["order_effect"]))
        for judge, of in pool["judges"].items()
    ]
    rows = [(judge, *map(_measured, figures)) for judge, figures in measured]
    headers = ("judge", "recovers %", "right above wrong", "tied scores %", "moved by order %")
    notes = [
        "Recovers: where consensus is wrong and a candidate right, how often it prefers a right one. Right above "
        "wrong: how often, within a question, a right candidate has the higher score; 0.5 is chance. Tied scores: how "
        "often several answers share the highest score. Moved by order: how often another order changes its preference."
    ]
    if pool["conflicts"] is not None:
        notes.append(f"Several answers are certified on {pool['conflicts']:,} of {questions(pool['n'])}.")
    return _table(f"{name}: how the judges judge", headers, rows, notes, pool)


def _flipped(flips: Flips | None) -> str:
    return (
        f"{count_of(flips['incorrect_to_correct'])}–{count_of(flips['correct_to_incorrect'])}" if flips else UNDEFINED
    )


def _measured(figures: Measured | None) -> str:
    return f"{figure(figures['value'])} {interval(figures['ci'])} of {figures['of']:,}" if figures else UNDEFINED


def _table(
    title: str, headers: tuple[str, ...], rows: Sequence[tuple[str, ...]], notes: Iterable[str], pool: PoolFigures
) -> Table:
    """A table in which what is undefined is N/A, with the reason below, unless a note on the judge has said it."""
    shown = [tuple(_ABSENT if UNDEFINED in cell else cell for cell in row) for row in rows]
    judges = pool.get("judges", {})
    noted = {(judge, header) for judge, of in judges.items() for header in headers if of.get("lacks")}
    noted |= {(judge, "Holm p") for judge, of in judges.items() if of.get("positioned")}
    absent = dict.fromkeys(
        header
        for row in shown
        for header, cell in zip(headers, row, strict=True)
        if cell == _ABSENT and (row[0], header) not in noted
    )
    reasons = (f"{_ABSENT} under {header}: {_REASONS[header]}." for header in absent)
    return Table(title, headers, tuple(shown), (*notes, *reasons))
