"""The rules on sampled pools, with a judge that errs at a stated rate.

The judge is corrupted on purpose: it knows the right answer, prefers a candidate that has it, and errs at a rate. When
it errs, or when no candidate is right, it prefers a wrong one. So the figures show what a rule makes of a judge's
errors, and nothing of how often a real judge errs. No repair is offered, so that all rules choose from one pool. The
deriver is the start, asked once more; its errors are not independent of the candidates'.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.experiments.partition.arms import START
from benchmarks.experiments.partition.deriving import content_of, derivation_in
from benchmarks.experiments.partition.policy_replies import GREEDY
from benchmarks.experiments.partition.sizes import Size
from benchmarks.experiments.partition.task import Questions
from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.base.files import replacing
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import Pool, open_pool
from eldgr_dspy.programs.heuristics import LexicalJudge, heuristic_selector
from eldgr_dspy.programs.run.evaluation import evaluate
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.training.generation import Sampling
from eldgr_dspy.training.sampling import sample_pool
from eldgr_dspy.words import TASKS

NO_REPAIR: Final = "the experiment offers no repair"


def judge_name(rate: float) -> str:
    """Return the name of the judge that errs at a rate, as `wrong30`."""
    return f"wrong{round(100 * rate)}"


def sample_pools(folder: Path, source: str, questions: Questions, size: Size, seed: int) -> None:
    """Sample the pools of a policy, with the paper's temperature and top-p, and the derivations of the start."""
    (folder / "pools").mkdir(exist_ok=True)
    sampling = Sampling(seed=seed, samples=size.samples, max_new_tokens=size.reply)
    alone = Sampling(seed=seed, temperature=1.0, top_p=GREEDY, max_new_tokens=size.reply)
    how: dict[str, Any] = {"base": folder / START, "batch_size": size.sampled, "device": size.device}
    for task in TASKS:
        rows = [question.row() for question in questions[task, "pooled"]]
        sample_pool(_pool(folder, source, task), rows, {source: folder / source}, sampling, **how)
        if task == "arithmetic":
            sample_pool(folder / "pools" / "derived.jsonl", rows, {START: folder / START}, alone, **how)


def decide(folder: Path, source: str, rates: Sequence[float], seed: int) -> dict[str, Any]:
    """Decide on the pools of a policy by all rules, and return the exact match of each by task, in percent."""
    paths = [_pool(folder, source, task) for task in TASKS]
    replay: dict[str, Path] = {"": folder / "pools" / f"{source}.others.jsonl"}
    pools = [open_pool(path) for path in paths]
    derivations = [row.candidates[0].text or "" for row in open_pool(folder / "pools" / "derived.jsonl").rows()]
    _record(replay[""], _others(pools, derivations))
    for rate in rates:
        replay[judge_name(rate)] = folder / "pools" / f"{source}.{judge_name(rate)}.jsonl"
        _record(replay[judge_name(rate)], verdicts(pools, rate, seed))
    judges = {judge_name(rate): LexicalJudge() for rate in rates}
    plan = Plan(paths, folder / "runs" / source, judges=judges, replay=replay, fresh=True)
    figures = evaluate(heuristic_selector(), plan)["pools"]
    return {
        task: {name: rule["em"] for name, rule in figures[path.stem]["rules"].items()}
        for task, path in zip(TASKS, paths, strict=True)
    }


def verdicts(pools: Sequence[Pool], rate: float, seed: int) -> Iterator[Consultation]:
    """Yield what a judge prefers, which for each question depends on its id, the rate and the seed.

    It abstains only if no candidate has an answer. It errs at the rate where some candidates are right and some wrong.
    """
    for pool in pools:
        for row in pool.rows():
            preferred = _draw_preference(row, pool, rate, random.Random(f"judge {seed} {rate} {row.id}"))
            if preferred is None:
                yield Consultation(pool.name, row.id, "judge", "abstained", "no candidate answers", recorded=True)
            else:
                content = {"preferred": preferred, "judge_rationale": "", "assessments": []}
                yield Consultation(pool.name, row.id, "judge", "ok", content=content, recorded=True)


def _pool(folder: Path, source: str, task: str) -> Path:
    return folder / "pools" / f"{source}-{task}.jsonl"


def _draw_preference(row: Row, pool: Pool, rate: float, rng: random.Random) -> int | None:
    answers = [at for at, candidate in enumerate(row.candidates) if candidate.answer is not None]
    right = [at for at in answers if score(row.candidates[at].answer, row.gold, pool.task).em]
    wrong = [at for at in answers if at not in right]
    errs = rng.random() < rate
    choices = wrong if (errs and wrong) or not right else right
    return rng.choice(choices) if choices else None


def _others(pools: Sequence[Pool], texts: Sequence[str]) -> Iterator[Consultation]:
    """Yield the derivations of the start, and no repairs."""
    retrieval, arithmetic = pools
    for row in retrieval.rows():
        yield Consultation(retrieval.name, row.id, "repairer", "abstained", NO_REPAIR, recorded=True)
    for row, text in zip(arithmetic.rows(), texts, strict=True):
        derivation = derivation_in(text)
        if derivation is None:
            yield Consultation(arithmetic.name, row.id, "deriver", "abstained", "no derivation", recorded=True)
        else:
            content = content_of(derivation)
            yield Consultation(arithmetic.name, row.id, "deriver", "ok", content=content, recorded=True)


def _record(path: Path, consultations: Iterator[Consultation]) -> None:
    with replacing(path) as out:
        for entry in consultations:
            out.write(json.dumps({"kind": "consultation", **asdict(entry)}).encode("ascii") + b"\n")
