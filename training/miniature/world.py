"""A small invented world: people, towns and firms, a document about each, and questions about them.

All facts are drawn from the seed. A question asks for a fact about a person, or for one about the object of that fact.
The reasoning states each fact as its document does, after the document's title. No question shows a document: a policy
knows the world only from what it was taught, and is scored against the documents.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from eldgr_dspy.certificates import Passage
from eldgr_dspy.training.miniature.solved import Solved

Relation = Literal["born", "works", "lies", "river", "makes", "led"]

TOLD: Final[Mapping[Relation, str]] = {
    "born": "{} was born in {}.",
    "works": "{} works at {}.",
    "lies": "{} lies in {}.",
    "river": "{} stands on the {}.",
    "makes": "{} makes {}.",
    "led": "{} is led by {}.",
}
"""The sentence of a fact: its subject and its value."""

ABOUT: Final[Sequence[tuple[Relation, ...]]] = (("born", "works"), ("lies", "river"), ("makes", "led"))
"""The relations in the document of a person, of a town and of a firm."""

ASKED: Final[Mapping[tuple[Relation, ...], str]] = {
    ("born",): "In which town was {} born?",
    ("born", "lies"): "In which country lies the town where {} was born?",
    ("born", "river"): "On which river stands the town where {} was born?",
    ("works",): "At which firm does {} work?",
    ("works", "makes"): "What does the firm make where {} works?",
    ("works", "led"): "Who leads the firm where {} works?",
}
"""The questions about a person, by the facts that lead from the person to the answer."""

PASSAGES: Final = 5
"""How many documents a question has."""

_GOODS: Final = (
    "bells boats bread chairs cheese clocks gloves honey lamps paper pianos rope shoes soap tiles wine".split()
)
_COUNTRIES: Final = 6


@dataclass(frozen=True, slots=True)
class World:
    """The facts of the world.

    Attributes:
        facts: The values of a subject, by subject and relation.
        subjects: People, towns and firms.
        values: All possible values, by relation.
    """

    facts: Mapping[tuple[str, Relation], str]
    subjects: tuple[tuple[str, ...], ...]
    values: Mapping[Relation, tuple[str, ...]]

    def documents(self) -> dict[str, Passage]:
        """Return the document about each subject, by its title."""
        return {
            subject: document(subject, {relation: self.facts[subject, relation] for relation in relations})
            for subjects, relations in zip(self.subjects, ABOUT, strict=True)
            for subject in subjects
        }

    def questions(self, seed: int) -> list[Solved]:
        """Return every question about every person, with order and distracting documents drawn from the seed."""
        documents, drawn = self.documents(), random.Random(f"questions {seed}")
        questions = [self._asked(person, path, documents, drawn) for person in self.subjects[0] for path in ASKED]
        drawn.shuffle(questions)
        return questions

    def _asked(
        self, person: str, path: tuple[Relation, ...], documents: Mapping[str, Passage], drawn: random.Random
    ) -> Solved:
        subject, steps, read = person, list[str](), list[Passage]()
        for relation in path:
            read.append(documents[subject])
            value = self.facts[subject, relation]
            steps.append(cited(subject, relation, value))
            subject = value
        rest = [passage for passage in documents.values() if passage not in read]
        shown = [*read, *drawn.sample(rest, PASSAGES - len(read))]
        drawn.shuffle(shown)
        return Solved(ASKED[path].format(person), "retrieval", " ".join(path), tuple(steps), subject, tuple(shown))


def drawn_world(seed: int, people: int, towns: int, firms: int) -> World:
    """Return the world of a seed with this many people, towns and firms (16 at most)."""
    drawn = random.Random(f"world {seed}")
    names = _names(drawn)
    subjects = tuple(tuple(next(names) for _ in range(count)) for count in (people, towns, firms))
    values: dict[Relation, tuple[str, ...]] = {
        "born": subjects[1],
        "works": subjects[2],
        "lies": tuple(next(names) for _ in range(_COUNTRIES)),
        "river": tuple(next(names) for _ in range(towns)),
        "makes": tuple(drawn.sample(_GOODS, firms)),
        "led": tuple(next(names) for _ in range(firms)),
    }
    facts: dict[tuple[str, Relation], str] = {
        (subject, relation): drawn.choice(values[relation])
        for own, relations in zip(subjects, ABOUT, strict=True)
        for subject in own
        for relation in relations
    }
    return World(facts, subjects, values)


def told(subject: str, relation: Relation, value: str) -> str:
    """Return a fact as its document states it."""
    return TOLD[relation].format(subject, value)


def cited(subject: str, relation: Relation, value: str) -> str:
    """Return a fact as a step of reasoning states it, after the title of its document."""
    return f"{subject}: {told(subject, relation, value)}"


def document(subject: str, facts: Mapping[Relation, str]) -> Passage:
    """Return the document that states facts about a subject."""
    return Passage(subject, " ".join(told(subject, relation, value) for relation, value in facts.items()))


def _names(drawn: random.Random) -> Iterator[str]:
    """Return names of two or three syllables, all different and none the beginning of another."""
    given = set[str]()
    while True:
        name = "".join(drawn.choice("bdfgklmnprstvz") + drawn.choice("aeiou") for _ in range(drawn.choice((2, 3))))
        if not any(name.startswith(other) or other.startswith(name) for other in given):
            given.add(name)
            yield name.capitalize()
