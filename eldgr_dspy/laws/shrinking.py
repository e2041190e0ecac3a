"""Make a trial that breaks a law small enough to read: drop what is not needed, and simplify the rest.

Hypothesis shrinks its draws without knowing what a candidate or a verdict is. Here a step is one that a reader would
take: leave out a candidate or two, let a role abstain, take a default. The result still breaks the law, and with any
one step more it would not; a smaller trial may be several steps away. This module uses only the standard library.
Source: ours, greedy as delta debugging is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import combinations, product
from typing import TypeVar
from unicodedata import normalize

from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Reply, Verdict
from eldgr_dspy.laws.trials import SILENT, Trial
from eldgr_dspy.questions import Question, Settings

T = TypeVar("T")

PLAIN = ("Paris", "Lyon", "Rome", "Oslo", "Doha", "Bern")
MOST_STEPS = 500


def smallest(trial: Trial, breaks: Callable[[Trial], bool]) -> Trial:
    """Return a trial that `breaks` as the given one does, while no trial that is simpler by one step does."""
    for _ in range(MOST_STEPS):
        step = next((simpler for simpler in _simpler(trial) if breaks(simpler)), None)
        if step is None:
            return trial
        trial = step
    return trial


def _simpler(trial: Trial) -> Iterator[Trial]:
    """Yield trials that are simpler by one step each, the greatest steps first."""
    for steps in (_fewer_candidates, _less_evidence, _fewer_words, _defaults, _unscored, _less_said, _plainer):
        yield from steps(trial)


def _fewer_candidates(trial: Trial) -> Iterator[Trial]:
    """One candidate less; if that would change the vote, two, or one with another at the head, which wins a tie."""
    places = range(len(trial.question.answers))
    yield from (_lacking(trial, out) for out in places)
    yield from (_lacking(_lacking(trial, later), earlier) for earlier, later in combinations(places, 2))
    yield from (_lacking(_headed(trial, head), out) for head, out in product(places[1:], places[1:]))


def _lacking(trial: Trial, out: int) -> Trial:
    question = trial.question
    return replace(
        trial,
        question=replace(question, answers=_without(question.answers, out), texts=_without(question.texts, out)),
        replies={role: _not_about(reply, out) for role, reply in trial.replies.items()},
        other_judge=_not_about(trial.other_judge, out),
        other_scores=_without(trial.other_scores, out),
        pool_order=_renumbered(trial.pool_order, out),
    )


def _headed(trial: Trial, head: int) -> Trial:
    """The same with a candidate moved to the head of the pool."""
    question = trial.question

    def moved(items: tuple[T, ...]) -> tuple[T, ...]:
        return (*items[head : head + 1], *_without(items, head))

    def said(reply: Reply) -> Reply:
        if not isinstance(reply, Verdict):
            return reply
        place = 0 if reply.preferred == head else reply.preferred + (reply.preferred < head)
        return replace(reply, preferred=place, scores=None if reply.scores is None else moved(reply.scores))

    return replace(
        trial,
        question=replace(question, answers=moved(question.answers), texts=moved(question.texts)),
        replies={role: said(reply) for role, reply in trial.replies.items()},
        other_judge=said(trial.other_judge),
        other_scores=moved(trial.other_scores),
    )


def _not_about(reply: Reply, out: int) -> Reply:
    """A reply for one candidate less; an abstention if the preferred one is gone."""
    if not isinstance(reply, Verdict):
        return reply
    if reply.preferred == out:
        return SILENT
    scores = None if reply.scores is None else _without(reply.scores, out)
    return replace(reply, preferred=reply.preferred - (reply.preferred > out), scores=scores)


def _without(items: tuple[T, ...], out: int) -> tuple[T, ...]:
    return items[:out] + items[out + 1 :]


def _renumbered(order: tuple[int, ...], out: int) -> tuple[int, ...]:
    return tuple(index - (index > out) for index in order if index != out)


def _less_evidence(trial: Trial) -> Iterator[Trial]:
    passages = trial.question.passages
    for out in range(len(passages)):
        fewer = trial.with_evidence(_without(passages, out))
        yield replace(fewer, evidence_order=_renumbered(trial.evidence_order, out))
    for out in range(len(trial.more)):
        yield replace(trial, more=_without(trial.more, out))
    for place, index in enumerate(trial.evidence_order):
        if index in trial.evidence_order[:place]:
            yield replace(trial, evidence_order=_without(trial.evidence_order, place))


def _fewer_words(trial: Trial) -> Iterator[Trial]:
    passages, answers = trial.question.passages, [text for text in _texts(trial) if text in PLAIN]
    for place, passage in enumerate(passages):
        for less in _shorter(passage, answers):
            yield trial.with_evidence((*passages[:place], less, *passages[place + 1 :]))
    for place, passage in enumerate(trial.more):
        for less in _shorter(passage, answers):
            yield replace(trial, more=(*trial.more[:place], less, *trial.more[place + 1 :]))
    blank_last = tuple(sorted(passages, key=lambda passage: not passage.text))
    if blank_last != passages:
        yield trial.with_evidence(blank_last)


def _shorter(passage: Passage, answers: Sequence[str]) -> Iterator[Passage]:
    """The same passage with less text, or with a plain answer as its text."""
    if passage.title:
        yield Passage("", passage.text or passage.title)
    if passage.text:
        yield Passage(passage.title, "")
    words = passage.text.split()
    if len(words) > 1:
        yield from (Passage(passage.title, " ".join(words[:out] + words[out + 1 :])) for out in range(len(words)))
    if passage.text:
        plainer = PLAIN[: PLAIN.index(passage.text)] if passage.text in PLAIN else PLAIN
        yield from (Passage(passage.title, answer) for answer in answers if answer in plainer)


def _defaults(trial: Trial) -> Iterator[Trial]:
    default = Settings()
    for setting in fields(Settings):
        if getattr(trial.settings, setting.name) != getattr(default, setting.name):
            yield replace(trial, settings=replace(trial.settings, **{setting.name: getattr(default, setting.name)}))
    if trial.question.texts:
        yield replace(trial, question=replace(trial.question, texts=()))
    if trial.question.text != "Which?":
        yield replace(trial, question=replace(trial.question, text="Which?"))


def _unscored(trial: Trial) -> Iterator[Trial]:
    """The reading without scores, and a verdict without them for a candidate that they could have chosen."""
    verdict = trial.reply("judge")
    if isinstance(verdict, Verdict) and verdict.scores and trial.settings.preference != Settings().preference:
        plain = replace(trial, settings=replace(trial.settings, preference=Settings().preference), other_scores=())
        for index in range(len(verdict.scores)):
            yield plain.replying("judge", Verdict(index))


def _less_said(trial: Trial) -> Iterator[Trial]:
    for role, reply in trial.replies.items():
        for less in _less(reply):
            yield trial.replying(role, less)
    for less in _less(trial.other_judge):
        yield replace(trial, other_judge=less)
    if trial.gold:
        yield replace(trial, gold="")
    if trial.failure.reason != "failed":
        yield replace(trial, failure=Abstention("failed"))


def _less(reply: Reply) -> Iterator[Reply]:
    if reply != SILENT:
        yield SILENT
    if isinstance(reply, Verdict) and (reply.scores or reply.rationale):
        yield Verdict(reply.preferred)
    if isinstance(reply, Repair) and reply.passage is not None:
        yield Repair(reply.answer)


def _plainer(trial: Trial) -> Iterator[Trial]:
    """The same with one text written in another way throughout, or with the preferred candidate at the end."""
    answers, reply = trial.question.answers, trial.reply("judge")
    if (
        isinstance(reply, Verdict)
        and reply.preferred < len(answers) - 1
        and not trial.question.texts
        and not reply.scores
    ):
        last = (*_without(answers, reply.preferred), answers[reply.preferred])
        yield trial.with_answers(last).replying("judge", Verdict(len(answers) - 1))
    if trial.question.type.way == "derivation":
        return
    yield from _alike(trial)
    ordered = _in_order(trial)
    if ordered != trial:
        yield ordered
    unused = [name for name in PLAIN if name not in _texts(trial)][:1]
    for plain in unused:
        odd = [text for text in _texts(trial) if text not in PLAIN and text.strip()]
        yield from (_renamed(trial, text, plain) for text in odd)
        yield from (_renamed(_respelt(trial, text), text, plain) for text in odd)
        for place, answer in enumerate(answers):
            if not (answer and answer.strip()):
                yield trial.with_answers((*answers[:place], plain, *answers[place + 1 :]))


def _alike(trial: Trial) -> Iterator[Trial]:
    """The same with an answer spelled as an earlier one that differs from it in case or composition alone."""
    answers = trial.question.answers
    for place, answer in enumerate(answers):
        for earlier in answers[:place]:
            if answer and earlier and answer != earlier and _folded(answer) == _folded(earlier):
                yield trial.with_answers((*answers[:place], earlier, *answers[place + 1 :]))
                yield _renamed(trial, answer, earlier)


def _in_order(trial: Trial) -> Trial:
    """The same with the plain names in the order in which they are listed."""
    names = [text for text in _texts(trial) if text in PLAIN]
    for place, name in enumerate(names):
        trial = _renamed(trial, name, f"<{place}>")
    for place in range(len(names)):
        trial = _renamed(trial, f"<{place}>", PLAIN[place])
    return trial


def _texts(trial: Trial) -> list[str]:
    """The answers of candidates and roles, each once."""
    said = (*trial.question.answers, *map(_said, trial.replies.values()), trial.gold)
    return [text for text in dict.fromkeys(said) if text]


def _said(reply: Reply) -> str | None:
    return reply.answer if isinstance(reply, Repair | Derivation) else None


def _respelt(trial: Trial, text: str) -> Trial:
    """The same, with each passage that only respells a text in that text's spelling."""

    def told(passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        return tuple(Passage(old.title, text if _folded(old.text) == _folded(text) else old.text) for old in passages)

    return replace(trial.with_evidence(told(trial.question.passages)), more=told(trial.more))


def _folded(text: str) -> str:
    return normalize("NFKC", text).casefold()


def _renamed(trial: Trial, text: str, plain: str) -> Trial:
    def said(reply: Reply) -> Reply:
        return Repair(plain) if isinstance(reply, Repair) and reply.answer == text else reply

    def told(passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        return tuple(Passage(old.title.replace(text, plain), old.text.replace(text, plain)) for old in passages)

    question: Question = trial.question
    return replace(
        trial,
        question=replace(
            question,
            answers=tuple(plain if answer == text else answer for answer in question.answers),
            texts=tuple(old.replace(text, plain) for old in question.texts),
            passages=told(question.passages),
        ),
        replies={role: said(reply) for role, reply in trial.replies.items()},
        gold=plain if trial.gold == text else trial.gold,
        more=told(trial.more),
    )
