"""The tables of several judges on one pool: each alone and under the lock, and how it judges.

The input is a pool of `summary.json`. An undefined value is N/A, and a note below the table says why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from eldgr_dspy.figures.results.summary import JudgeFigures, PoolFigures
from eldgr_dspy.formatting import UNDEFINED, listed, questions
from eldgr_dspy.named_judges import labelled
from eldgr_dspy.tables.table import Table, table_of

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


class _Judge(JudgeFigures):
    """A judge with the p of its difference."""

    p_holm: Annotated[float | None, Field(title="Holm p")]


def judges_table(name: str, pool: PoolFigures) -> Table | None:
    """Return what each judge is worth alone and locked; None if no judge has a name.

    Columns: accuracy or EM; Δ, locked minus alone, with its interval of 95 % and its p, adjusted by Holm for the
    judges of the pool; answers fixed and broken; the lowest accuracy over all judges; calls, tokens, abstentions.
    """
    if "judges" not in pool:
        return None
    tested = {contrast["against"]: contrast["p_holm"] for contrast in pool["contrasts"]}
    rows: dict[str, Mapping[str, object]] = {
        judge: {"gold_in_training": of["gold_in_training"], "logprobs": of["logprobs"]}
        if of["lacks"]
        else {**of, "p_holm": tested.get(labelled("judge", judge))}
        for judge, of in pool["judges"].items()
    }
    notes = (
        "Alone: the judge has full authority. Locked: under the rule eldgr, where only a certified answer replaces "
        "consensus. Δ: locked minus alone, in points. Holm p: the p of Δ, adjusted for the judges of this pool, a "
        "family that is fixed before the run. Everything else is descriptive.",
        "Lock fixes–breaks: wrong answers of the judge alone that the lock makes right, and right ones that it makes "
        "wrong. Judge fixes–breaks: the same for answers of majority that the judge alone replaces. Worst: the lowest "
        "accuracy over all judges.",
    )
    fields = (
        "alone locked delta p_holm locked_against_alone alone_against_majority worst_alone worst_locked "
        "asked abstained failed calls tokens gold_in_training logprobs"
    )
    title = f"{name}: judges alone and under the lock"
    return _with_reasons(table_of(title, "judge", _Judge, fields, rows, (*notes, *_on_judges(pool))), pool)


def _on_judges(pool: PoolFigures) -> Iterator[str]:
    """A sentence for each judge that does not apply, and one on judges that are not tested."""
    judges = pool.get("judges", {})
    yield from (f"{judge} is {_ABSENT}: {of.get('lacks')}." for judge, of in judges.items() if of["lacks"])
    if positioned := [judge for judge, of in judges.items() if of["positioned"]]:
        yield (
            f"In the style of published systems that were not rerun, and so not tested: {listed(positioned)}. Their "
            "Holm p is N/A."
        )


def judging_table(name: str, pool: PoolFigures) -> Table | None:
    """Return how each judge judges, each figure with its interval of 95 % and its count; None if none has a name."""
    if "judges" not in pool:
        return None
    notes = [
        "Recovers: where consensus is wrong and a candidate right, how often it prefers a right one. Right above "
        "wrong: how often, within a question, a right candidate has the higher score; 0.5 is chance. Tied scores: how "
        "often several answers share the highest score. Moved by order: how often another order changes its preference."
    ]
    if pool["conflicts"] is not None:
        notes.append(f"Several answers are certified on {pool['conflicts']:,} of {questions(pool['n'])}.")
    fields = "recovery discrimination score_ties order_effect"
    return _with_reasons(
        table_of(f"{name}: how the judges judge", "judge", JudgeFigures, fields, pool["judges"], notes), pool
    )


def _with_reasons(table: Table, pool: PoolFigures) -> Table:
    """The table in which what is undefined is N/A, with the reason below, unless a note on the judge has said it."""
    shown = [tuple(_ABSENT if UNDEFINED in cell else cell for cell in row) for row in table.rows]
    judges = pool.get("judges", {})
    noted = {(judge, header) for judge, of in judges.items() for header in table.headers if of["lacks"]}
    noted |= {(judge, "Holm p") for judge, of in judges.items() if of["positioned"]}
    absent = dict.fromkeys(
        header
        for row in shown
        for header, cell in zip(table.headers, row, strict=True)
        if cell == _ABSENT and (row[0], header) not in noted
    )
    reasons = (f"{_ABSENT} under {header}: {_REASONS[header]}." for header in absent)
    return replace(table, rows=tuple(shown), notes=(*table.notes, *reasons))
