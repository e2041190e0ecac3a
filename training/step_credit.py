"""Credit for single steps: the advantage of a token has the reward of its own step in place of the mean over the steps.

A completion that is half right earns the mean of its steps, and each of its tokens is pushed the same way, those of the
wrong step too. Here the tokens of a step get what the whole completion would get if all its steps were like this one:

    A[i, token of step t] = A[i] + w (R_step[i, t] - mean_t R_step[i, t]) / s

A[i] is TRL's own advantage, w the weight of the reward of the steps, and s makes the result comparable within the
group: the standard deviation of the totals with the spread inside the completions added, or 1 if rewards are not
scaled. The mean of A[i, t] over the steps of a completion, each counted once, is A[i]. The mean over its tokens is
not, if steps differ in length and in reward.

A token belongs to the step in which it ends, as for the token confidence. One that belongs to no step, or to a step
whose reward is undefined, keeps A[i]: the answer line, and the end of the sequence.

Source: ours. The process supervision of the GRPO paper gives a token the sum over its own and all later steps.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.completions import Output, outputs_of
from eldgr_dspy.training.confidence import token_confidence
from eldgr_dspy.training.padding import without_padding
from eldgr_dspy.training.steps_reward import StepReward
from eldgr_dspy.training.trainer import PolicyConfidence, functions_of

if TYPE_CHECKING:
    from trl.trainer.grpo_trainer import GRPOTrainer


class Spread(NamedTuple):
    """How the steps of a completion differ from their mean.

    Attributes:
        deviations: For each token, the reward of its step minus the mean; 0 for a token without one.
        variance: The mean of the squares over the steps, each counted once.
    """

    deviations: list[float]
    variance: float


def spread(tokenizer: Any, ids: Sequence[int], text: str, steps: Sequence[tuple[int, int, float | None]]) -> Spread:
    """Return how the steps of one completion differ from their mean, by token.

    Only steps with a reward, and in which a token ends, count for the mean. If the tokens do not spell the text, all
    deviations are 0.

    Args:
        tokenizer: Of transformers.
        ids: The tokens of the completion.
        text: The text that was split into steps.
        steps: Start, end and reward of each step; None for an undefined one.
    """
    special = set(tokenizer.all_special_ids)
    kept = [at for at, token in enumerate(ids) if token not in special]
    tokens = token_confidence(tokenizer, ids, [0.0] * len(ids))
    places = tokens.places(text, [(start, end) for start, end, _ in steps]) or []
    ended = [(kept[place], reward) for place, (_, _, reward) in zip(places, steps, strict=False)]
    credited = [(own, reward) for own, reward in ended if own and reward is not None]
    mean = math.fsum(reward for _, reward in credited) / max(len(credited), 1)
    deviations = [0.0] * len(ids)
    for own, reward in credited:
        for at in own:
            deviations[at] = reward - mean
    return Spread(deviations, math.fsum((reward - mean) ** 2 for _, reward in credited) / max(len(credited), 1))


def scales(totals: Any, variances: Any, group_size: int, scaled: str) -> Any:
    """Return s for each completion of all processes, as a tensor.

    Args:
        totals: The weighted sum of the rewards of each completion, group by group.
        variances: The weighted variance inside each completion.
        group_size: How many completions a prompt has.
        scaled: `scale_rewards` of TRL: "group", "batch" or "none".
    """
    import torch

    if scaled == "none":
        return torch.ones_like(totals)
    shape = (1, -1) if scaled == "batch" else (-1, group_size)
    grouped = totals.view(shape)
    between = grouped.var(dim=1) if grouped.size(1) > 1 else torch.zeros_like(grouped[:, 0])
    found = (between + variances.view(shape).mean(dim=1)).sqrt() + 1e-4  # which TRL adds too
    return found.repeat_interleave(grouped.size(1))


class StepCredit(PolicyConfidence):
    """What `StepCreditGRPOTrainer` adds to `ConfidenceGRPOTrainer`: advantages by token, of shape (B, T)."""

    def __init__(self, *args: Any, steps: str = "ra_msd", **kwargs: Any) -> None:
        """Make the trainer, with TRL's arguments.

        Args:
            args: Of TRL's trainer.
            steps: The name of the reward whose steps are credited, a `StepReward`.
            kwargs: Of TRL's trainer.

        Raises:
            ArgumentError: There is no such reward among `reward_funcs`, or `multi_objective_aggregation` is not
                "sum_then_normalize"; also as `ConfidenceGRPOTrainer`.
        """
        self._steps, self._at = steps, 0
        super().__init__(*args, **kwargs)
        self._tables: list[str | None] = []
        self._rewards: Any = None
        self._spread: list[Spread] = []

    def _require_ready(self, given: Mapping[str, Any]) -> list[Any]:
        """Raise also unless there are steps to credit, as `__init__` says."""
        found = {one.__name__: at for at, one in enumerate(functions_of(given)) if isinstance(one, StepReward)}
        if self._steps not in found:
            raise ArgumentError(
                f"steps must be the name of a StepReward among the rewards ({', '.join(found) or 'no reward is one'}); "
                f"got {self._steps!r:.80}. Give one, or train with ConfidenceGRPOTrainer."
            )
        summed = "sum_then_normalize"
        aggregation = getattr(given.get("args"), "multi_objective_aggregation", summed)
        if aggregation != summed:
            raise ArgumentError(
                f"multi_objective_aggregation must be {summed!r} to credit steps; got {aggregation!r:.80}. Set it, or "
                "train with ConfidenceGRPOTrainer."
            )
        self._at = found[self._steps]
        return super()._require_ready(given)

    def _log_completion_extra(self, column: str, values: list[Any]) -> None:
        """Keep the tables of the steps, which the reward shows of each completion."""
        if column == f"{self._steps}_steps":
            self._tables = list(values)
        above: Any = super()
        above._log_completion_extra(column, values)

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        trainer, above = _any(self), _any(super())
        self._rewards = above._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        rows = zip(completion_ids_list, outputs_of(completions, prompts, self), self._tables, strict=True)
        self._spread = [spread(tokenizer, ids, one.whole, steps_in(table, one)) for ids, one, table in rows]
        return self._rewards

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        trainer, above = _any(self), _any(super())
        output = above._generate_and_score_completions(inputs)
        advantages = output["advantages"]
        if advantages.dim() != 1 or len(advantages) != len(self._spread):
            raise ArgumentError(
                "TRL's GRPOTrainer must score completions as in trl 1.16, on which StepCreditGRPOTrainer is built; "
                "with this release, use ConfidenceGRPOTrainer."
            )
        weights = trainer.reward_weights.to(advantages.device)
        weight = weights[self._at]
        inside = advantages.new_tensor([one.variance for one in self._spread]) * weight**2
        size = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
        totals = (self._rewards * weights).nansum(dim=1)
        scale = scales(totals, trainer.accelerator.gather(inside), size, trainer.scale_rewards)
        first = trainer.accelerator.process_index * len(advantages)
        own = scale[first : first + len(advantages), None]
        width = output["completion_ids"].size(1)
        rows = [one.deviations + [0.0] * (width - len(one.deviations)) for one in self._spread]
        output["advantages"] = advantages[:, None] + weight * advantages.new_tensor(rows).view(len(rows), width) / own
        return output


if TYPE_CHECKING:

    class StepCreditGRPOTrainer(StepCredit, GRPOTrainer):
        """TRL's trainer, with the token confidence of the policy and credit for single steps."""


@cache
def step_credit_trainer() -> "type[GRPOTrainer]":
    """Return `StepCreditGRPOTrainer`, which is made on first use: TRL takes seconds to import."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    bases = (StepCredit, GRPOTrainer)
    return type("StepCreditGRPOTrainer", bases, {"__doc__": StepCredit.__doc__, "__module__": __name__})


def steps_in(table: str | None, output: Output) -> list[tuple[int, int, float | None]]:
    """Return where each step of a table is in the whole output, and its reward; nothing if the scorer failed."""
    rows = json.loads(table)["steps"] if table else []
    scored = without_padding(output.reasoning.text)[0].within(output.reasoning)  # the text that was split into steps
    return [(*scored.span(row["start"], row["end"]), row["reward"]) for row in rows]


def _any(trainer: Any) -> Any:
    """Return the trainer as one whose attributes are TRL's."""
    return trainer


def __getattr__(name: str) -> Any:
    if name == "StepCreditGRPOTrainer":
        return step_credit_trainer()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
