"""Retrieval questions, each about a small world of its own, so that no fact can be remembered: it must be read.

A world has people, each with a town that they left and a firm that they joined, and a passage about each of these. The
prompt shows the passages. A question asks for a fact about one person, or for one about that fact's object. Names come
from one list, facts are drawn anew for every question. One question of five asks for the full name of a country, which
no passage uses: its right answer has no certificate, and the short name, which is wrong, has one.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from benchmarks.experiments.partition.exercises import Exercise
from eldgr_dspy.certificates import Passage

Relation = Literal["left", "joined", "borders", "overlooks", "makes", "hired"]
Facts = Mapping[tuple[str, Relation], str]

TEXTS: Final[Mapping[Relation, str]] = {
    "left": "{} left {}.",
    "joined": "{} joined {}.",
    "borders": "{} borders {}.",
    "overlooks": "{} overlooks {}.",
    "makes": "{} makes {}.",
    "hired": "{} hired {}.",
}
"""The sentence of a fact: its subject and its value."""

ABOUT: Final[Mapping[str, tuple[Relation, Relation]]] = {
    "person": ("left", "joined"),
    "town": ("borders", "overlooks"),
    "firm": ("makes", "hired"),
}
"""The relations in the passage about a person, a town or a firm."""

FULL: Final = "Republic of {}"
"""The full name of a country; no passage has it."""

FORMS: Final[Mapping[str, str]] = {
    "left": "{} left which town?",
    "joined": "{} joined which firm?",
    "left borders": "{} left a town that borders which country?",
    "left overlooks": "{} left a town that overlooks which river?",
    "joined makes": "{} joined a firm that makes what?",
    "joined hired": "{} joined a firm that hired whom?",
    "left borders full": "{} left a town that borders a country with which full name?",
}
"""The questions about a person, by the facts that lead from the person to the answer."""

ALIASES: Final = 0.2
"""The share of questions whose right answer is not in the evidence."""


def _names() -> Iterator[str]:
    """Yield invented names of two syllables, all different and none the beginning of another."""
    rng, earlier = random.Random("names"), set[str]()
    while True:
        name = "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(2)) + rng.choice("lnrs")
        if name not in earlier:
            earlier.add(name)
            yield name.capitalize()


_SUPPLY: Final = _names()
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    kind: tuple(next(_SUPPLY) for _ in range(count))
    for kind, count in (("person", 40), ("town", 30), ("firm", 20), ("country", 20), ("river", 20))
} | {"goods": tuple("bells boats bread chairs cheese clocks gloves honey lamps paper pianos rope shoes soap".split())}
"""All names by kind."""

OBJECTS: Final[Mapping[Relation, str]] = {
    "left": "town",
    "joined": "firm",
    "borders": "country",
    "overlooks": "river",
    "makes": "goods",
    "hired": "person",
}
"""The kind of a relation's values."""


def questions(split: str, count: int, seed: int, people: int) -> list[Exercise]:
    """Return questions about fresh worlds; the same for the same split, count and seed. Two splits share no world."""
    rng = random.Random(f"{split} worlds {seed}")
    plain = [kind for kind in FORMS if not kind.endswith("full")]
    full = round(count * ALIASES)
    kinds = [*["left borders full"] * full, *(plain[at % len(plain)] for at in range(count - full))]
    rng.shuffle(kinds)
    return [_question(f"{split}-r{number}", kind, people, rng) for number, kind in enumerate(kinds, start=1)]


def tell(facts: Facts, subject: str, relation: Relation) -> str:
    """Return a fact as its passage and a step state it."""
    return TEXTS[relation].format(subject, facts[subject, relation])


def drawn_world(people: int, rng: random.Random) -> tuple[tuple[str, ...], dict[tuple[str, Relation], str]]:
    """Return the subjects of a world, people first and then their towns and firms, and all facts about them."""
    supply = {kind: iter(rng.sample(names, len(names))) for kind, names in NAMES.items()}
    persons = [next(supply["person"]) for _ in range(people)]
    facts: dict[tuple[str, Relation], str] = {}

    def settle(subject: str, kind: str) -> None:
        for relation in ABOUT[kind]:
            facts[subject, relation] = next(supply[OBJECTS[relation]])

    for person in persons:
        settle(person, "person")
    objects = [(facts[person, relation], OBJECTS[relation]) for person in persons for relation in ABOUT["person"]]
    for subject, kind in objects:
        settle(subject, kind)
    return (*persons, *(subject for subject, _ in objects)), facts


def passages(subjects: Sequence[str], facts: Facts, rng: random.Random) -> tuple[Passage, ...]:
    """Return a passage about each subject, in an order that is drawn."""
    about = [
        Passage(subject, "\n".join(tell(facts, *fact) for fact in facts if fact[0] == subject)) for subject in subjects
    ]
    rng.shuffle(about)
    return tuple(about)


def _question(id: str, kind: str, people: int, rng: random.Random) -> Exercise:
    path: list[Relation] = [word for word in TEXTS if word in kind.split()]
    subjects, facts = drawn_world(people, rng)
    subject, steps = subjects[0], list[str]()
    for relation in path:
        steps.append(tell(facts, subject, relation))
        subject = facts[subject, relation]
    full = kind.endswith("full")
    return Exercise(
        id,
        FORMS[kind].format(subjects[0]),
        "retrieval",
        kind,
        tuple(steps),
        FULL.format(subject) if full else subject,
        full,
        passages(subjects, facts, rng),
        frozenset(tell(facts, *fact) for fact in facts),
    )
