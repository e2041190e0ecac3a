"""Time a step of training: `python -m benchmarks.training [--shape NAME] [--device NAME] [--steps N]`.

The recipe `ra_msd`, run by its trainer: GRPO with LoRA on a policy of the shape of Qwen2.5-3B, the seven channels read
by a model of the shape of nli-deberta-v3-small on the same device, both with random weights. A random policy never ends
a text, so each completion is as long as allowed. Without a GPU the default is `--shape tiny --device cpu`, half a
minute of one core, which shows that everything runs but not how long the real shape takes.

Seconds of a step are split into generation, token confidence, rewards, and the update: everything else up to the end
of the step. The first step is left out, because the device warms up in it.
"""

import argparse
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PrinterCallback, TrainerCallback

from benchmarks._shapes import COMPLETIONS, SHAPES, Shape, policy_config, policy_tokenizer, rows
from benchmarks._timing import line, peak_mib
from benchmarks.nli_times import model_of_real_shape
from eldgr_dspy.channels.protocols import NLI
from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.programs.scoring.cross_encoder import CrossEncoderNLI
from eldgr_dspy.training import steps_reward
from eldgr_dspy.training.grpo import Recipe, parse_arguments
from eldgr_dspy.training.policy import policy_confidence
from eldgr_dspy.training.recipe import rewards_of

AIM = 25.0
ON = {
    "cpu": ("--use_cpu", "true", "--bf16", "false", "--dtype", "float32"),
    "cuda": ("--nli_dtype", "bfloat16", "--nli_batch_size", "256"),
}
"""The fields of the recipe that the device sets; a GPU reads pairs in half precision, many at once."""

ALIKE = 0.02


class Clock:
    """Seconds by name, each measured while the device has no other work left."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self.wait = wait
        self.seconds = defaultdict[str, float](float)

    def now(self) -> float:
        """Return the time, once the device has finished its work."""
        self.wait()
        return time.perf_counter()

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Add the seconds of the block."""
        start = self.now()
        yield
        self.seconds[name] += self.now() - start


class Parts:
    """Put before a trainer: the time of generation, and of the rewards with the token confidence that they ask for."""

    clock: Clock

    def _generate(self, prompts: list[Any]) -> Any:
        above: Any = super()
        with self.clock.timing("generation"):
            return above._generate(prompts)

    def _calculate_rewards(self, *arguments: Any) -> Any:
        above: Any = super()
        with self.clock.timing("reward"):
            return above._calculate_rewards(*arguments)


class Steps(TrainerCallback):
    """The time of whole steps; the first is discarded."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.start = clock, 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.start = self.clock.now()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End a step, after the optimizer."""
        self.clock.seconds["step"] += self.clock.now() - self.start
        if state.global_step == 1:
            self.clock.seconds.clear()


class Counting:
    """An NLI model that counts the pairs it is asked about."""

    def __init__(self, nli: NLI) -> None:
        self.nli, self.name, self.pairs = nli, nli.name, 0

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        self.pairs += len(pairs)
        return self.nli.probabilities(pairs)


def recipe_of(shape: Shape, device: str, steps: int, scratch: Path) -> Recipe:
    """Return the recipe with the NLI model of the shape, without saving and without a shared corpus."""
    nli = model_of_real_shape(scratch / "nli", **shape.nli)
    options = ["--output_dir", str(scratch / "run"), "--max_steps", str(steps + 1), "--save_strategy", "no"]
    options += ["--per_device_train_batch_size", str(COMPLETIONS)]
    flags = [*options, "--disable_tqdm", "true", "--nli", str(nli), *shape.flags, *ON[device]]
    recipe = parse_arguments(["--config", "ra_msd", *flags])
    recipe.rewards.corpus = None
    return recipe


def policy_of(shape: Shape, device: str, dtype: str) -> Any:
    """Return a policy whose every next token is about as likely as any other."""
    torch.manual_seed(0)
    factory: Any = AutoModelForCausalLM
    with torch.device(device):
        model = factory.from_config(policy_config(shape), dtype=getattr(torch, dtype))
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(ALIKE)  # otherwise tied embeddings repeat the last token forever
    return model


def trainer_of(shape: Shape, recipe: Recipe, device: str, clock: Clock) -> tuple[Any, Counting]:
    """Return the trainer of a recipe with a clock in it, and the NLI model of its rewards."""
    import trl
    from datasets import Dataset
    from trl.trainer.grpo_trainer import GRPOTrainer

    library: Any = trl
    factory: Any = type("Timed", (Parts, GRPOTrainer), {"clock": clock})

    def confidence(*arguments: Any) -> Any:
        with clock.timing("confidence"):
            return policy_confidence(*arguments)

    module: Any = steps_reward
    module.policy_confidence = confidence
    rewards = rewards_of(recipe.rewards)
    options: Any = recipe.rewards
    nli = CrossEncoderNLI(str(options.nli), device=device, dtype=options.nli_dtype, batch_size=options.nli_batch_size)
    counting = Counting(nli)
    rewards[2].scorer = replace(rewards[2].scorer, nli=counting)
    settings = recipe.training
    trainer = factory(
        model=policy_of(shape, device, recipe.model.dtype),
        reward_funcs=rewards,
        args=settings,
        train_dataset=Dataset.from_list(rows(settings.per_device_train_batch_size * settings.max_steps)),
        processing_class=policy_tokenizer(shape),
        peft_config=library.get_peft_config(recipe.model),
        callbacks=[Steps(clock)],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer, counting


def measure(name: str, device: str, steps: int) -> None:
    clock = Clock(torch.cuda.synchronize if device == "cuda" else lambda: None)
    with tempfile.TemporaryDirectory() as scratch:
        recipe = recipe_of(SHAPES[name], device, steps, Path(scratch))
        trainer, nli = trainer_of(SHAPES[name], recipe, device, clock)
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        trainer.train()
    settings, log = recipe.training, [entry for entry in trainer.state.log_history if "reward" in entry]
    completions = settings.per_device_train_batch_size
    print(f"{name} on {torch.cuda.get_device_name() if device == 'cuda' else 'a processor'}, {recipe.model.dtype}")
    print(f"NLI pairs in {recipe.rewards.nli_dtype}, {recipe.rewards.nli_batch_size} at once")
    print(f"{completions} completions of {settings.max_completion_length} tokens a step, means of {steps} steps")
    print(f"{trainer.model.num_parameters(only_trainable=True):,} parameters are trained")
    lengths = [entry["completions/mean_length"] for entry in log]
    n_steps = completions * sum(entry["ra_msd/steps"] for entry in log)
    line("tokens a completion", sum(lengths) / len(lengths), "")
    line("reasoning steps a completion", n_steps / completions / len(log), "")
    line("NLI pairs a reasoning step", nli.pairs / n_steps, "")
    shares(clock.seconds, steps)
    if device == "cuda":
        line("peak memory, allocated", torch.cuda.max_memory_allocated() / 2**30, "GiB")
        line("peak memory, reserved", torch.cuda.max_memory_reserved() / 2**30, "GiB")
    else:
        line("peak memory of the process", peak_mib() / 1024, "GiB")


def shares(seconds: Mapping[str, float], steps: int) -> None:
    parts = {
        "generation": seconds["generation"],
        "confidence": seconds["confidence"],
        "reward": seconds["reward"] - seconds["confidence"],
        "update": seconds["step"] - seconds["generation"] - seconds["reward"],
    }
    line("seconds a step", seconds["step"] / steps, "s")
    for name, part in parts.items():
        line(f"  {name}", part / steps, "s")
    line("share of the reward", 100 * parts["reward"] / seconds["step"], "%", f"under {AIM:g}")


def main(arguments: Sequence[str] | None = None) -> None:
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training")
    parser.add_argument("--shape", choices=list(SHAPES), default="qwen2.5-3b" if gpu else "tiny")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if gpu else "cpu")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", FutureWarning)  # TRL uses names of transformers that it will soon drop
    if options.device == "cpu":
        torch.set_num_threads(1)
    measure(options.shape, options.device, options.steps)


if __name__ == "__main__":
    main()
