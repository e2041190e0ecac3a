"""The contrasts of a pool: which rules are compared, which of these are tested as a family, and their figures."""

from collections.abc import Callable, Collection, Iterable, Sequence

from eldgr_dspy.answer_types.base import Score
from eldgr_dspy.figures.decided_rows import DecidedRows
from eldgr_dspy.figures.distinct import Units, counts_by
from eldgr_dspy.figures.results.summary_fields import Delta, Paired, RuleContrast
from eldgr_dspy.rule.named_judges import judge_in, labelled, unlabelled
from eldgr_dspy.rule.rules import is_own
from eldgr_dspy.statistics import Contrast, contrast_of_units, holm
from eldgr_dspy.words import ASKING_NOBODY

_SELECTORS = ("first", "majority", "judge", "eldgr")
"""The matched selectors. Their contrasts and those of a user's rules are tested as a family; others are descriptive."""


def contrasts_of(
    rules: Iterable[str], judges: Sequence[str], paired: Callable[[str, str], Paired], untested: Collection[str] = ()
) -> list[RuleContrast]:
    """Return `eldgr` against each other rule, and each rule that may ask a role against majority.

    With named judges, return only each judge locked against the same judge alone. Those of judges in `untested` are
    not in the family that is tested.
    """
    names = [*rules]
    pairs = [(labelled("eldgr", judge), labelled("judge", judge)) for judge in judges]
    if not judges:
        pairs = [("eldgr", other) for other in names if other != "eldgr"]
        pairs += [(other, "majority") for other in names if other not in ("eldgr", *ASKING_NOBODY)]
    contrasts = {pair: paired(*pair) for pair in pairs if set(pair) <= set(names)}
    family = [
        pair
        for pair in contrasts
        if all(unlabelled(rule) in _SELECTORS or is_own(rule) for rule in pair) and judge_in(pair[0]) not in untested
    ]
    adjusted = dict(zip(family, holm([contrasts[pair]["p"] for pair in family]), strict=True))
    return [
        {"rule": rule, "against": against, **figures, "p_holm": adjusted.get((rule, against))}
        for (rule, against), figures in contrasts.items()
    ]


def contrast_of(rows: DecidedRows, rule: str, against: str) -> Paired:
    """Return the contrast of two rules, of F1 too where all answers have one; copies of a question count once."""
    both = rows.units(rows.rules[rule].beside(rows.rules[against]))
    pairs = counts_by(both, lambda unit: tuple((one.defined, other.defined) for one, other in unit))
    em = _contrast(pairs, lambda score: score.em)
    graded = all(score.f1 is not None for unit in pairs for pair in unit for score in pair)
    return as_figures(em, _contrast(pairs, lambda score: score.f1 or 0.0) if graded else None)


def _contrast(pairs: Units[tuple[Score, Score]], value: Callable[[Score], float]) -> Contrast:
    return contrast_of_units(
        counts_by(pairs, lambda unit: tuple((100.0 * value(one), 100.0 * value(other)) for one, other in unit))
    )


def as_figures(em: Contrast, graded: Contrast | None) -> Paired:
    """Return a contrast of right and wrong, with that of F1 where there is one, as `summary.json` has it."""
    return {
        **_difference(em),
        "p": em.p,
        "wins": em.wins,
        "losses": em.losses,
        "notes": list(em.notes),
        "f1": None if graded is None else _difference(graded),
    }


def _difference(paired: Contrast) -> Delta:
    return {"delta": paired.delta, "ci": list(paired.interval)}
