"""Pairs that teach an NLI model to read the steps of the experiment: under passages, questions and earlier steps.

Every world is drawn anew, so that the model learns to read and not the facts. A step is entailed if it states what the
passage states, what the question asks for, or the true equation that comes next. It contradicts if it has another value
for that, or is a false equation. Anything else is neutral.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.experiments.partition.exercises import Exercise
from benchmarks.experiments.partition.reader_nli import LABELS, Pair
from benchmarks.experiments.partition.worlds import ABOUT, FORMS, NAMES, OBJECTS, TEXTS, Relation
from eldgr_dspy.rule.consultations import show_passage

_SUBJECTS: Final[Mapping[Relation, str]] = {
    relation: subject for subject, relations in ABOUT.items() for relation in relations
}


@dataclass(frozen=True, slots=True)
class Pairs:
    """Draws pairs, half of them of problems, which take longest to learn.

    Attributes:
        problems: The word problems that occur.
        drawn: The source of random numbers.
    """

    problems: Sequence[Exercise]
    rng: random.Random

    def batch(self, count: int) -> list[Pair]:
        return [self.of(self.rng.choice([*KINDS, "problem"])) for _ in range(count)]

    def of(self, kind: str) -> Pair:
        """Return a pair of a kind of `KINDS`, with a label drawn."""
        return KINDS[kind](self, self.rng.choice(LABELS))

    def passage(self, label: str) -> Pair:
        """A step under a passage about some subject."""
        kind = self.rng.choice(list(ABOUT))
        subject = self._name(kind)
        facts: dict[Relation, str] = {relation: self._value(relation) for relation in ABOUT[kind]}
        text = "\n".join(TEXTS[relation].format(subject, value) for relation, value in facts.items())
        relation = self.rng.choice(ABOUT[kind])
        if label == "neutral":
            step = self._beside(subject, relation, facts[relation])
        else:
            value = facts[relation] if label == "entailment" else self._value(relation, facts[relation])
            step = TEXTS[relation].format(subject, value)
        return Pair(show_passage(subject, text), step, label)

    def question(self, label: str) -> Pair:
        """A step under a question, and perhaps under the step before."""
        kind = self.rng.choice(list(FORMS))
        path: list[Relation] = [relation for relation in TEXTS if relation in kind.split()]
        subject = self._name("person")
        text, first = FORMS[kind].format(subject), self._value(path[0])
        fact = TEXTS[path[0]].format(subject, first)
        if label == "contradiction":
            return Pair(f"{text}\n{fact}", TEXTS[path[0]].format(subject, self._value(path[0], first)), label)
        before, relation = text, path[0]
        if len(path) > 1 and self.rng.random() < 0.5:
            before, subject, relation = f"{text}\n{fact}", first, path[1]
        value = self._value(relation)
        entails = label == "entailment"
        return Pair(
            before, TEXTS[relation].format(subject, value) if entails else self._beside(subject, relation, value), label
        )

    def problem(self, label: str) -> Pair:
        """An equation under a word problem with the equations before it."""
        problem = self.rng.choice(self.problems)
        at = self.rng.randrange(len(problem.steps))
        before = "\n".join([problem.question, *problem.steps[:at]])
        if label == "entailment":
            return Pair(before, problem.steps[at], label)
        if label == "contradiction":
            return Pair(before, self._otherwise(problem.steps[at]), label)
        while (step := self.rng.choice(self.rng.choice(self.problems).steps)) in problem.steps:
            pass
        return Pair(before, step, label)

    def _otherwise(self, equation: str) -> str:
        """Return an equation with another number on its right side, at most ten away."""
        left, _, right = equation.rpartition(" ")
        near = [number for number in range(max(1, int(right) - 10), int(right) + 11) if number != int(right)]
        return f"{left} {self.rng.choice(near)}"

    def _name(self, kind: str, instead_of: str | None = None) -> str:
        return self.rng.choice([name for name in NAMES[kind] if name != instead_of])

    def _value(self, relation: Relation, instead_of: str | None = None) -> str:
        return self._name(OBJECTS[relation], instead_of)

    def _beside(self, subject: str, relation: Relation, value: str) -> str:
        """Return a step about another subject, often with the same value, or about another respect."""
        if self.rng.random() < 0.3:
            relation = self.rng.choice([other for other in TEXTS if _SUBJECTS[other] != _SUBJECTS[relation]])
            return TEXTS[relation].format(self._name(_SUBJECTS[relation]), self._value(relation))
        other = self._name(_SUBJECTS[relation], subject)
        return TEXTS[relation].format(other, value if self.rng.random() < 0.5 else self._value(relation))


KINDS: Final[Mapping[str, Callable[[Pairs, str], Pair]]] = {
    "passage": Pairs.passage,
    "question": Pairs.question,
    "problem": Pairs.problem,
}
"""What a step is compared with, and the method that draws such a pair."""
