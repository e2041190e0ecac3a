"""Finished runs under names, `[NAME=]RUN[:POOL]`, and a rule's answers and scores in them, question by question."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from eldgr_dspy.answer_types.base import Score
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished_run import RunRead, read_run
from eldgr_dspy.figures.results.summary_fields import Paired, PoolFigures, Summary
from eldgr_dspy.figures.scored import contrast_of_scores
from eldgr_dspy.splitting import folded_question

ScoreName = Literal["em", "f1"]

_MOST_IDS = 3  # ids that a message names


@dataclass(frozen=True)
class NamedRun:
    """A finished run under a name, with the names of the pools that are compared."""

    name: str
    run: RunRead
    pools: Sequence[str]
    summary: Summary

    def __str__(self) -> str:
        return self.name if self.name == str(self.run.path) else f"{self.name}={self.run.path}"


def named_runs(arguments: Iterable[str]) -> dict[str, NamedRun]:
    """Read finished runs by name, in the order given."""
    runs = dict[str, NamedRun]()
    for argument in arguments:
        name, _, place = argument.partition("=") if not Path(argument).is_dir() else ("", "", "")
        path, pool = _locate(place or argument)
        run, name = read_run(path), name if name and place else argument
        summary = run.summary()
        pools = [*summary["pools"]]
        if pool is not None and pool not in pools:
            listing = ", ".join(map(repr, pools)) or "none"
            raise ArgumentError(f"{run.path} has no pool {pool!r}; its pools are {listing}.")
        if name in runs:
            raise ArgumentError(f"{argument!r}: {name!r} is given already; give each run a name, NAME=RUN.")
        runs[name] = NamedRun(name, run, pools if pool is None else [pool], summary)
    return runs


def _locate(place: str) -> tuple[Path, str | None]:
    """A directory whose name has a colon is that directory; otherwise a pool's name may follow the last colon."""
    run, colon, pool = place.rpartition(":")
    if Path(place).is_dir() or not colon or not Path(run).is_dir():
        return Path(place), None
    return Path(run), pool


class Outcome(NamedTuple):
    """What a rule shipped on a question, and how that scored."""

    answer: str | None
    score: Score | None  # None without a gold answer
    gold: frozenset[str]
    text: str  # folded; rows with the same text are one question in a contrast


@dataclass(frozen=True)
class RuleScores:
    """A rule's outcomes on a pool of one run, by id; `figures` are the pool's part of `summary.json`."""

    entry: NamedRun
    pool: str
    figures: PoolFigures
    outcomes: Mapping[str, Outcome]

    @property
    def sha256(self) -> str:
        return str(self.entry.run.heads_of("pool")[self.pool]["details"]["sha256"])

    @property
    def scores(self) -> dict[str, Score]:
        """The scores of the questions with a gold answer, by id."""
        return {id_: of.score for id_, of in self.outcomes.items() if of.score is not None}

    def percentages(self, score: ScoreName, ids: Iterable[str]) -> list[float]:
        """Return a score of these questions in percent; each must have a gold answer."""
        scores = self.scores
        return [100.0 * (getattr(scores[id_], score) or 0.0) for id_ in ids]

    def remarks(self) -> Iterator[str]:
        """Yield a sentence on questions without a gold answer, and one on repeated texts, where there are any."""
        n, n_scored = len(self.outcomes), len(self.scores)
        distinct = len({self.outcomes[id_].text for id_ in self.scores})
        if n_scored < n:
            yield f"Scores are over the {questions(n_scored)} that have a gold answer, of {n:,}."
        if distinct < n_scored:
            yield f"{questions(n_scored)} have {distinct:,} different texts: a repeated text counts once in Δ and p."


def rule_scores_of(entry: NamedRun, pool: str, rule: str) -> RuleScores:
    """Return the scores of a rule in a run; an ArgumentError if it has none, or the decisions cannot be read."""
    figures = entry.summary["pools"][pool]
    if rule not in figures["rules"]:
        why = "it is withheld there" if rule in figures["withheld"] else "it was not among the rules"
        raise ArgumentError(
            f"{entry} has no result of rule {rule!r} on pool {pool!r}: {why}; give --rule one of "
            f"{', '.join(figures['rules'])}."
        )
    outcomes = {
        row["id"]: Outcome(
            row["answer"],
            None if row["em"] is None else Score(row["em"], row["f1"]),
            frozenset(row["gold"]),
            folded_question(row["question"]),
        )
        for row in entry.run.decisions(entry.summary)
        if (row["pool"], row["rule"]) == (pool, rule)
    }
    return RuleScores(entry, pool, figures, outcomes)


def require_the_same_questions(arms: Sequence[RuleScores]) -> None:
    """Raise an ArgumentError unless every run has the first run's task, questions and gold answers."""
    first, *others = arms
    for other in others:
        for arm, lacking in ((first, other), (other, first)):
            if missing := [id_ for id_ in arm.outcomes if id_ not in lacking.outcomes]:
                ids = ", ".join(map(repr, missing[:_MOST_IDS])) + (", ..." if len(missing) > _MOST_IDS else "")
                raise ArgumentError(
                    f"{questions(len(missing))} of {arm.entry} {'is' if len(missing) == 1 else 'are'} not in "
                    f"{lacking.entry}: {ids}; give runs on the same questions, with the same --limit."
                )
        tasks = first.figures["task"], other.figures["task"]
        if tasks[0] != tasks[1]:
            raise ArgumentError(
                f"{first.entry} is {tasks[0]} and {other.entry} is {tasks[1]}; give runs on one set of questions."
            )
        for id_, outcome in first.outcomes.items():
            if outcome.text != (text := other.outcomes[id_].text):
                raise ArgumentError(
                    f"Question {id_!r} is {outcome.text!r:.80} in {first.entry} and {text!r:.80} in {other.entry}; "
                    "give pools with the same questions."
                )
            if outcome.gold != (gold := other.outcomes[id_].gold):
                raise ArgumentError(
                    f"Question {id_!r} has gold answers {sorted(outcome.gold)!r:.80} in {first.entry} and "
                    f"{sorted(gold)!r:.80} in {other.entry}; give pools with the same gold answers."
                )


def contrast_of(pairs: Sequence[tuple[RuleScores, RuleScores]]) -> Paired:
    """Return the contrast of arms over one or more runs; outcomes of questions with the same text are one unit."""
    units = defaultdict[str, list[tuple[Score, Score]]](list)
    for arm, against in pairs:
        others = against.scores
        for id_, score in arm.scores.items():
            units[arm.outcomes[id_].text].append((score, others[id_]))
    return contrast_of_scores(Counter(map(tuple, units.values())))
