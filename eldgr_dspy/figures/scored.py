"""The figures of rules over the questions with a gold answer: scores, flips, the risk of what ships, contrasts.

Sums are exact. So figures depend neither on the order of the questions nor on how many are taken together.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction

from eldgr_dspy.answer_types.base import Score
from eldgr_dspy.figures.decided_rows import DecidedRows, Ruling
from eldgr_dspy.figures.distinct import Units, counts_by
from eldgr_dspy.figures.results.audit_fields import Flips
from eldgr_dspy.figures.results.summary_fields import Paired, RuleContrast, Scores, Shipped, Shipping
from eldgr_dspy.rule.named_judges import judge_in, label_of, name_in
from eldgr_dspy.rule.rules import is_own
from eldgr_dspy.statistics import Contrast, contrast_of_units, holm, proportion_upper_bound
from eldgr_dspy.words import ASKING_NOBODY

_SELECTORS = ("first", "majority", "judge", "eldgr")
"""The matched selectors. Their contrasts and those of a user's rules are tested as a family; others are descriptive."""


def scores_of(rows: DecidedRows, rule: str, of: Callable[[Ruling], Score] = lambda of: of.result) -> Scores:
    """Return the means of a rule's scores in percent, or of others that a function returns; F1 if answers have it."""
    counts = counts_by(rows.rules[rule].counts(rows.has_gold), of)
    n, right = counts.total(), sum(times for score, times in counts.items() if score.em)
    f1 = float(sum(Fraction(score.f1 or 0.0) * times for score, times in counts.items()))
    return {"em": 100.0 * right / n if n else None, "f1": 100.0 * f1 / n if n and rows.type.has_f1 else None}


def official_of(rows: DecidedRows, rule: str) -> Scores | None:
    """Return a rule's official scores, of the raw texts; None if each is the same as the score."""
    if all(of.official is None for of in rows.rules[rule]):
        return None
    return scores_of(rows, rule, lambda of: of.official or of.result)


def flips_of(rows: DecidedRows, before: str, after: str) -> Flips:
    """Return how many answers of a rule were lost and fixed by another one; None without a question."""
    if not (pairs := rows.rules[before].beside(rows.rules[after]).counts(rows.has_gold)):
        return {"correct_to_incorrect": None, "incorrect_to_correct": None}
    flips = counts_by(pairs, lambda pair: (pair[0].result.em, pair[1].result.em))
    return {"correct_to_incorrect": flips[True, False], "incorrect_to_correct": flips[False, True]}


def shipping_of(rows: DecidedRows, rule: str) -> Shipping:
    """Return what a rule ships if uncertified answers abstain, and if they do not."""
    counts, units = rows.rules[rule].counts(), rows.units(rows.rules[rule])

    def ships(accepts: Callable[[Ruling], bool]) -> Shipped:
        marks = counts_by(units, lambda unit: tuple((accepts(of), of.result.em) for of in unit))
        return shipment(counts_by(counts, accepts)[True], len(rows), marks)

    return {"abstain": ships(lambda of: of.has_answer and of.is_trusted), "consensus": ships(lambda of: of.has_answer)}


def shipment(n: int, of: int, units: Units[tuple[bool, bool]]) -> Shipped:
    """Return on how many questions an answer ships, and how often it is wrong there.

    Args:
        n: Questions on which an answer ships. of: All questions.
        units: Of the questions with a gold answer, whether an answer ships and whether it is right. The bound counts a
            text once, as wrong if any of its answers that ship is wrong: copies of a question are not independent. It
            is never below the risk.
    """
    right, wrong = (sum(unit.count((True, em)) * times for unit, times in units.items()) for em in (True, False))
    distinct = sum(times for unit, times in units.items() if any(ships for ships, _ in unit))
    distinct_wrong = sum(times for unit, times in units.items() if (True, False) in unit)
    risk = wrong / (right + wrong) if right + wrong else None
    return {
        "questions": n,
        "coverage": 100.0 * n / of if of else None,
        "scored": right + wrong,
        "wrong": None if risk is None else wrong,
        "risk": None if risk is None else 100.0 * risk,
        "risk_at_most": None if risk is None else 100.0 * max(risk, proportion_upper_bound(distinct, distinct_wrong)),
    }


def contrasts_of(
    rules: Iterable[str], judges: Sequence[str], contrast: Callable[[str, str], Paired], exempt: Collection[str] = ()
) -> list[RuleContrast]:
    """Return `eldgr` against each other rule, and each rule that may ask a role against majority.

    With named judges, return only each judge locked against the same judge alone. Those of judges in `exempt` are
    not in the family that is tested.
    """
    names = [*rules]
    pairs = [(label_of("eldgr", judge), label_of("judge", judge)) for judge in judges]
    if not judges:
        pairs = [("eldgr", other) for other in names if other != "eldgr"]
        pairs += [(other, "majority") for other in names if other not in ("eldgr", *ASKING_NOBODY)]
    contrasts = {pair: contrast(*pair) for pair in pairs if set(pair) <= set(names)}
    family = [
        pair
        for pair in contrasts
        if all(name_in(rule) in _SELECTORS or is_own(rule) for rule in pair) and judge_in(pair[0]) not in exempt
    ]
    p_values = dict(zip(family, holm([contrasts[pair]["p"] for pair in family]), strict=True))
    return [
        {"rule": rule, "against": against, **figures, "p_holm": p_values.get((rule, against))}
        for (rule, against), figures in contrasts.items()
    ]


def contrast_of(rows: DecidedRows, rule: str, against: str) -> Paired:
    """Return the contrast of two rules, of F1 too where all answers have one; copies of a question count once."""
    both = rows.units(rows.rules[rule].beside(rows.rules[against]))
    return contrast_of_scores(counts_by(both, lambda unit: tuple((one.result, other.result) for one, other in unit)))


def contrast_of_scores(units: Units[tuple[Score, Score]]) -> Paired:
    """Return the contrast of units of pairs of scores, of F1 too where all answers have one."""
    em = _contrast(units, lambda score: score.em)
    has_f1 = all(score.f1 is not None for unit in units for pair in unit for score in pair)
    f1 = _contrast(units, lambda score: score.f1 or 0.0) if has_f1 else None
    return {
        "delta": em.delta,
        "ci": list(em.interval),
        "p": em.p,
        "wins": em.wins,
        "losses": em.losses,
        "notes": list(em.notes),
        "f1": None if f1 is None else {"delta": f1.delta, "ci": list(f1.interval)},
    }


def _contrast(units: Units[tuple[Score, Score]], value: Callable[[Score], float]) -> Contrast:
    return contrast_of_units(
        counts_by(units, lambda unit: tuple((100.0 * value(one), 100.0 * value(other)) for one, other in unit))
    )
