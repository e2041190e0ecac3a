"""A rule's answers and scores in finished runs, question by question, to compare them on the same questions.

The candidates of the runs may differ; the questions and their gold answers may not. Scores are percentages, and
differences percentage points.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from eldgr_dspy.base.formatting import questions
from eldgr_dspy.comparisons.named_runs import NamedRun
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.contrasts import as_figures
from eldgr_dspy.figures.results.summary_fields import Paired, PoolFigures
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics import Contrast, contrast_of_units

Score = Literal["em", "f1"]

_NAMED = 3  # ids that a message names


class Outcome(NamedTuple):
    """What a rule shipped on a question, and how it scored; None without a gold answer.

    Attributes:
        f1: None also where the answer type has none.
        text: The folded text of the question; rows with the same text are one question in a contrast.
    """

    answer: str | None
    em: float | None
    f1: float | None
    gold: frozenset[str]
    text: str


@dataclass(frozen=True)
class RuleScores:
    """A rule's outcomes on a pool of one run, by id."""

    named: NamedRun
    pool: str
    outcomes: Mapping[str, Outcome]

    @property
    def figures(self) -> PoolFigures:
        """The pool's part of `summary.json`."""
        return self.named.summary["pools"][self.pool]

    @property
    def scored(self) -> list[str]:
        """The ids of the questions with a gold answer."""
        return [id_ for id_, outcome in self.outcomes.items() if outcome.em is not None]

    def of(self, score: Score, ids: Sequence[str]) -> list[float]:
        """Return a score of questions with a gold answer."""
        return [100.0 * (getattr(self.outcomes[id_], score) or 0.0) for id_ in ids]


def rule_scores_of(named: NamedRun, pool: str, rule: str) -> RuleScores:
    """Return the scores of a rule in a run.

    Raises:
        ArgumentError: the rule has no result there, or the decisions cannot be read.
    """
    figures = named.figures(pool)
    if rule not in figures["rules"]:
        why = "it is withheld there" if rule in figures["withheld"] else "it was not among the rules"
        raise ArgumentError(
            f"{named} has no result of rule {rule!r} on pool {pool!r}: {why}; give --rule one of "
            f"{', '.join(figures['rules'])}."
        )
    outcomes = {
        row["id"]: Outcome(
            row["answer"], row["em"], row["f1"], frozenset(row["gold"]), folded_question(row["question"])
        )
        for row in named.run.decisions(named.summary)
        if (row["pool"], row["rule"]) == (pool, rule)
    }
    return RuleScores(named, pool, outcomes)


def require_the_same_questions(arms: Sequence[RuleScores]) -> None:
    """Check that every run has the questions and gold answers of the first.

    Raises:
        ArgumentError: naming the first questions that one of them lacks, or a different task or gold answer.
    """
    first, *others = arms
    for other in others:
        for arm, lacking in ((first, other), (other, first)):
            if missing := [id_ for id_ in arm.outcomes if id_ not in lacking.outcomes]:
                ids = ", ".join(map(repr, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
                raise ArgumentError(
                    f"{questions(len(missing))} of {arm.named} {'is' if len(missing) == 1 else 'are'} not in "
                    f"{lacking.named}: {ids}; give runs on the same questions, with the same --limit."
                )
        tasks = first.figures["task"], other.figures["task"]
        if tasks[0] != tasks[1]:
            raise ArgumentError(
                f"{first.named} is {tasks[0]} and {other.named} is {tasks[1]}; give runs on one set of questions."
            )
        for id_, outcome in first.outcomes.items():
            if outcome.gold != (gold := other.outcomes[id_].gold):
                raise ArgumentError(
                    f"Question {id_!r} has gold answers {sorted(outcome.gold)!r:.80} in {first.named} and "
                    f"{sorted(gold)!r:.80} in {other.named}; give pools with the same gold answers."
                )


def contrast_of(pairs: Sequence[tuple[RuleScores, RuleScores]]) -> Paired:
    """Return one arm against another on the same questions, over one or more runs, as a contrast of `summary.json`.

    The outcomes of questions with the same text are one unit, since they err together.
    """
    graded = any(outcome.f1 is not None for outcome in pairs[0][0].outcomes.values())
    return as_figures(_contrast(pairs, "em"), _contrast(pairs, "f1") if graded else None)


def _contrast(pairs: Sequence[tuple[RuleScores, RuleScores]], score: Score) -> Contrast:
    units = defaultdict[str, list[tuple[float, float]]](list)
    for arm, against in pairs:
        ids = arm.scored
        for id_, *scores in zip(ids, arm.of(score, ids), against.of(score, ids), strict=True):
            units[arm.outcomes[id_].text].append((scores[0], scores[1]))
    return contrast_of_units(Counter(tuple(sorted(unit)) for unit in units.values()))


def scored_remarks(arm: RuleScores) -> list[str]:
    """Return a sentence on questions without a gold answer, and one on repeated texts, where there are any."""
    n, n_scored, distinct = len(arm.outcomes), len(arm.scored), len({arm.outcomes[id_].text for id_ in arm.scored})
    notes = [f"Scores are over the {questions(n_scored)} that have a gold answer, of {n:,}."] if n_scored < n else []
    if distinct < n_scored:
        notes.append(
            f"{questions(n_scored)} have {distinct:,} different texts: a repeated text counts once in Δ and p."
        )
    return notes
