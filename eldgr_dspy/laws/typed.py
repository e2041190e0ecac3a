"""Trials as an answer type reads them: the situations are about towns, and become about the examples of a type.

This module uses only the standard library. Source: ours.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Repair, Reply
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.trials import Trial
from eldgr_dspy.questions import Question
from eldgr_dspy.words import TASKS

_TOWNS: Sequence[str] = ("Lyon", "Rome", "Doha", "Paris", "Dubai", "Oslo", "Nice", "Bern", "Lusail")


def classes_of_examples(kind: AnswerType) -> list[list[str]]:
    """Return the examples of a type by class, each class and each spelling in their order."""
    examples: object = kind.examples()
    if not isinstance(examples, Sequence) or isinstance(examples, str) or not all(type(one) is str for one in examples):
        raise ArgumentError(f"{kind.name}.examples() must return answers, texts in a tuple; got {examples!r:.80}.")
    asked = Question("Which?", kind.name, (), options=kind.example_options, kind=kind)
    classes: dict[str, list[str]] = {}
    for answer, class_ in zip(examples, kind.of(asked).grouping(examples).classes, strict=True):
        if class_ is not None:
            classes.setdefault(class_.key, []).append(answer)
    return [*classes.values()]


def typed(trials: Iterable[Trial], kind: AnswerType | None) -> Iterator[Trial]:
    """Yield the trials with questions of a type and its examples in place of towns; unchanged for TASKS."""
    if kind is None or kind.name_in_files in TASKS:
        yield from trials
        return
    classes = [] if kind.way == "derivation" else classes_of_examples(kind)
    spellings = (*(class_[0] for class_ in classes), *(answer for class_ in classes for answer in class_[1:]))
    names = dict(zip(_TOWNS, cycle(spellings), strict=False))
    yield from (_typed(trial, kind, names) for trial in trials)


def reordered(kind: AnswerType) -> Iterator[Trial]:
    """Yield three examples of each class, to be tried in the reverse order: the first may decide what a class is."""
    for spellings in classes_of_examples(kind):
        question = Question("Which?", kind.name, tuple(spellings[:3]), options=kind.example_options, kind=kind)
        yield Trial(question, gold=spellings[0], pool_order=tuple(reversed(range(len(question.answers)))))


def _typed(trial: Trial, kind: AnswerType, names: dict[str, str]) -> Trial:
    pattern = re.compile(rf"\b(?:{'|'.join(names)})\b") if names else None

    def reworded(text: str) -> str:
        return pattern.sub(lambda town: names[town[0]], text) if pattern else text

    def told(passages: Sequence[Passage]) -> tuple[Passage, ...]:
        return tuple(Passage(reworded(passage.title), reworded(passage.text)) for passage in passages)

    def said(reply: Reply) -> Reply:
        return replace(reply, answer=reworded(reply.answer)) if isinstance(reply, Repair) else reply

    question = replace(
        trial.question,
        task=kind.name,
        answers=tuple(answer and reworded(answer) for answer in trial.question.answers),
        texts=tuple(map(reworded, trial.question.texts)),
        passages=told(trial.question.passages),
        options=kind.example_options,
        kind=kind,
    )
    replies = {role: said(reply) for role, reply in trial.replies.items()}
    return replace(trial, question=question, replies=replies, gold=reworded(trial.gold), more=told(trial.more))
