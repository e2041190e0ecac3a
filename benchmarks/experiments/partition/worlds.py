"""Retrieval questions, each about a small world of its own, so that no fact can be remembered: it must be read.

A world has two people, the towns where they were born or the firms where they work, and a passage about each of the
four. The prompt shows the passages. A question asks for a fact about a person, or for one about that fact's object.
Names come from one list, facts are drawn anew for every question. One question of five asks for the full name of a
country, which no passage uses: its right answer has no certificate, and the short name, which is wrong, has one.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from benchmarks.experiments.partition.solved import Solved
from eldgr_dspy.certificates import Passage

Relation = Literal["born", "works", "lies", "river", "makes", "led"]
Facts = Mapping[tuple[str, Relation], str]

TOLD: Final[Mapping[Relation, str]] = {
    "born": "{} was born in {}.",
    "works": "{} works at {}.",
    "lies": "{} lies in {}.",
    "river": "{} stands on the {}.",
    "makes": "{} makes {}.",
    "led": "{} is led by {}.",
}
"""The sentence of a fact: its subject and its value."""

ABOUT: Final[Mapping[str, tuple[Relation, Relation]]] = {
    "person": ("born", "works"),
    "town": ("lies", "river"),
    "firm": ("makes", "led"),
}
"""The relations in the passage about a person, a town or a firm."""

FULL: Final = "Republic of {}"
"""The full name of a country; no passage has it."""

ASKED: Final[Mapping[str, str]] = {
    "born": "In which town was {} born?",
    "works": "At which firm does {} work?",
    "born lies": "In which country lies the town where {} was born?",
    "born river": "On which river stands the town where {} was born?",
    "works makes": "What does the firm make where {} works?",
    "works led": "Who leads the firm where {} works?",
    "born lies full": "What is the full name of the country of the town where {} was born?",
}
"""The questions about a person, by the facts that lead from the person to the answer."""

ALIASES: Final = 0.2
"""The share of questions whose right answer is not in the evidence."""


def _names() -> Iterator[str]:
    """Yield invented names of two syllables, all different and none the beginning of another."""
    drawn, given = random.Random("names"), set[str]()
    while True:
        name = "".join(drawn.choice("bdfgklmnprstvz") + drawn.choice("aeiou") for _ in range(2)) + drawn.choice("lnrs")
        if name not in given:
            given.add(name)
            yield name.capitalize()


_DRAWN: Final = _names()
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    kind: tuple(next(_DRAWN) for _ in range(count))
    for kind, count in (("person", 40), ("town", 30), ("firm", 20), ("country", 20), ("river", 20))
} | {"goods": tuple("bells boats bread chairs cheese clocks gloves honey lamps paper pianos rope shoes soap".split())}
"""All names by kind."""

OBJECTS: Final[Mapping[Relation, str]] = {
    "born": "town",
    "works": "firm",
    "lies": "country",
    "river": "river",
    "makes": "goods",
    "led": "person",
}
"""The kind of a relation's values."""


def questions(split: str, count: int, seed: int) -> list[Solved]:
    """Return questions about fresh worlds; the same for the same split, count and seed.

    Args:
        split: The name of the part that they are for; two splits share no world.
        count: How many; one of five asks for a full name.
        seed: Of the worlds.
    """
    drawn = random.Random(f"{split} worlds {seed}")
    plain = [kind for kind in ASKED if not kind.endswith("full")]
    full = round(count * ALIASES)
    kinds = [*["born lies full"] * full, *(plain[at % len(plain)] for at in range(count - full))]
    drawn.shuffle(kinds)
    return [_question(f"{split}-r{number}", kind, drawn) for number, kind in enumerate(kinds, start=1)]


def told(facts: Facts, subject: str, relation: Relation) -> str:
    """Return a fact as its passage and a step state it."""
    return TOLD[relation].format(subject, facts[subject, relation])


def drawn_world(first: Relation, drawn: random.Random) -> tuple[tuple[str, ...], dict[tuple[str, Relation], str]]:
    """Return the subjects of a world and its facts.

    Args:
        first: The relation that leads from people to the other two subjects: `born` or `works`.
        drawn: The source of random numbers.

    Returns:
        The two people and then the town or firm of each; all facts about the four.
    """
    left = {kind: iter(drawn.sample(names, len(names))) for kind, names in NAMES.items()}
    people = (next(left["person"]), next(left["person"]))
    facts: dict[tuple[str, Relation], str] = {}
    for person in people:
        for relation in ABOUT["person"]:
            facts[person, relation] = next(left[OBJECTS[relation]])
    objects = tuple(facts[person, first] for person in people)
    for subject in objects:
        for relation in ABOUT[OBJECTS[first]]:
            facts[subject, relation] = next(left[OBJECTS[relation]])
    return (*people, *objects), facts


def passages(subjects: Sequence[str], facts: Facts, drawn: random.Random) -> tuple[Passage, ...]:
    """Return a passage about each subject, in an order that is drawn."""
    about = [
        Passage(subject, " ".join(told(facts, *fact) for fact in facts if fact[0] == subject)) for subject in subjects
    ]
    drawn.shuffle(about)
    return tuple(about)


def _question(id: str, kind: str, drawn: random.Random) -> Solved:
    path: list[Relation] = [word for word in TOLD if word in kind.split()]
    subjects, facts = drawn_world(path[0], drawn)
    subject, steps = subjects[0], list[str]()
    for relation in path:
        steps.append(told(facts, subject, relation))
        subject = facts[subject, relation]
    full = kind.endswith("full")
    return Solved(
        id,
        ASKED[kind].format(subjects[0]),
        "retrieval",
        kind,
        tuple(steps),
        FULL.format(subject) if full else subject,
        full,
        passages(subjects, facts, drawn),
        frozenset(told(facts, *fact) for fact in facts),
    )
