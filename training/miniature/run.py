"""The paper in miniature, from generated questions to tables, in stages that are each done once.

Questions and a small world are drawn. A tiny Qwen2 is taught by examples, and an NLI model by pairs. Policies are
trained from that start by their recipes. One pool is sampled with a candidate of each, and one for confirmation from a
single one. The four rules decide on both, and the results are written down, good or bad.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.miniature.policies import draw, train_policy, write_data
from eldgr_dspy.training.miniature.pools import decide, sample_pools
from eldgr_dspy.training.miniature.reader import teach_reader
from eldgr_dspy.training.miniature.results import results_of, versions, write_tables
from eldgr_dspy.training.miniature.settings import Settings
from eldgr_dspy.training.miniature.stages import Stages, alone, begin, write_json
from eldgr_dspy.training.miniature.task import Questions, drawn_questions
from eldgr_dspy.training.miniature.warm_start import warm_start

NEEDED: Final[Mapping[str, Sequence[str]]] = {
    "train": ("trl", "peft", "datasets", "accelerate"),
    "nli": ("torch", "transformers", "sentence_transformers"),
}
"""What each extra brings that a miniature needs."""

_SEEDS: Final = 2**32  # as many as numpy accepts


def run(out: Path, settings: Settings, seed: int, say: Callable[[str], object]) -> dict[str, Any]:
    """Run the miniature, or its unfinished part, and return its results.

    Args:
        out: Its folder.
        settings: Its size.
        seed: Of everything but the confirmation pool, which has the paper's.
        say: Called with the current stage.

    Raises:
        ArgumentError: An extra is missing, or the folder holds something else.
        RunChangedError: The folder holds a miniature of another seed or size, or made with other releases.
        RunLockedError: Another process is at work in it.
    """
    require_extras()
    if not 0 <= seed < _SEEDS:
        raise ArgumentError(f"seed must be a whole number from 0 to {_SEEDS - 1}; got {seed}.")
    questions = drawn_questions(seed, settings.sizes)
    begin(out, {"seed": seed, **asdict(settings), "questions": questions.sha256(), "versions": versions()})
    with alone(out), _one_thread():
        stages = Stages(out / "stages", say)
        _do(stages, out, questions, settings, seed)
        results = results_of(out, questions, settings, seed, stages)
        write_json(out / "results.json", results)
        write_tables(out / "tables.md", results)
    return results


def _do(stages: Stages, out: Path, questions: Questions, settings: Settings, seed: int) -> None:
    taught = questions.of("taught")
    stages.do("data", lambda: write_data(out, questions))
    stages.do("warm", lambda: {"loss": warm_start(out / "warm", taught, settings.taught, settings.batch, seed)})
    if settings.read:
        stages.do("nli", lambda: {"right": teach_reader(out / "nli", questions, settings.read, seed)})
    for policy in settings.policies:
        stages.do(f"train-{policy}", partial(train_policy, out, policy, settings, seed))
    stages.do("curves", lambda: draw(out, settings.policies))
    stages.do("pools", lambda: sample_pools(out, questions, settings, seed))
    stages.do("rules", lambda: decide(out))


def require_extras(needed: Mapping[str, Sequence[str]] = NEEDED) -> None:
    """Raise an `ArgumentError` that names the extra if a library of it is missing.

    Args:
        needed: Libraries by the extra that brings them.
    """
    for extra, names in needed.items():
        for name in names:
            if find_spec(name) is None:
                raise ArgumentError(
                    f"The miniature needs {name}, which the extra {extra!r} brings; run: "
                    "pip install 'eldgr_dspy[train,nli]'"
                )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Make torch use a single thread: models as small as these are slower with two, and the numbers may differ."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
