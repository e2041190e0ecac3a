"""The pools of a miniature, and the decisions of the four rules on them: one to evaluate on, and one to confirm on.

The first has a candidate of each policy a question, the second four samples of the first policy. Each has a second pool
with the output of the start, the baseline of the policies and the source of derivations.
"""

from pathlib import Path
from typing import Final

from eldgr_dspy.answers import score
from eldgr_dspy.pools import Pool, open_pool
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import evaluate
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.training.generation import Sampling
from eldgr_dspy.training.miniature.deriving import record_derivations
from eldgr_dspy.training.miniature.settings import CONFIRMING, Settings
from eldgr_dspy.training.miniature.task import Part, Questions
from eldgr_dspy.training.sampling import sample_pool
from eldgr_dspy.words import TASKS, Task

START: Final = "start"
"""The name of the policy before it is rewarded."""

RUNS: Final[tuple[Part, ...]] = ("evaluation", "confirmation")

_BATCH: Final = 64


def pool_path(out: Path, part: Part, task: Task, by: str = "") -> Path:
    """Return the file of a pool; `by` is who wrote it, if that is not whom it is for."""
    return out / "pools" / f"{'-'.join(filter(None, [by, part, task]))}.jsonl"


def sample_pools(out: Path, questions: Questions, settings: Settings, seed: int) -> None:
    """Sample all pools, and record the start's derivations.

    The paper states temperature and top-p for the confirmation pool alone; here they are those of all.
    """
    (out / "pools").mkdir(exist_ok=True)
    checkpoints = {policy: out / "checkpoints" / policy for policy in settings.policies}
    first = settings.policies[0]
    length = int(settings.training["max_completion_length"])
    alone = Sampling(seed=seed, max_new_tokens=length)
    asked = {
        "evaluation": (checkpoints, alone),
        "confirmation": ({first: checkpoints[first]}, Sampling(CONFIRMING, 4, max_new_tokens=length)),
    }
    for part in RUNS:
        for task in TASKS:
            rows = [
                question.row(f"{part[0]}{task[0]}{at}")
                for at, question in enumerate(questions.parts[task, part], start=1)
            ]
            for by, (models, sampling) in ((START, ({START: out / "warm"}, alone)), ("", asked[part])):
                path = pool_path(out, part, task, by)
                sample_pool(path, rows, models, sampling, base=out / "warm", batch_size=_BATCH)
    _record(out)


def _record(out: Path) -> None:
    named = ((pool_path(out, part, "arithmetic"), pool_path(out, part, "arithmetic", START)) for part in RUNS)
    record_derivations(out / "pools" / "derivations.jsonl", [(to.stem, open_pool(by)) for to, by in named])


def decide(out: Path) -> None:
    """Evaluate the four rules on both pools of each part, into a run directory a part.

    Judge and repairer are the heuristic ones, which have no LM; derivations are those of the start.
    """
    for part in RUNS:
        pools = [pool_path(out, part, task) for task in TASKS]
        plan = Plan(pools, out / "runs" / part, replay=out / "pools" / "derivations.jsonl")
        evaluate(heuristic_selector(), plan)


def exact_matches(pool: Pool) -> dict[str, list[bool]]:
    """Return for each source of a pool whether its candidate is right, question by question."""
    matches: dict[str, list[bool]] = {}
    for row in pool.rows():
        for candidate in row.candidates:
            right = score(candidate.answer, row.gold, pool.task).em
            matches.setdefault(str(candidate.source).partition("/")[0], []).append(bool(right))
    return matches
