"""The base of every reward here: a picklable callable that TRL's trainers take, with a name, a weight and its log.

It is called once with all completions of a generation batch, and returns one finite number for each, unweighted, so
that the logged mean of `orm` is the exact match; `reward_weights` adds 3.0, 0.5 and 1.0. What could not be measured
stays `Undefined` until the very end. There it becomes 0, because TRL has nothing better: None and NaN count as 0 too,
and infinity silently takes its whole group out of training.
"""

import random
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.model_outputs import Completion, outputs_of
from eldgr_dspy.training.reward_calls import Call, missing_column


@contextmanager
def kept_random_state() -> Iterator[None]:
    """Restore the global random state of Python, numpy, torch and every CUDA device after the block, error or not.

    A trainer samples from these streams, and the first number that a reward drew would change every later completion.
    A stream that does not exist yet is not saved: torch if nothing has imported it, CUDA if nothing has used it.
    """
    python, legacy, torch = random.getstate(), np.random.get_state(), sys.modules.get("torch")
    context: AbstractContextManager[Any] = nullcontext()
    if torch is not None:
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        context = torch.random.fork_rng(devices=list(devices), device_type="cuda")
    try:
        with context:
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)


@dataclass(frozen=True, slots=True)
class RewardResults:
    """A reward's results, one entry a completion.

    Attributes:
        scores: The reward, unweighted.
        parts: Its parts, by name; each is logged as the mean over the completions where it is defined.
        columns: Plain values for each completion in the table of completions, by column.
    """

    scores: Scores
    parts: Mapping[str, Scores] = field(default_factory=dict[str, Scores])
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict[str, Sequence[object]])


class Reward(ABC):
    """A reward function for TRL: `GRPOTrainer(reward_funcs=[...])`, `RLOOTrainer`, and others with the same interface.

    Attributes:
        __name__: Under which a trainer logs it; two of one run need two names.
        weight: Its weight in the paper's completion reward; see `weights_of`.
        needs: The columns of the dataset that it reads, of `COLUMNS`.
        confidence: Whether it reads token confidence, which costs a forward pass of the policy.
        parts: The rewards that it is made of.
    """

    weight: ClassVar[float]

    def __init__(
        self, name: str, needs: Sequence[str], *, confidence: bool = False, parts: Sequence["Reward"] = ()
    ) -> None:
        self.__name__, self.parts = name, tuple(parts)
        columns = dict.fromkeys([*needs, *(column for part in parts for column in part.needs)])
        self.needs: tuple[str, ...] = tuple(columns)
        self.confidence: bool = confidence or any(part.confidence for part in parts)

    def prepare(self) -> None:
        """Load its model, so that a missing one is reported before a run and not at its first step.

        Raises:
            ArgumentError: It cannot be loaded.
        """
        for reward in self.parts:
            reward.prepare()

    def check(self, call: Call) -> None:
        """Raise if the dataset has a value that cannot be rewarded, so that it is reported before a run.

        Args:
            call: All rows of the dataset as the columns of one call, without completions.

        Raises:
            ArgumentError: Naming the column.
        """
        for reward in self.parts:
            reward.check(replace(call, reward=reward.__name__))

    @abstractmethod
    def measure(self, call: Call) -> RewardResults:
        """Return the results for each completion of a call.

        Raises:
            ArgumentError: A column is missing, or has a value that is not allowed.
        """

    def __call__(self, prompts: Sequence[object], completions: Sequence[Completion], **columns: object) -> list[float]:
        """Return the reward of each completion: finite, unweighted, 0 if it is undefined.

        The global random state of Python, numpy, torch and CUDA is the same after the call as before. If the trainer
        passes `log_metric`, it gets for each completion whether it is undefined and each defined part, and the seconds
        taken; if it passes `log_extra`, it gets what the reward shows of each completion, as `orm_answer`.

        Args:
            prompts: One a completion.
            completions: Texts, or conversations of which only the assistant's messages are read. The thinking of a
                reasoning model has steps, but no answer; see `eldgr_dspy.training.model_outputs`.
            columns: The dataset's columns, one entry a completion, and whatever else the trainer passes.

        Raises:
            ArgumentError: A column is missing, or has a value that is not allowed.
            ScoringError: A scorer failed.
        """
        start = time.perf_counter()
        call = Call.of(self.__name__, prompts, completions, columns)
        with kept_random_state():
            results = self.measure(call)
        self._log(results, time.perf_counter() - start, columns.get("log_metric"), columns.get("log_extra"))
        return [0.0 if isinstance(score, Undefined) else score for score in results.scores]

    def _log(self, results: RewardResults, seconds: float, log_metric: object, log_extra: object) -> None:
        if callable(log_metric):
            undefined = Scores.of((~results.scores.defined).astype(float))
            for name, part in {"undefined": undefined, **results.parts, "seconds": [seconds]}.items():
                for value in part:  # one by one, so that a trainer's mean is that over the completions of all processes
                    if not isinstance(value, Undefined):
                        log_metric(f"{self.__name__}/{name}", value)
        if callable(log_extra):
            for column, values in results.columns.items():
                log_extra(f"{self.__name__}_{column}", list(values))


def weights_of(rewards: Sequence[Reward]) -> list[float]:
    """Return the paper's weight of each reward, for `GRPOConfig(reward_weights=...)`.

    Raises:
        ArgumentError: Two have one name: TRL would log both under it, as one.
    """
    require_names(reward.__name__ for reward in rewards)
    return [reward.weight for reward in rewards]


def require_names(names: Iterable[str]) -> None:
    """Raise an `ArgumentError` if two rewards of a run have one name."""
    for name, n in Counter(names).items():
        if n > 1:
            raise ArgumentError(
                f"{n} rewards are named {name!r}, and a trainer would log them as one; give each a name of its own."
            )


def require_columns(dataset: Any, rewards: Sequence[Reward]) -> None:
    """Raise unless a dataset has the columns, prompts, passages and gold answers that rewards read.

    Args:
        dataset: Of Hugging Face's `datasets`. If it is streamed, only the columns of the first row are checked.
        rewards: The rewards of this package.

    Raises:
        ArgumentError: In one sentence: what is missing, and how to fix it.
    """
    first: Mapping[str, Any] = next(iter(dataset), {})
    if not first:
        raise ArgumentError("The dataset must have at least one row; give one with a column 'prompt'.")
    if "prompt" not in first:
        raise ArgumentError(
            f"The dataset must have the column 'prompt'; got {', '.join(map(repr, first))}. Add one that holds text, "
            "or messages with role and content."
        )
    for reward in rewards:
        for name in reward.needs:
            if name not in first:
                raise ArgumentError(missing_column(reward.__name__, name))
        if reward.needs and hasattr(dataset, "__len__"):
            rows = list(dataset.select_columns(list(reward.needs)) if hasattr(dataset, "select_columns") else dataset)
            columns = {name: [row.get(name) for row in rows] for name in reward.needs}
            reward.check(Call(reward.__name__, (), outputs_of([""] * len(rows)), columns))


def reasons(scores: Sequence[Score]) -> list[str | None]:
    """Return why each score is undefined; None for a defined one."""
    return [score.reason if isinstance(score, Undefined) else None for score in scores]
