"""What judges are worth: alone and under the lock, the baselines that one must beat, and whether it does, in words."""

from collections.abc import Iterator, Mapping

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, figure, interval, word_list
from eldgr_dspy.figures.results.baseline_fields import BaselineName, JudgeUse, Lead, Usefulness
from eldgr_dspy.figures.results.summary_fields import JudgeFigures, PoolFigures, RuleContrast
from eldgr_dspy.rule.named_judges import label_of
from eldgr_dspy.tables.table import Columns, Table, columns_of, table_of

NAMES: Mapping[BaselineName, str] = {
    "first": "first",
    "best_source": "best single source",
    "majority": "majority",
    "majority_uniform_ties": "majority, ties drawn uniformly",
    "certified": "certified",
    "random_candidate": "random judge alone, draws a candidate",
    "random_class": "random judge alone, draws an answer",
    "random_candidate_locked": "random judge locked, draws a candidate",
    "random_class_locked": "random judge locked, draws an answer",
}
_TERMS = (
    "Alone: the judge has full authority. Locked: under the rule eldgr, where only a certified answer replaces "
    "consensus. Random judges and uniform ties are exact expectations. Repairer and deriver abstain."
)
_USEFUL = "A judge is useful if it beats certified majority and the better random judge. Brackets: 95 % intervals."


def judges_table(name: str, pool: PoolFigures) -> Table | None:
    """Return what each judge is worth alone and locked; None if no judge has a name."""
    if "judges" not in pool:
        return None
    p_values = {contrast["against"]: contrast["p_holm"] for contrast in pool["contrasts"]}
    rows: dict[str, Mapping[str, object]] = {
        judge: {"gold_in_training": of["gold_in_training"], "logprobs": of["logprobs"]}
        if of["lacks"]
        else {**of, "p_holm": p_values.get(label_of("judge", judge))}
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
    if in_style := [judge for judge, of in pool["judges"].items() if of["positioned"]]:
        notes.append(
            f"In the style of published systems that were not rerun, and so not tested: {word_list(in_style)}. Their "
            "Holm p is undefined."
        )
    fields = (
        "locked_against_alone alone_against_majority worst_alone worst_locked "
        "asked abstained failed calls tokens gold_in_training logprobs"
    )
    worth, tests = columns_of(JudgeFigures, "alone locked delta"), columns_of(RuleContrast, "p_holm")
    columns: Columns = {**worth, **tests, **columns_of(JudgeFigures, fields)}
    return table_of(f"{name}: judges alone and under the lock", "judge", columns, rows, notes)


def baselines_table(name: str, pool: PoolFigures) -> Table:
    """Return the score of each baseline that has no row as a rule."""
    baselines, judges = pool["baselines"]["scores"], pool["baselines"]["judges"]
    scores = {NAMES[baseline]: score for baseline, score in baselines.items() if baseline not in pool["rules"]}
    reasons = dict.fromkeys(score["reason"] for score in scores.values())
    notes = [f"{UNDEFINED}: {reason}." for reason in reasons if reason is not None]
    if sources := dict.fromkeys(baselines["best_source"]["sources"]):
        label = " and ".join(f"{source!r:.60}" for source in sources)
        notes.append(f"The best single source is chosen on one half of the questions and scored on the other: {label}.")
    notes += [_TERMS, _USEFUL] if judges else [_TERMS]
    for judge, where, of in ((judge, *place) for judge, use in judges.items() for place in _places(use)):
        if of["reason"] is not None:
            label = "the judge" if judge == "judge" else judge
            notes.append(f"{where.capitalize()} {label} is not compared: {of['reason']}.")
    columns: Columns = {f"{shown_type(pool['task']).scores[0]} %": lambda of: figure(of["em"])}
    return table_of(f"{name}: what a judge must beat", "baseline", columns, scores, notes)


def usefulness(pool: PoolFigures) -> Iterator[str]:
    """Yield a sentence for each judge that was compared: whether it is useful, and by how much."""
    for judge, use in pool["baselines"]["judges"].items():
        verdicts = [(where, of) for where, of in _places(use) if of["useful"] is not None]
        useful = [where for where, of in verdicts if of["useful"]]
        if verdicts:
            verdict = f"useful {' and '.join(useful)}" if useful else "not useful here"
            repairs = {"alone": "", "inside the lock": " without repairs"}
            comparison = "; ".join(f"{where}{repairs[where]} it is {_against(of)}" for where, of in verdicts)
            yield f"{'The judge' if judge == 'judge' else judge} is {verdict}: {comparison}."


def _places(use: Usefulness) -> list[tuple[str, JudgeUse]]:
    return [("alone", use["alone"]), ("inside the lock", use["locked"])]


def _against(use: JudgeUse) -> str:
    """A judge against the first baseline that it does not beat, or against both."""
    leads = {"certified majority": use["over_certified"], "a random judge": use["over_random"]}
    known_leads = [(other, lead) for other, lead in leads.items() if lead is not None]
    not_beaten = [(other, lead) for other, lead in known_leads if not _is_clear(lead)]
    return " and ".join(_apart(other, lead) for other, lead in not_beaten[:1] or known_leads)


def _apart(other: str, lead: Lead) -> str:
    """A difference in words, such as `3.39 points below certified majority [-4.35, -2.48]`."""
    delta = lead["delta"]
    points = f"{figure(abs(delta))} points {'above' if delta > 0 else 'below'}" if delta else "level with"
    doubt = ", on too few questions to tell" if lead["notes"] else ", an interval that includes 0"
    return f"{points} {other} {interval(lead['ci'])}{doubt if delta > 0 and not _is_clear(lead) else ''}"


def _is_clear(lead: Lead) -> bool:
    return lead["ci"][0] > 0 and not lead["notes"]
