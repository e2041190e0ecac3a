"""Pairs that teach an NLI model to read the steps of the miniature: under documents, questions and solutions.

Every fact about the world is drawn anew, so that the model learns to read and not the facts. Pairs with a question are
labelled by the task. A step is entailed if it states what the question or the step before asks for, or is a true
equation that comes next. It contradicts if it has another value for a stated fact, or is a false equation. Anything
else is irrelevant, and neutral.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eldgr_dspy.consultations import show_passage
from eldgr_dspy.training.miniature.nli import LABELS, Pair
from eldgr_dspy.training.miniature.solved import Solved
from eldgr_dspy.training.miniature.sums import otherwise
from eldgr_dspy.training.miniature.world import ABOUT, ASKED, Relation, World, cited, document


@dataclass(frozen=True, slots=True)
class Pairs:
    """Draws pairs of every kind equally often.

    Attributes:
        world: Whose subjects and values occur.
        problems: The word problems that occur.
        drawn: The source of random numbers.
    """

    world: World
    problems: Sequence[Solved]
    drawn: random.Random

    def batch(self, count: int) -> list[Pair]:
        """Return this many pairs."""
        return [self.of(self.drawn.choice(list(KINDS))) for _ in range(count)]

    def of(self, kind: str) -> Pair:
        """Return a pair of a kind of `KINDS`, with a label drawn."""
        return KINDS[kind](self, self.drawn.choice(LABELS))

    def document(self, label: str) -> Pair:
        """A step under a document about some subject."""
        at = self.drawn.randrange(len(ABOUT))
        subject = self.drawn.choice(self.world.subjects[at])
        facts: dict[Relation, str] = {relation: self._value(relation) for relation in ABOUT[at]}
        passage = document(subject, facts)
        relation = self.drawn.choice(ABOUT[at])
        if label == "neutral":
            step = self._beside(subject, relation, facts[relation])
        else:
            value = facts[relation] if label == "entailment" else self._value(relation, facts[relation])
            step = cited(subject, relation, value)
        return Pair(show_passage(passage.title, passage.text), step, label)

    def question(self, label: str) -> Pair:
        """A step under a question, and perhaps under a step before."""
        path = self.drawn.choice(list(ASKED))
        person = self.drawn.choice(self.world.subjects[0])
        asked, first = ASKED[path].format(person), self._value(path[0])
        before = f"{asked}\n{cited(person, path[0], first)}"
        if label == "contradiction":
            return Pair(before, cited(person, path[0], self._value(path[0], first)), label)
        if len(path) == 1 or self.drawn.random() < 0.5:
            before, subject, relation = asked, person, path[0]
        else:
            subject, relation = first, path[1]
        value = self._value(relation)
        step = cited(subject, relation, value) if label == "entailment" else self._beside(subject, relation, value)
        return Pair(before, step, label)

    def problem(self, label: str) -> Pair:
        """An equation under a word problem with the equations before it."""
        problem = self.drawn.choice(self.problems)
        at = self.drawn.randrange(len(problem.steps))
        before = "\n".join([problem.question, *problem.steps[:at]])
        return Pair(before, self._equation(problem, at, label), label)

    def solution(self, label: str) -> Pair:
        """An equation under a solution."""
        problem = self.drawn.choice(self.problems)
        step = self._equation(problem, self.drawn.randrange(len(problem.steps)), label)
        return Pair("\n".join(problem.steps), step, label)

    def _equation(self, problem: Solved, at: int, label: str) -> str:
        if label == "entailment":
            return problem.steps[at]
        if label == "contradiction":
            return otherwise(problem.steps[at], self.drawn)
        while (step := self.drawn.choice(self.drawn.choice(self.problems).steps)) in problem.steps:
            pass
        return step

    def _value(self, relation: Relation, instead_of: str | None = None) -> str:
        return self.drawn.choice([value for value in self.world.values[relation] if value != instead_of])

    def _beside(self, subject: str, relation: Relation, value: str) -> str:
        """Return a step about another subject, often with the same value, or about another respect."""
        at = next(at for at, relations in enumerate(ABOUT) if relation in relations)
        if self.drawn.random() < 0.3:
            at, relation = self.drawn.choice([pair for pair in _RESPECTS if pair[0] != at])
            return cited(self.drawn.choice(self.world.subjects[at]), relation, self._value(relation))
        other = self.drawn.choice([name for name in self.world.subjects[at] if name != subject])
        return cited(other, relation, value if self.drawn.random() < 0.5 else self._value(relation))


_RESPECTS: Final[list[tuple[int, Relation]]] = [
    (at, relation) for at, relations in enumerate(ABOUT) for relation in relations
]

KINDS: Final[Mapping[str, Callable[[Pairs, str], Pair]]] = {
    "document": Pairs.document,
    "question": Pairs.question,
    "problem": Pairs.problem,
    "solution": Pairs.solution,
}
"""What a step is compared with, and the method that draws such a pair."""
