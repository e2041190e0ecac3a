"""A real policy on two cores: SmolLM2-135M-Instruct, trained by GRPO with three rewards, before and after.

    python -m benchmarks.experiments.real_policy smollm2-135m.gguf

The prompt has the supporting passages of a HotpotQA question; a step has four completions of one prompt. Every policy
answers the same 100 held-out questions, greedily. Its chat template opens the reply with "Answer:", since a model of
this size otherwise replies in sentences, of which none is ever right, and no reward can choose among them. The same
command resumes; it needs the extras `train` and `local` (for `gguf`), and ELDGR_POOLS, the folder of the questions.
Where results are kept, `--show` prints their table.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from benchmarks.experiments.real_models.real_questions import records
from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.programs.pools.prompts import prompt_of
from eldgr_dspy.statistics import contrast
from eldgr_dspy.training.curves import read_curve
from eldgr_dspy.training.generation import Sampling
from eldgr_dspy.training.grpo import parse_arguments, train
from eldgr_dspy.training.sampling import sample_pool

RESULTS: Final = Path("artifacts/results/real-policy.json")
ARMS: Final = {
    "orm": ["--config", "orm"],
    "grpo": ["--config", "grpo"],
    "eldgr_rank": ["--config", "orm", "--rewards", "eldgr_rank", "--reward_weights", "1.0"],
}
"""The flags of each arm."""

SEED: Final = 2029
HELD_OUT: Final = 100
LONGEST: Final = 16
"""Tokens of a completion; most of a step's time is their sampling."""

ASK: Final = "Reply with the answer alone, in a few words."
_OPENING: Final = "<|im_start|>assistant\n"
"""How the model's chat template opens a reply."""

_GREEDY: Final = Sampling(seed=0, temperature=1.0, top_p=1e-6, max_new_tokens=LONGEST)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", help="the GGUF file of SmolLM2-135M-Instruct")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("runs/real_policy"))
    parser.add_argument("--show", action="store_true", help=f"print the table of {RESULTS}, and run nothing")
    options = parser.parse_args()
    if not options.show:
        if options.model is None or (data := os.environ.get("ELDGR_POOLS")) is None:
            sys.exit("Name the GGUF file, and set ELDGR_POOLS to the folder of the questions.")
        questions = write_questions(Path(data), options.out, options.steps)
        base = write_checkpoint(options.model, options.out / "base")
        results = {"base": answers(options.out, "base", base, base, questions)}
        for name in options.arms:
            for seed in options.seeds:
                folder, seconds = train_arm(options.out, name, seed, options.steps, base)
                after = answers(options.out, folder.name, folder, base, questions)
                rewards = [point.exact_match for point in read_curve(folder)]
                results[folder.name] = after | {"seconds_a_step": seconds, "exact_match_by_step": rewards}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(table(json.loads(RESULTS.read_text(encoding="utf-8")))) + "\n")


def write_questions(data: Path, out: Path, n: int) -> list[dict[str, Any]]:
    """Write n questions to train on, and return the held-out ones; the draw does not depend on n."""
    rows = sorted(records(data / "hotpotqa-distractor300.jsonl.gz"), key=lambda row: str(row["id"]))
    random.Random(SEED).shuffle(rows)
    (out / "data").mkdir(parents=True, exist_ok=True)
    with (out / "data" / "train.jsonl").open("w", encoding="utf-8") as lines:
        for row in rows[HELD_OUT : HELD_OUT + n]:
            lines.write(json.dumps(_question(row), ensure_ascii=False) + "\n")
    return [_question(row) for row in rows[:HELD_OUT]]


def _question(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as the trainer and `sample_pool` read it, with the passages that hold the supporting facts."""
    titles = {title for title, _ in row["supporting_facts"]}
    passages = [
        Passage(text="".join(part["sentences"]).strip(), title=part["title"])
        for part in row["context"]
        if part["title"] in titles
    ]
    return {
        "id": row["id"],
        "prompt": prompt_of(row["question"], "short", passages, ASK),
        "question": row["question"],
        "task": "retrieval",
        "gold": row["gold"],
        "evidence": [{"title": passage.title, "text": passage.text} for passage in passages],
    }


def write_checkpoint(model: Path, folder: Path) -> Path:
    """Write the weights of a GGUF file as a plain checkpoint of transformers, in float32."""
    if not (folder / "config.json").exists():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

        source = {"pretrained_model_name_or_path": str(model.parent), "gguf_file": model.name}
        gguf = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
        settings = {name: value for name, value in gguf.config.to_dict().items() if name != "quantization_config"}
        plain = LlamaForCausalLM(LlamaConfig(**settings))
        plain.load_state_dict(gguf.state_dict())
        tokenizer = AutoTokenizer.from_pretrained(**source)
        tokenizer.chat_template = tokenizer.chat_template.replace(f"'{_OPENING}'", f"'{_OPENING}Answer:'")
        tokenizer.save_pretrained(folder)
        plain.save_pretrained(folder)
    return folder


def train_arm(out: Path, name: str, seed: int, steps: int, base: Path) -> tuple[Path, float]:
    """Train an arm, unless it is trained; return its folder, and the seconds that a step took."""
    folder = out / f"{name}-{seed}"
    timing = folder / "seconds.json"
    if not timing.exists():
        flags = {
            "model_name_or_path": base,
            "dataset_name": out / "data",
            "output_dir": folder,
            "max_steps": steps,
            "num_generations": 4,
            "per_device_train_batch_size": 4,
            "max_completion_length": LONGEST,
            "dtype": "float32",
            "bf16": "false",
            "use_cpu": "true",
            "gradient_checkpointing": "false",
            "log_completions": "false",
            "learning_rate": 1e-4,
            "temperature": 0.7,
            "save_steps": 10,
            "save_total_limit": 1,
            "seed": seed,
            "data_seed": seed,
            "resume_from_checkpoint": str(any(folder.glob("checkpoint-*"))).lower(),
        }
        start = perf_counter()
        train(
            parse_arguments(
                [*ARMS[name], *(part for flag, value in flags.items() for part in (f"--{flag}", str(value)))]
            )
        )
        timing.write_text(json.dumps((perf_counter() - start) / steps), encoding="utf-8")
    return folder, json.loads(timing.read_text(encoding="utf-8"))


def answers(out: Path, name: str, model: Path, base: Path, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the greedy answers of a policy to the held-out questions, and which are right and which certified."""
    pool = sample_pool(
        out / f"{name}.jsonl", rows, {name: model}, _GREEDY, base=base, batch_size=10, device="cpu", dtype="float32"
    )
    result: dict[str, Any] = {"answers": {}, "right": [], "certified": []}
    for row in pool.rows():
        answer = row.candidates[0].answer
        result["answers"][row.id] = answer
        result["right"].append(score(answer, row.gold, "short").em)
        result["certified"].append(
            certify(answer, [Passage(text=one.text, title=one.title) for one in row.evidence]).certified is True
        )
    return result


def table(results: dict[str, Any]) -> list[str]:
    lines = [
        "| policy | exact match | against the base, pp (95 % interval) | won-lost | certified | seconds a step |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    base = [100.0 * right for right in results["base"]["right"]]
    for name, result in results.items():
        right = [100.0 * one for one in result["right"]]
        change = contrast(right, base)
        low, high = change.interval
        change_text = "" if name == "base" else f"{change.delta:+.1f} [{low:.1f}, {high:.1f}]"
        wins = "" if name == "base" else f"{change.wins}-{change.losses}"
        share = 100 * sum(result["certified"]) / len(right)
        seconds = f"{result['seconds_a_step']:.0f}" if "seconds_a_step" in result else ""
        lines.append(f"| {name} | {sum(right) / len(right):.1f} | {change_text} | {wins} | {share:.0f} % | {seconds} |")
    return lines


if __name__ == "__main__":
    main()
