"""A training run from a recipe: `python -m eldgr_dspy.training.grpo --config ra_msd --dataset_name data`.

It is TRL's GRPO with our rewards, the policy's token confidence, and a record of the recipe. A run is resumed as TRL
resumes it, with the settings that are given. Every flag and field of `GRPOConfig` and `ModelConfig` is TRL's own; under
`accelerate launch -m` it runs on many processes.
"""

import json
import sys
from collections.abc import Sequence, Sized
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from eldgr_dspy.base.files import replacing
from eldgr_dspy.base.system import refusal
from eldgr_dspy.errors import ArgumentError, EldgrError, brief
from eldgr_dspy.showing import display_text
from eldgr_dspy.training.recipe import NAMES, RewardArguments, recipe_path, rewards_of
from eldgr_dspy.training.reward_base import Reward, require_columns, require_names, weights_of


class Recipe(NamedTuple):
    """A recipe as it was parsed: our fields, and those of TRL."""

    rewards: RewardArguments
    script: Any
    training: Any
    model: Any
    datasets: Any


def parse_arguments(arguments: Sequence[str]) -> Recipe:
    """Return the recipe that `--config` names, with other flags of a command line replacing its values."""
    words = [str(recipe_path(word)) if flag == "--config" else word for flag, word in pairwise(["", *arguments])]
    from yaml import YAMLError  # which transformers brings

    trl = _trl()
    groups = (RewardArguments, trl.ScriptArguments, trl.GRPOConfig, trl.ModelConfig, trl.DatasetMixtureConfig)
    try:
        recipe = Recipe(*trl.TrlParser(groups).parse_args_and_config(words))
    except (ValueError, TypeError, ImportError, YAMLError) as error:
        raise ArgumentError(
            f"The recipe cannot be read ({brief(error)}); its fields are those of RewardArguments here, and of TRL's "
            "GRPOConfig, ModelConfig and ScriptArguments."
        ) from error
    flags = {argument.removeprefix("--rewards=") for argument in words}
    if strangers := [name for name in recipe.rewards.rewards if name not in NAMES and name not in flags]:
        raise ArgumentError(
            f"rewards has {strangers[0]!r:.80}, and a recipe imports nothing. Give all rewards on the command line: "
            f"--rewards {' '.join(map(str, recipe.rewards.rewards)):.200}"
        )
    if recipe.training.remove_unused_columns:
        raise ArgumentError("remove_unused_columns must be false, for rewards read columns; got true. Leave it out.")
    return recipe


def train(recipe: Recipe) -> Any:
    """Train with a recipe, save the model into its output folder, and return the trainer."""
    folder, resume = Path(recipe.training.output_dir), recipe.training.resume_from_checkpoint
    resume = {"true": True, "false": False}.get(str(resume).lower(), resume)  # on the command line it is a text
    is_begun = any(folder.glob("checkpoint-*"))
    if not resume and is_begun:
        raise ArgumentError(
            f"output_dir={str(folder)!r} has checkpoints of a run; set resume_from_checkpoint: true to resume it, "
            "or give another output_dir."
        )
    if resume and not (is_begun if resume is True else Path(resume).is_dir()):
        raise ArgumentError(
            f"resume_from_checkpoint must be the folder of a checkpoint, or true if output_dir={str(folder)!r} has one;"
            f" got {recipe.training.resume_from_checkpoint!r:.80}. Leave it out to begin a run."
        )
    trainer = trainer_of(recipe)
    rows, prompts = trainer.train_dataset, recipe.training.generation_batch_size // recipe.training.num_generations
    if isinstance(rows, Sized) and len(rows) < prompts:
        raise ArgumentError(
            f"The data must have a row for each of the {prompts} prompts that are sampled at once; got {len(rows)}. "
            "Give more, or lower per_device_train_batch_size or steps_per_generation."
        )
    if trainer.is_world_process_zero():
        folder.mkdir(parents=True, exist_ok=True)
        fields = {**asdict(recipe.rewards), **asdict(recipe.model), **recipe.training.to_dict()}
        with replacing(folder / "recipe.json") as out:
            out.write(json.dumps(fields, indent=1, default=str).encode("ascii") + b"\n")
    from peft import PeftModel

    # PEFT counts those of any model, also of one that is packed in 4 bits or that DeepSpeed ZeRO-3 has split off.
    own, whole = PeftModel.get_nb_trainable_parameters(trainer.model)
    trainer.accelerator.print(f"Trainable parameters: {own:,} of {whole:,} ({own / max(whole, 1):.3%}).")
    trainer.log_metrics("train", trainer.train(resume_from_checkpoint=resume).metrics)
    trainer.save_state()
    trainer.save_model(str(folder))
    trainer.accelerator.print(f"The model is in {folder}.")
    if recipe.training.push_to_hub:
        trainer.push_to_hub(dataset_name=recipe.script.dataset_name)
    return trainer


def trainer_of(recipe: Recipe) -> Any:
    """Return the trainer of a recipe."""
    trl, settings, rewards = _trl(), recipe.training, rewards_of(recipe.rewards)
    if recipe.model.model_name_or_path is None:
        raise ArgumentError("The recipe names no model; give model_name_or_path, a folder or a name on the Hub.")
    own = [reward for reward in rewards if isinstance(reward, Reward)]
    if settings.reward_weights is None and own == rewards:
        settings.reward_weights = weights_of(rewards)
    settings.model_init_kwargs = {
        "revision": recipe.model.model_revision,
        "attn_implementation": recipe.model.attn_implementation,
        "dtype": recipe.model.dtype,
        **(settings.model_init_kwargs or {}),
    }
    train, test = data_of(recipe)
    datasets = [dataset for dataset in (train, test) if dataset is not None]
    for dataset in datasets:
        require_columns(dataset, own)
    for reward in own:
        reward.prepare()  # before the policy is loaded, which takes long
    try:
        trainer = trl.GRPOTrainer(
            model=recipe.model.model_name_or_path,
            reward_funcs=rewards,
            args=settings,
            train_dataset=train,
            eval_dataset=test,
            quantization_config=trl.get_quantization_config(recipe.model),
            peft_config=trl.get_peft_config(recipe.model),
        )
    except OSError as error:  # which transformers raises if there is no such model or tokenizer
        message = " ".join(str(error).split())
        raise ArgumentError(
            f"model_name_or_path={recipe.model.model_name_or_path!r} cannot be loaded ({brief(message, 200)}); give a "
            "folder with a model and its tokenizer, or a name on the Hugging Face Hub."
        ) from error
    except (ValueError, ImportError, RuntimeError) as error:  # such as of vLLM or wandb, if it is not installed
        message = " ".join(str(error).split()).rstrip(".")
        raise ArgumentError(
            f"TRL refuses the recipe: {brief(message, 200)}. Change the field that it names."
        ) from error
    require_names(trainer.reward_func_names)  # TRL names functions, partial ones, objects and models each in its way
    for dataset in datasets:
        _require_template(dataset, trainer.processing_class)
    return trainer


def _require_template(dataset: Any, tokenizer: Any) -> None:
    """Raise unless the tokenizer can render the first prompt; TRL would fail at the first step, in many lines."""
    if isinstance(next(iter(dataset))["prompt"], str) or getattr(tokenizer, "chat_template", None):
        return
    name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
    raise ArgumentError(
        f"The column 'prompt' holds messages, but the tokenizer {name!r} has no chat template to render them; set "
        "tokenizer.chat_template, train from an instruction-tuned model, or give prompts as text."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error that is raised on purpose is one sentence, and ends with exit code 1."""
    try:
        trainer = train(parse_arguments(sys.argv[1:] if arguments is None else arguments))
    except EldgrError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(display_text(refusal(error)))
    if hasattr(trainer, "end"):  # of transformers from 5.18
        trainer.end()


def _trl() -> Any:
    try:
        import trl
    except ImportError as error:
        raise ArgumentError("Training needs TRL; run: pip install 'eldgr_dspy[train,nli]'") from error
    return trl


def data_of(recipe: Recipe) -> tuple[Any, Any]:
    """Return the data to train on, and those to evaluate on or None."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError

    script, n = recipe.script, recipe.rewards.train_rows
    if recipe.datasets.datasets:
        splits = _trl().get_dataset(recipe.datasets)
    elif script.dataset_name is None:
        raise ArgumentError("The recipe names no data; give dataset_name, a folder with train.jsonl, or datasets.")
    else:
        try:
            splits = load_dataset(script.dataset_name, name=script.dataset_config, streaming=script.dataset_streaming)
        except (OSError, ValueError, DatasetsError) as error:
            raise ArgumentError(
                f"dataset_name={script.dataset_name!r} cannot be loaded ({brief(error, 200)}); give a folder with "
                "train.jsonl, or a name on the Hugging Face Hub."
            ) from error
    train = _split(splits, script, "dataset_train_split")
    if n is not None and n < 1:
        raise ArgumentError(f"train_rows must be a whole number of at least 1; got {n}. Leave it out for all rows.")
    if n is not None:
        train = train.take(min(n, len(train)) if isinstance(train, Sized) else n)  # one that is streamed has no length
    evaluates = recipe.training.eval_strategy != "no"
    return train, _split(splits, script, "dataset_test_split") if evaluates else None


def _split(splits: Any, script: Any, field: str) -> Any:
    name = getattr(script, field)
    if name not in splits:
        raise ArgumentError(
            f"{field} must be a split of the data ({', '.join(splits)}); got {name!r}. Give one of them."
        )
    return splits[name]


if __name__ == "__main__":
    main()
