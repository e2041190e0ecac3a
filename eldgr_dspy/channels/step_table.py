"""The record of a step's seven channels, and a table of the records of a text, for logs, the command and trainers."""

from collections.abc import Mapping
from dataclasses import dataclass

from eldgr_dspy.channels.conflation import conflated
from eldgr_dspy.channels.grounding import Grounding
from eldgr_dspy.channels.rewards import PAPER, Columns, Weighting, columns_of, gate, step_reward
from eldgr_dspy.channels.undefined import Score, Scores, Undefined, Values
from eldgr_dspy.errors import ArgumentError, result_of
from eldgr_dspy.words import Channel


@dataclass(frozen=True, slots=True)
class StepScores:
    """One step.

    Attributes:
        channels: All seven, in [0, 1].
        gate: The smaller of `logic` and `fact`, of those that are defined and gated.
        reward: R_step (Eq. 2).
        conflated: Eq. 1, in the paper's form.
        conflated_not_neutral: The same over the documents that are not neutral (ours).
        least: min_d f_NLI, in [-1, 1].
        document: The grounding's number of the document that decides `fact`; None if nothing was retrieved.
        contradicting: The number of the document that contradicts the step most; None if no document does.
    """

    channels: Mapping[Channel, Score]
    gate: Score
    reward: Score
    conflated: bool | Undefined
    conflated_not_neutral: bool | Undefined
    least: Score
    document: int | None
    contradicting: int | None

    def to_json(self) -> dict[str, object]:
        """Return plain JSON values: null for undefined scores, with their reasons under `undefined`."""
        names = ("gate", "reward", "conflated", "conflated_not_neutral", "least")
        single: dict[str, Score | bool] = {name: getattr(self, name) for name in names}
        every = (*self.channels.items(), *single.items())
        return {
            "channels": {name: _plain(score) for name, score in self.channels.items()},
            **{name: _plain(score) for name, score in single.items()},
            "document": self.document,
            "contradicting": self.contradicting,
            "undefined": {name: score.reason for name, score in every if isinstance(score, Undefined)},
        }


@dataclass(frozen=True, slots=True)
class StepTable:
    """The scores of a text's steps, one for each span of the text, in order. A text may have none."""

    text: str
    spans: tuple[tuple[int, int], ...]
    scores: tuple[StepScores, ...]

    def __post_init__(self) -> None:
        if len(self.spans) != len(self.scores):
            raise ArgumentError(
                f"{len(self.spans)} spans were given with {len(self.scores)} scores; give one for each."
            )

    @property
    def reward(self) -> Score:
        """mean_t R_step over the steps whose reward is defined; undefined if none is defined."""
        return Scores.of([step.reward for step in self.scores], "reward").mean()

    def mean(self, channel: Channel) -> Score:
        """The mean of a channel over the steps where it is defined; undefined if there is not one."""
        return Scores.of([step.channels[channel] for step in self.scores], channel).mean()

    def to_json(self) -> dict[str, object]:
        """Return plain JSON values: `reward`, `undefined` (why, or null), and `steps` with their text."""
        reward = self.reward
        return {
            "reward": _plain(reward),
            "undefined": reward.reason if isinstance(reward, Undefined) else None,
            "steps": [
                {"start": start, "end": end, "text": self.text[start:end], **step.to_json()}
                for (start, end), step in zip(self.spans, self.scores, strict=True)
            ],
        }


def checked_tables(tables: object, n: int, name: str) -> list[StepTable]:
    """Return what a scorer of the user's returned for n texts, one table each; `name` is its method in an error."""
    tables = result_of(tables, name, "give a scorer whose score is not, or one with an async method ascore")
    if not isinstance(tables, list | tuple) or not all(isinstance(table, StepTable) for table in tables):
        raise ArgumentError(f"{name} returned {tables!r:.80}; expected a list of StepTable, one for each text.")
    if len(tables) != n:
        raise ArgumentError(f"{name} returned {len(tables)} tables for {n} texts; expected one for each.")
    return list(tables)


def score_steps(
    columns: Columns, grounding: Grounding | None = None, weighting: Weighting = PAPER, judged: Values | None = None
) -> tuple[StepScores, ...]:
    """Return the record of every step.

    Args:
        columns: A channel's scores, one a step; a channel that is left out is undefined.
        grounding: What the documents say of the steps; None for aspects that a judge stated.
        weighting: Weights, gate and threshold.
        judged: The score that is tested for conflation; by default `logic`, which reads no evidence.

    Raises:
        ArgumentError: As `weighted_mean` and `conflated`.
    """
    complete = columns_of(columns)
    if grounding is None:
        grounding = Grounding.of([Undefined("the step was not checked against documents")] * len(complete["logic"]))
    judged = complete["logic"] if judged is None else judged
    rest = zip(
        gate(complete, weighting),
        step_reward(complete, weighting),
        conflated(judged, grounding),
        conflated(judged, grounding, over="not_neutral"),
        grounding.least(),
        grounding.deciding(),
        grounding.contradicting(),
        strict=True,
    )
    return tuple(
        StepScores({name: column[at] for name, column in complete.items()}, *fields) for at, fields in enumerate(rest)
    )


def _plain(score: Score | bool) -> float | bool | None:
    return None if isinstance(score, Undefined) else score
