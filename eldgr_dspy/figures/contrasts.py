"""The contrasts of a pool: which rules are compared, which of these are tested as a family, and their figures."""

from collections.abc import Callable, Collection, Iterable, Sequence

from eldgr_dspy.figures.results.summary import Delta, Paired, RuleContrast
from eldgr_dspy.rule.named_judges import judge_in, labelled, unlabelled
from eldgr_dspy.rule.rules import is_own
from eldgr_dspy.statistics import Contrast, holm
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
