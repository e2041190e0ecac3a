"""TRL's GRPO trainer, with the token confidence of the policy passed to every reward.

Without it each reward that needs the confidence computes it by itself, as under `trl grpo`. The numbers are the same;
with it they are computed once, for all rewards, and anything missing is reported before the run starts.
"""

from collections.abc import Mapping
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.policy import policy_confidence
from eldgr_dspy.training.requirements import require_columns, require_template
from eldgr_dspy.training.rewards import Reward, require_names
from eldgr_dspy.training.steps_reward import TOKEN_CONFIDENCE

if TYPE_CHECKING:
    from trl.trainer.grpo_trainer import GRPOTrainer


# Part of what TRL's `_generate` returns.
_PROMPT_IDS, _COMPLETION_IDS, _EXTRA, _IMAGES = 0, 1, 5, 6


class PolicyConfidence:
    """What `ConfidenceGRPOTrainer` adds to TRL's trainer; put it before `GRPOTrainer` among the bases of your own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make the trainer, with TRL's arguments.

        Raises:
            ArgumentError: A dataset lacks a column or the passages that a reward reads, or the tokenizer a chat
                template; two rewards have one name; or an NLI model cannot be loaded.
        """
        given = signature(super().__init__).bind_partial(*args, **kwargs).arguments
        datasets = self._require_ready(given | given.get("kwargs", {}))  # before the model is built, which takes long
        super().__init__(*args, **kwargs)
        trainer: Any = self
        require_names(trainer.reward_func_names)
        for dataset in datasets:
            require_template(dataset, trainer.processing_class)

    def _require_ready(self, given: Mapping[str, Any]) -> list[Any]:
        """Raise unless the arguments of the trainer have what its rewards need, and return its datasets."""
        held_out, rewards = given.get("eval_dataset"), [one for one in functions_of(given) if isinstance(one, Reward)]
        all_data = [given.get("train_dataset"), *(held_out.values() if isinstance(held_out, dict) else [held_out])]
        datasets = [dataset for dataset in all_data if dataset is not None]
        for dataset in datasets:
            require_columns(dataset, rewards, given.get("args"))
        for reward in rewards:
            reward.prepare()
        return datasets

    def _generate(self, prompts: list[Any]) -> Any:
        above: Any = super()
        made = above._generate(prompts)
        if not (isinstance(made, tuple) and len(made) > _IMAGES and isinstance(made[_EXTRA], dict)):
            raise ArgumentError(
                "TRL's GRPOTrainer must generate as in trl 1.16, on which ConfidenceGRPOTrainer is built; with this "
                "release, use TRL's GRPOTrainer, where each reward asks the policy by itself."
            )
        if not made[_IMAGES] and self._wants_confidence():
            made[_EXTRA][TOKEN_CONFIDENCE] = policy_confidence(self, made[_PROMPT_IDS], made[_COMPLETION_IDS])
        return made

    def _wants_confidence(self) -> bool:
        """Return whether any reward reads it; one from outside this package may."""
        trainer: Any = self
        return any(not isinstance(reward, Reward) or reward.confidence for reward in trainer.reward_funcs)


def functions_of(given: Mapping[str, Any]) -> list[Any]:
    """Return the reward functions among the arguments of a trainer, one or several."""
    functions = given.get("reward_funcs")
    return functions if isinstance(functions, list) else [functions]


if TYPE_CHECKING:

    class ConfidenceGRPOTrainer(PolicyConfidence, GRPOTrainer):
        """TRL's trainer, with the token confidence of the policy passed to every reward."""


@cache
def confidence_trainer() -> "type[GRPOTrainer]":
    """Return `ConfidenceGRPOTrainer`, which is made on first use: TRL takes seconds to import."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    bases = (PolicyConfidence, GRPOTrainer)
    return type("ConfidenceGRPOTrainer", bases, {"__doc__": PolicyConfidence.__doc__, "__module__": __name__})


def __getattr__(name: str) -> Any:
    if name == "ConfidenceGRPOTrainer":
        return confidence_trainer()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
