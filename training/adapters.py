"""The same rewards for trainers that call otherwise: one callable with the weights inside, and the forms of two others.

Each is a few lines over `score_completions`, which gives a score and what it is made of. TRL's asynchronous GRPO has no
`reward_weights`, so it wants `TotalReward`. What verl and OpenRLHF call with was read in their documents, not run.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from eldgr_dspy.channels.undefined import Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.calls import COLUMNS, Call, texts_of
from eldgr_dspy.training.randomness import kept_random_state
from eldgr_dspy.training.rewards import Measured, Reward, weights_of


class TotalReward(Reward):
    """3.0 R_ORM + 0.5 R_format + mean_t R_step as one reward; each of its terms is logged under it, as `total/orm`.

    A term that is undefined adds 0, and is logged as `total/orm/undefined`; the sum itself is always defined.
    """

    weight: ClassVar[float] = 1.0

    def __init__(
        self, rewards: Sequence[Reward], *, weights: Sequence[float] | None = None, name: str = "total"
    ) -> None:
        """Make the reward.

        Args:
            rewards: The terms.
            weights: What each counts; None takes the paper's.
            name: Under which it is logged.

        Raises:
            ArgumentError: Two terms have one name, or there is not a weight for each.
        """
        own = weights_of(rewards)
        self.weights = tuple(own if weights is None else weights)
        if len(self.weights) != len(rewards):
            raise ArgumentError(f"{len(self.weights)} weights were given for {len(rewards)} rewards; give as many.")
        needs = dict.fromkeys(column for reward in rewards for column in reward.needs)
        super().__init__(name, list(needs), confidence=any(reward.confidence for reward in rewards), parts=rewards)

    def wants_passages(self, task: str | None) -> bool:
        """Whether one of its terms does; see `Reward.wants_passages`."""
        return any(reward.wants_passages(task) for reward in self.parts)

    def measure(self, call: Call) -> Measured:
        """Return the weighted sum of each completion with its terms; see `Reward.measure`."""
        found = dict(self._terms(call))
        sums = [
            sum(weight * value for weight, value in zip(self.weights, row, strict=True))
            for row in zip(*(one.rewards() for one in found.values()), strict=True)
        ]
        terms = {name: one.scores for name, one in found.items()}
        flags = {f"{name}/undefined": Scores.of((~scores.defined).astype(float)) for name, scores in terms.items()}
        parts = {f"{name}/{part}": scores for name, one in found.items() for part, scores in one.parts.items()}
        shown = {f"{name}_{column}": rows for name, one in found.items() for column, rows in one.shown.items()}
        return Measured(Scores.of(sums), {**terms, **flags, **parts}, shown)

    def _terms(self, call: Call) -> Iterator[tuple[str, Measured]]:
        """Measure the terms in order; where one fails, those behind it are told, for other processes may wait there."""
        for at, one in enumerate(self.parts):
            try:
                measured = one.measure(replace(call, reward=one.__name__))
            except Exception as error:
                for later in self.parts[at + 1 :]:
                    later.give_up(error)
                raise
            yield one.__name__, measured


@dataclass(frozen=True, slots=True)
class Scored:
    """A completion's score, finite, and what it is made of: `orm`, `ra_msd/fact` and so on, where they are defined."""

    score: float
    parts: Mapping[str, float]


def score_completions(
    rewards: Sequence[Reward],
    completions: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    prompts: Sequence[object] | None = None,
) -> list[Scored]:
    """Return the weighted sum of rewards for each completion, and its parts; all completions are scored in one call.

    Nobody is asked how likely tokens were, so rewards of steps are best made with `confidence=False`.

    Args:
        rewards: The terms, with their own weights.
        completions: What was written.
        rows: For each completion, the columns of `COLUMNS` that the rewards need.
        prompts: One a completion, where a reward reads them.

    Raises:
        ArgumentError: A row lacks a column, or the lengths differ; also what the rewards raise.
    """
    if not completions and not rows:
        return []
    total = TotalReward(rewards)
    if len(rows) != len(completions):
        raise ArgumentError(f"{len(rows)} rows were given for {len(completions)} completions; give one for each.")
    columns = {name: [row[name] for row in rows] for name in COLUMNS if all(name in row for row in rows)}
    with kept_random_state():
        measured = total.measure(Call(total.__name__, prompts or [""] * len(rows), texts_of(completions), columns))
    return [
        Scored(score, {name: value for name, part in measured.parts.items() if isinstance(value := part[at], float)})
        for at, score in enumerate(measured.rewards())
    ]


class VerlReward:
    """`compute_score` of verl: `compute_score = VerlReward([orm, format, ra_msd])` in the file that its setting names.

    The gold answer is `ground_truth`; task, question and evidence are entries of `extra_info`. It returns a mapping
    with `score`, the terms, and for each term whether it was `undefined`: verl wants the same keys of every completion,
    so the channels, which may be undefined, are not among them.
    """

    def __init__(self, rewards: Sequence[Reward]) -> None:
        self.rewards = tuple(rewards)
        weights_of(self.rewards)

    def __call__(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: object,
        extra_info: Mapping[str, object] | None = None,
        **ignored: Any,
    ) -> dict[str, float]:
        """Return the score of one completion; raises what `score_completions` raises."""
        (scored,) = score_completions(self.rewards, [solution_str], [{**(extra_info or {}), "gold": ground_truth}])
        names = [reward.__name__ for reward in self.rewards]
        terms = {name: scored.parts.get(name, 0.0) for name in names}
        return {
            "score": scored.score,
            **terms,
            **{flag: scored.parts[flag] for flag in map("{}/undefined".format, names)},
        }


class OpenRLHFReward:
    """`reward_func` of OpenRLHF: `reward_func = OpenRLHFReward([orm, format, ra_msd])` in the file of `remote_rm_url`.

    Each label is the row as a JSON object, with task, gold, question and evidence. A query is a prompt with what was
    written after it. It returns `rewards` and `scores`, tensors of one number a completion, and `extra_logs`, the mean
    of each part over the completions where it is defined, repeated for each.
    """

    def __init__(self, rewards: Sequence[Reward]) -> None:
        self.rewards = tuple(rewards)
        weights_of(self.rewards)

    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **ignored: Any
    ) -> dict[str, Any]:
        """Return the scores of a batch.

        Raises:
            ArgumentError: A label is no JSON object; also what `score_completions` raises.
        """
        import torch

        written = [query.removeprefix(prompt) for query, prompt in zip(queries, prompts, strict=True)]
        scored = score_completions(self.rewards, written, [_row(at, label) for at, label in enumerate(labels)], prompts)
        scores = torch.tensor([one.score for one in scored])
        names = dict.fromkeys(name for one in scored for name in one.parts)
        means = {name: Scores.of([one.parts.get(name, Undefined("")) for one in scored]).mean() for name in names}
        logs = {name: torch.full_like(scores, mean) for name, mean in means.items() if not isinstance(mean, Undefined)}
        return {"rewards": scores, "scores": scores, "extra_logs": logs}


def _row(at: int, label: str) -> Mapping[str, object]:
    try:
        row = json.loads(label)
    except (TypeError, ValueError):
        row = None
    if not isinstance(row, dict):
        raise ArgumentError(
            f"labels[{at}] is {label!r:.80}, but a JSON object with {', '.join(COLUMNS)} was expected; make it the "
            "column that label_key names."
        )
    return row
