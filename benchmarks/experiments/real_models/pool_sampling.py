"""The pools: four samples of one model for each question, and one pool of samples of three models."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import dspy

from benchmarks.experiments.real_models.real_questions import records, write_questions
from eldgr_dspy.programs.run.collecting import Collection, collect
from eldgr_dspy.programs.run.evaluation import Watcher
from eldgr_dspy.words import Task

SAMPLES = 4
PROGRAMS: dict[str, tuple[str, Task]] = {"hotpotqa": ("Reader", "short"), "gsm8k": ("Solver", "number")}
"""The program that answers the questions of each data set, and their answer type."""

OF_THE_FIRST = 2
"""How many candidates of the mixed pool come from the model that sampled first; one from each other model."""


def sample(name: str, data: Path, n: int, lm: dspy.LM, out: Path, workers: int) -> Path:
    """Sample a pool with the settings of the paper's confirmation split; the same call resumes."""
    questions = out / f"{name}.questions.jsonl"
    write_questions(name, data, n, questions)
    return _sample(name, questions, lm, out / f"{name}.jsonl", SAMPLES, workers)


def _sample(name: str, questions: Path, lm: dspy.LM, out: Path, samples: int, workers: int) -> Path:
    program, kind = PROGRAMS[name]
    collection = Collection(
        f"benchmarks.experiments.real_models.sampler:{program}",
        str(questions),
        out,
        n=samples,
        answer=kind,
        workers=workers,
        temperature=0.7,
        max_failures="5%",
    )
    pool = collect(collection, Watcher(), lm).pool
    sys.stdout.write(f"{out}: {pool.n} questions, {samples} samples each.\n")
    return out


def mix(lms: Sequence[dspy.LM], out: Path, workers: int) -> None:
    """Write the pool whose candidates are of different strength: two of the first model's, one of each other's."""
    pools = [[*records(out / "hotpotqa.jsonl")]]
    for lm in lms:
        path = out / f"hotpotqa.{lm.model.removeprefix('openai/')}.jsonl"
        pools.append([*records(_sample("hotpotqa", out / "hotpotqa.questions.jsonl", lm, path, 1, workers))])
    lines = []
    for first, *others in zip(*pools, strict=True):
        candidates = [*first["candidates"][:OF_THE_FIRST], *(row["candidates"][0] for row in others)]
        lines.append(json.dumps(first | {"candidates": candidates}, ensure_ascii=False) + "\n")
    (out / "mixed.jsonl").write_text("".join(lines), encoding="utf-8")
