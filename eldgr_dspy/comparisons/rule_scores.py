"""A rule's scores in one finished run, question by question, to compare with another's on the same questions.

The candidates of the runs may differ; the questions and their gold answers may not. Scores are percentages, and
differences percentage points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eldgr_dspy.comparisons.named_runs import NamedRun
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.contrasts import as_figures
from eldgr_dspy.figures.results.summary import Paired
from eldgr_dspy.formatting import questions
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics import Contrast, align, contrast_by_cluster

_NAMED = 3  # ids that a message names


@dataclass(frozen=True)
class RuleScores:
    """A rule's scores on the pool of one run, by id; None without a gold answer, and F1 in arithmetic.

    Attributes:
        texts: The folded text of each question; rows with the same text are one question in a contrast.
    """

    named: NamedRun
    em: Mapping[str, float | None]
    f1: Mapping[str, float | None]
    gold: Mapping[str, frozenset[str]]
    texts: Mapping[str, str]


def rule_scores_of(named: NamedRun, rule: str) -> RuleScores:
    """Return the scores of a rule in a run.

    Raises:
        ArgumentError: the rule has no result there, or the decisions cannot be read.
    """
    if rule not in named.figures["rules"]:
        why = "it is withheld there" if rule in named.figures["withheld"] else "it was not among the rules"
        raise ArgumentError(
            f"{named} has no result of rule {rule!r} on pool {named.pool!r}: {why}; use one of "
            f"{', '.join(named.figures['rules'])}."
        )
    rows = [row for row in named.run.decisions(named.summary) if (row["pool"], row["rule"]) == (named.pool, rule)]
    return RuleScores(
        named,
        {row["id"]: _percent(row["em"]) for row in rows},
        {row["id"]: _percent(row["f1"]) for row in rows},
        {row["id"]: frozenset(row["gold"]) for row in rows},
        {row["id"]: folded_question(row["question"]) for row in rows},
    )


def _percent(score: float | None) -> float | None:
    return None if score is None else 100.0 * score


def require_the_same_questions(arms: Sequence[RuleScores]) -> None:
    """Check that every run has the questions and gold answers of the first.

    Raises:
        ArgumentError: naming the first questions that one of them lacks, or a different task or gold answer.
    """
    first, *others = arms
    for other in others:
        for arm, lacking in ((first, other), (other, first)):
            _require_ids(arm, lacking)
        tasks = first.named.figures["task"], other.named.figures["task"]
        if tasks[0] != tasks[1]:
            raise ArgumentError(
                f"{first.named} is {tasks[0]} and {other.named} is {tasks[1]}; give runs on one set of questions."
            )
        _require_gold(first, other)


def _require_gold(first: RuleScores, other: RuleScores) -> None:
    for id_, gold in first.gold.items():
        if gold != other.gold[id_]:
            raise ArgumentError(
                f"Question {id_!r} has gold answers {sorted(gold)!r:.80} in {first.named} and "
                f"{sorted(other.gold[id_])!r:.80} in {other.named}; give pools with the same gold answers."
            )


def _require_ids(arm: RuleScores, lacking: RuleScores) -> None:
    missing = [id_ for id_ in arm.gold if id_ not in lacking.gold]
    if missing:
        named = ", ".join(map(repr, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
        raise ArgumentError(
            f"{questions(len(missing))} of {arm.named} {'is' if len(missing) == 1 else 'are'} not in {lacking.named}: "
            f"{named}; give runs on the same questions, with the same --limit."
        )


def contrast_of(arm: RuleScores, against: RuleScores) -> Paired:
    """Return one run against another on the same questions, as a contrast of `summary.json`."""
    contrast = _paired(arm.em, against.em, arm.texts)
    graded = _paired(arm.f1, against.f1, arm.texts) if any(f1 is not None for f1 in arm.f1.values()) else None
    return as_figures(contrast, graded)


def _paired(
    rule: Mapping[str, float | None], against: Mapping[str, float | None], texts: Mapping[str, str]
) -> Contrast:
    aligned = align(rule, against, missing="drop")  # a question without a gold answer lacks it in both
    return contrast_by_cluster(aligned.rule, aligned.against, [texts[id_] for id_ in aligned.ids])
