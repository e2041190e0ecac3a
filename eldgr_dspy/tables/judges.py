"""The table of several judges on one pool: each alone and under the lock. An undefined value is a dash."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from eldgr_dspy.base.formatting import UNDEFINED, listed
from eldgr_dspy.figures.results.summary import JudgeFigures, PoolFigures
from eldgr_dspy.rule.named_judges import labelled
from eldgr_dspy.tables.table import Table, columns_of, table_of


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
    notes = [
        "Alone: the judge has full authority. Locked: under the rule eldgr, where only a certified answer replaces "
        "consensus. Δ: locked minus alone, in points. Holm p: the p of Δ, adjusted for the judges of this pool, a "
        "family that is fixed before the run. Everything else is descriptive. "
        f"{UNDEFINED}: the run or the judge does not state it, or no question has a gold answer.",
        "Lock fixes–breaks: wrong answers of the judge alone that the lock makes right, and right ones that it makes "
        "wrong. Judge fixes–breaks: the same for answers of majority that the judge alone replaces. Worst: the lowest "
        "accuracy over all judges.",
        *(f"{judge} does not apply: {of['lacks']}." for judge, of in pool["judges"].items() if of["lacks"]),
    ]
    if positioned := [judge for judge, of in pool["judges"].items() if of["positioned"]]:
        notes.append(
            f"In the style of published systems that were not rerun, and so not tested: {listed(positioned)}. Their "
            "Holm p is undefined."
        )
    fields = (
        "alone locked delta p_holm locked_against_alone alone_against_majority worst_alone worst_locked "
        "asked abstained failed calls tokens gold_in_training logprobs"
    )
    title = f"{name}: judges alone and under the lock"
    return table_of(title, "judge", columns_of(_Judge, fields), rows, notes)
