"""The questions of a miniature in four parts, with none in two: taught, trained on, evaluated on, confirmed on.

Equality is as for pools: case, white space and kinds of quotes do not count. Beyond that no two word problems of a
template share their numbers. Questions about the world share facts with other questions: the question is held out, but
its fact may occur in another one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from eldgr_dspy.certificates import Passage
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.training.miniature.solved import Solved
from eldgr_dspy.training.miniature.sums import problems
from eldgr_dspy.training.miniature.world import World, drawn_world
from eldgr_dspy.words import TASKS, Task

Part = Literal["taught", "trained", "evaluation", "confirmation"]
PARTS: Final[tuple[Part, ...]] = ("taught", "trained", "evaluation", "confirmation")
SEEN: Final[tuple[Part, ...]] = ("taught", "trained")
"""The parts that a policy learns from."""

SOLUTIONS: Final = 300
"""How many solutions the corpus has at most."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of a task.

    Attributes:
        people: In the world; there are six questions about each.
        towns: In it.
        firms: In it.
        most: The greatest factor and summand of most word problems; a smaller one leaves fewer of them.
        parts: For each task how many questions a part has, in the order of `PARTS`.
    """

    people: int
    towns: int
    firms: int
    most: int
    parts: Mapping[Task, tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class Questions:
    """All questions of a miniature.

    Attributes:
        world: The world of the retrieval questions.
        parts: By task and part.
    """

    world: World
    parts: Mapping[tuple[Task, Part], Sequence[Solved]]

    def of(self, *parts: Part) -> list[Solved]:
        """Return the questions of parts, of both tasks."""
        return [question for task in TASKS for part in parts for question in self.parts[task, part]]

    def corpus(self) -> list[Passage]:
        """Return the documents of the world, and solutions of word problems that policies were taught."""
        solutions = [Passage("", "\n".join(solved.steps)) for solved in self.parts["arithmetic", "taught"][:SOLUTIONS]]
        return [*self.world.documents().values(), *solutions]

    def sha256(self) -> str:
        """Return a hash of all questions with their replies and evidence, part by part."""
        return hashlib.sha256(repr(sorted(self.parts.items())).encode()).hexdigest()[:16]

    def seen_before(self) -> int:
        """Return how many questions of evaluation and confirmation are the same as one that policies learn from."""
        seen = {folded_question(question.question) for question in self.of(*SEEN)}
        return sum(folded_question(question.question) in seen for question in self.of("evaluation", "confirmation"))


def drawn_questions(seed: int, sizes: Sizes) -> Questions:
    """Return the questions of a seed."""
    world = drawn_world(seed, sizes.people, sizes.towns, sizes.firms)
    by_task: dict[Task, list[Solved]] = {"retrieval": world.questions(seed), "arithmetic": problems(seed, sizes.most)}
    parts: dict[tuple[Task, Part], Sequence[Solved]] = {}
    for task, questions in by_task.items():
        rest = iter(questions)
        for part, count in zip(PARTS, sizes.parts[task], strict=True):
            parts[task, part] = [next(rest) for _ in range(count)]
    return Questions(world, parts)
