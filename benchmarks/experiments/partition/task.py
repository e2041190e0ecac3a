"""All questions of a seed in five parts that share no world, and in arithmetic no template with what is held out."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from benchmarks.experiments.partition.exercises import Exercise
from benchmarks.experiments.partition.problems import problems
from benchmarks.experiments.partition.sizes import Size
from benchmarks.experiments.partition.worlds import questions
from eldgr_dspy.words import TASKS, Task

Part = Literal["taught", "validation", "trained", "held", "pooled"]
PARTS: Final[tuple[Part, ...]] = ("taught", "validation", "trained", "held", "pooled")
HOLDOUTS: Final[frozenset[Part]] = frozenset({"validation", "held", "pooled"})
"""The parts that no policy learns from; their word problems have templates of their own."""

Questions = Mapping[tuple[Task, Part], Sequence[Exercise]]
"""The questions of a seed, by task and part."""


def drawn_questions(size: Size, seed: int) -> Questions:
    counts: dict[Part, int] = {
        "taught": size.warm.questions,
        "validation": size.warm.validated,
        "trained": size.trained,
        "held": size.held,
        "pooled": size.pooled,
    }
    parts: dict[tuple[Task, Part], Sequence[Exercise]] = {}
    for part, count in counts.items():
        parts["retrieval", part] = questions(part, count, seed, size.people)
        parts["arithmetic", part] = problems(part, count, seed, fresh=part in HOLDOUTS)
    return parts


def of_both(questions: Questions, part: Part) -> Iterator[Exercise]:
    """Yield the questions of a part, of both tasks."""
    for task in TASKS:
        yield from questions[task, part]


def fingerprint(questions: Questions) -> str:
    """Return a hash of all questions with their replies, evidence and truths."""
    plain = [
        (key, [(exercise.id, exercise.messages, exercise.reply, sorted(exercise.truths)) for exercise in part])
        for key, part in sorted(questions.items())
    ]
    return hashlib.sha256(repr(plain).encode()).hexdigest()[:16]
