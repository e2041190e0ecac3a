"""The small situations that a rule can meet, each as a trial with a short question: where a rule's bugs show.

A rule sees classes and certificates. So consensus is certified, uncertified, or a yes; there is no other class, one of
each kind, or a certified one with another; there is a tie or not; the judge prefers each of them, or abstains; and the
repairer abstains, or gives a span of each kind. Rarer situations follow, and arithmetic comes last. They are the same
each time, in the same order. This module uses only the standard library.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from itertools import cycle, islice, permutations, product
from typing import Any

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.trials import SILENT, Trial
from eldgr_dspy.rule.consultations import Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import HOMOGENEOUS, PREFERENCE, TASKS, Role, Task

Answers = tuple[str | None, ...]

_PLAIN = Settings()
_TEXTS = ("Doha", "Paris", "Lyon", "Nice")  # the default evidence, a passage each
_TOWNS: Sequence[str] = ("Lyon", "Rome", "Doha", "Paris", "Dubai", "Oslo", "Nice", "Bern", "Lusail")
_MARKS = {False: "Rome", True: "Paris", None: "yes"}, {True: "Lyon", False: "Oslo", None: "no"}  # consensus, another
_OTHERS: Sequence[tuple[bool | None, ...]] = ((), (True,), (False,), (None,), (True, False), (True, None))
_SETTLED_OFFERS = ("", "Doha")  # an abstention, and a certified span
_OFFERS = (*_SETTLED_OFFERS, "Bern", "no", "Lyon", "Rome")  # nowhere, a no, perhaps a candidate's, perhaps consensus
_NAMES = ("Anna", "Bay", "Port", "Mill", "Lake", "Hill", "Ford", "Town", "Glen", "Vale")
_BANGKOK = (
    "Krungthepmahanakhon Amonrattanakosin Mahintharayutthaya Mahadilokphop Noppharatratchathaniburirom"
    " Udomratchaniwetmahasathan Amonphimanawatansathit Sakkathattiyawitsanukamprasit"
)
_WORDINGS = (
    ("Y", _BANGKOK),
    ("Ur", "Democratic Republic of the Congo"),
    ("1976", "Prince Edward Island"),
    ("Zürich", "ada lovelace"),
    ("York", "New York"),
    ("yes", "San Marino"),
    ("zero", f"{_BANGKOK} and {_BANGKOK}"),
)
"""Answers that differ in everything that must not matter, above all in length; each is tried against the other."""
_DENIALS = (
    "It is not {0}, and it was not {0}.",
    "It isn't {0}, it wasn't {0}. It isn’t {0}.",
    "{0} is not it. {0} was not it. {0} isn't it. {0} wasn't it.",
    "Not {0}, no {0}, never {0}, nor {0}, neither {0}.",
    "{0} never was it. {0} is false. {0}? No.",
)
_CUT = (("Port of", "Spain"), ("the mouth of the longest", "river in Asia"), (_BANGKOK[:97], _BANGKOK[98:]))
_VALUES = (
    *(pair.split() for pair in ("-5 5", "-1,200 1200", "0 8", "0.5 5", "1,200 12", "1000000 -0.5")),
    *permutations(("18", f"18{'0' * 40}")),
)
"""Right sums, each with a wrong one that differs in sign, place or length."""


def situations(answer: Task | AnswerType | None = None) -> Iterator[Trial]:
    """Yield every situation of an answer type, or of all; in retrieval the smallest first, then the central ones."""
    way = None if answer is None else answer_type(answer).way
    retrieval = (_contests, _scores, _spellings, _single_classes, _sizes, _passages)
    for several in (*(retrieval if way != "derivation" else ()), *((_sums,) if way != "evidence" else ())):
        yield from several()


def repeats(kind: AnswerType) -> list[Trial]:
    """Return one question repeated: with other evidence, with none, and with the same answers in other pools."""
    if kind.way == "derivation":
        pools = (("18", "9", "9"), ("9", "18", "18"), ("18", "18", "9"), ("9", "9", "18"), ("18", "9", "9"))
        trials = [calculation(pool, None, derived_sum("18")[1]) for pool in pools]
    else:
        lyon, rome = ("Lyon", "Rome", "Rome"), ("Lyon", "Lyon", "Rome")
        several = [(lyon, ("Lyon",)), (lyon, ("Rome",)), (lyon, ()), (lyon, ("Lyon",)), (rome, ("Lyon",))]
        several += [(lyon, ("Lyon",)), (lyon[::-1], ("Lyon",)), (lyon, ("Doha", "Lyon")), (lyon, ("Lyon", "Doha"))]
        trials = [contest(pool, "Lyon", "Doha", texts=texts) for pool, texts in several]
    return [*trials_of_type(trials, kind)]


def classes_of_examples(kind: AnswerType) -> list[list[str]]:
    """Return the examples of a type by class, each class and each spelling in their order."""
    examples: object = kind.examples()
    if not isinstance(examples, Sequence) or isinstance(examples, str) or not all(type(one) is str for one in examples):
        raise ArgumentError(f"{kind.name}.examples() must return answers, texts in a tuple; got {examples!r:.80}.")
    question = Question("Which?", kind.name, (), options=kind.example_options, kind=kind)
    classes: dict[str, list[str]] = {}
    for answer, class_ in zip(examples, kind.of(question).grouping(examples).classes, strict=True):
        if class_ is not None:
            classes.setdefault(class_.key, []).append(answer)
    return [*classes.values()]


def trials_of_type(trials: Iterable[Trial], kind: AnswerType) -> Iterator[Trial]:
    """Yield trials on questions of a type, its examples in place of towns; then a pool of each class of examples."""
    own: dict[str, Any] = {"task": kind.name, "options": kind.example_options, "kind": kind}
    classes, names = classes_of_examples(kind), dict[str, str]()
    if kind.way != "derivation" and kind.name_in_files not in TASKS:
        spellings = [*(class_[0] for class_ in classes), *(answer for class_ in classes for answer in class_[1:])]
        names = dict(zip(_TOWNS, cycle(spellings), strict=False))
    pattern = re.compile(rf"\b(?:{'|'.join(names)})\b")

    def reword(part: Any) -> Any:
        match part:
            case str():
                return pattern.sub(lambda town: names[town[0]], part)
            case tuple():
                return tuple(map(reword, part))
            case dict():
                return {role: reword(reply) for role, reply in part.items()}
            case Trial() | Question() | Passage() | Repair():
                return replace(part, **{one.name: reword(getattr(part, one.name)) for one in fields(part)})
        return part

    for trial in trials:
        yield (reword(trial) if names else trial).about(**own)
    for class_ in classes:  # the first of a pool may decide what a class is
        yield Trial(Question("Which?", answers=tuple(class_[:3]), **own), gold=class_[0])


def contest(
    pool: Answers, judge: str | None = None, offer: str = "", settings: Settings = _PLAIN, texts: Sequence[str] = _TEXTS
) -> Trial:
    """Return a retrieval trial: the judge prefers an answer, the repairer offers a span; empty for an abstention."""
    question = Question("Which?", "retrieval", pool, (), tuple(Passage("", text) for text in texts))
    gold = max(pool, key=pool.count, default=None) or ""
    return _trial(question, judge, settings, gold, "repairer", Repair(offer) if offer else SILENT)


def calculation(
    answers: Answers, judge: str | None, derivation: Reply, settings: Settings = _PLAIN, right: str = "18"
) -> Trial:
    """Return an arithmetic trial: the judge prefers an answer, and the deriver gives a reply."""
    question = Question(derived_sum(right)[0], "arithmetic", answers, (), (Passage("", "9"), Passage("", right)))
    return _trial(question, judge, settings, right, "deriver", derivation)


def _trial(question: Question, judge: str | None, settings: Settings, gold: str, role: Role, reply: Reply) -> Trial:
    verdict = SILENT if judge is None else Verdict(question.answers.index(judge))
    return Trial(question, settings, {"judge": verdict, role: reply}, gold, (Passage("", "Rome"),))


def oppositions(consensus: str, other: str) -> Iterator[Trial]:
    """Yield consensus against another answer, with one, both or neither certified, and a repair by the other answer."""
    pool = (other, consensus, consensus)
    for certified in ((), (other,), (consensus,), (consensus, other)):
        for answers in (pool,) if consensus in certified else (pool, ("Doha", *pool)):
            yield contest(answers, other, "Doha", texts=("Doha", *certified))
        if consensus not in certified:
            yield contest((consensus, consensus), offer=other, texts=("Doha", *certified))


def certified_alone(answer: str, more: tuple[Passage, ...]) -> Trial:
    """Return a trial in which one short passage certifies consensus, and more evidence is added."""
    return replace(contest((answer, answer, "Lyon"), "Lyon", texts=(f"It was {answer} then.",)), more=more)


def apart(halves: tuple[str, str], whole: str, title: str = "", before: int = 0) -> Trial:
    """Return a trial in which a passage ends with the first half of an answer, and the next begins with the second."""
    filler = tuple(Passage("", f"Passage {number}.") for number in range(before))
    cut = Passage(title, f"and this is a {halves[0]}"), Passage(title, f"{halves[1]} can be seen")
    return replace(contest((whole, whole), whole).about(passages=(*filler, *cut)), more=(Passage("", "another"),))


def opposed_sums(wrong: str, right: str = "18") -> Iterator[Trial]:
    """Yield a right number against a wrong one in either place, with a sound, a failing and no derivation."""
    sound = derived_sum(right)[1]
    of_wrong, of_right = (right, wrong, wrong), (wrong, right, right)
    yield calculation(of_wrong, right, SILENT, right=right)
    yield calculation(of_wrong, wrong, sound, right=right)
    yield calculation(of_wrong, right, replace(sound, check=""), right=right)
    yield calculation(of_right, wrong, sound, right=right)
    yield calculation((wrong, wrong), None, sound, Settings(homogeneous="repair"), right)


def derived_sum(right: str) -> tuple[str, Derivation]:
    """Return a question whose answer is this number as spelled, and a sound derivation of it."""
    value = Fraction(right.replace(",", "").replace("−", "-"))
    start = max(value, Fraction(0)) + 4
    three = (value, start, start - value)
    result, first, second = (str(one) if one.denominator == 1 else repr(float(one)) for one in three)
    text = f"In the morning it was {first} degrees, and then it fell by {second} degrees. How many degrees is it now?"
    return text, Derivation((Step(f"{first} - {second}", right),), right, f"{result} + {second} = {first}")


def _contests() -> Iterator[Trial]:
    """Pools of two, one or none, the easiest to read; then consensus of each kind, outvoting the others or tied."""
    pools: Sequence[Answers] = (("Paris", "Lyon"), ("Paris",), ())
    evidence = ((), ("", " "), ("Lyon",), ("Paris",), ("Paris", ""))
    for answers, texts, offer, prefers in product(pools, evidence, ("", "Lyon"), (True, False)):
        yield contest(answers, answers[-1] if answers and prefers else None, offer, texts=texts)
    for is_tie, mark, others in product((False, True), _MARKS[0], _OTHERS):
        rivals, consensus = [_MARKS[1][other] for other in others], _MARKS[0][mark]
        answers = (consensus, *rivals) if is_tie else (*rivals, consensus, consensus)
        offers = _OFFERS if mark is False and not is_tie else _SETTLED_OFFERS
        for judge, offer in product((None, consensus, *rivals), offers):
            yield contest(answers, judge, offer)


def _scores() -> Iterator[Trial]:
    """Scores that rise and fall, under both readings of the preference; two candidates are certified."""
    answers = ("Lyon", "Nice", "Oslo", "no", "Rome", "Rome")
    rising = tuple((index + 1) / 8 for index in range(len(answers)))
    for reading, judge, scores in product(PREFERENCE, answers[:5], (rising, rising[::-1])):
        for offer in _SETTLED_OFFERS:
            trial = contest(answers, judge, offer, Settings(preference=reading))
            yield trial.replying("judge", Verdict(answers.index(judge), scores))


def _spellings() -> Iterator[Trial]:
    """Candidates that vote together in several spellings, a repair in consensus's class, and missing answers."""
    lyon, rome = ("the Lyon", "Lyon"), ("the Rome", "Rome")
    for judge in (None, *lyon, *rome):
        yield contest((*lyon, *rome, "Rome"), judge)
    by_case = Settings(certificate="token")  # under which two spellings of a class may differ in certificate
    for answers, judge in product((("Lyon", "rome", "rome"), ("Oslo", "rome", "rome"), ("rome",)), (None, "rome")):
        for settings in (_PLAIN, by_case):
            yield contest(answers, judge, "Rome", settings, texts=(*_TEXTS, "Rome"))
    for judge in (None, "Lyon", ""):
        yield contest((None, "Lyon", "", "Rome", "Rome"), judge)
    spellings = ("Lyon", "the Lyon", "LYON")
    for members, spelling in product(permutations(spellings), spellings):
        texts, minority = ("Doha", spelling), (*members, *["Rome"] * 4)
        yield contest((*members, members[2], "Oslo"), "Oslo", texts=texts)
        yield contest(minority, members[0], texts=texts)
        yield contest(minority, None, members[1], texts=texts)


def _single_classes() -> Iterator[Trial]:
    """Pools of one class, and without one, under each setting of what is still asked."""
    pools: Sequence[Answers] = (("Rome", None, "Rome"), ("Paris",), ("yes",), (None, ""), ())
    for answers, homogeneous in product(pools, (None, *HOMOGENEOUS)):
        for offer in _OFFERS if answers[:1] != ("Paris",) else _SETTLED_OFFERS:
            yield contest(answers, answers[0] if answers else None, offer, Settings(homogeneous=homogeneous))


def _sizes() -> Iterator[Trial]:
    """Answers in other words, of each number of words and of letters; then much of everything."""
    for pair in _WORDINGS:
        yield from (trial for one, other in (pair, pair[::-1]) for trial in oppositions(one, other))
    for n in range(2, 14):
        words = [*islice(cycle(_NAMES), n)]
        yield from oppositions(" ".join(words), " ".join(reversed(words)))
    for n in range(1, 131):
        name = f"{' '.join(islice(cycle(_NAMES), n))[: n - 1]}s"
        yield contest((name, name), texts=(name,))
    for n in (*range(1, 11), 16):
        filler = [Passage("", f"Passage {number}.") for number in range(3 * n if n > 3 else 0)]
        for trial in oppositions("Rome", "Lyon"):
            answers = (*trial.question.answers, *["Rome"] * n)
            larger = trial.about(answers=answers, passages=(*trial.question.passages, *filler))
            if n > 10:
                texts = tuple(f"{'One step, and another. ' * 10}So it is {answer}." for answer in answers)
                larger = larger.about(text="Which of all the cities that are named here is it? " * 10, texts=texts)
            yield larger


def _passages() -> Iterator[Trial]:
    """An answer cut between two passages in every way; one that added passages deny; and many added passages."""
    yield from (apart(("fine", "art"), whole) for whole in ("fine art", "fineart"))
    for (left, right), stop, title in product(_CUT, ("", "."), ("Guide", "")):
        yield apart((f"{left}{stop}", right), f"{left} {right}", title)
    yield apart(("fine", "art"), "fine art", title="Guide", before=12)
    much = tuple(Passage("", f"Number {number}. {'And so on. ' * 10}") for number in range(30))
    for answer in ("Paris", "new york", "1976"):
        yield certified_alone(answer, tuple(Passage("", denial.format(answer)) for denial in _DENIALS))
    yield certified_alone("Paris", (*much, *[Passage("", "It was Paris.")] * 6))


def _sums() -> Iterator[Trial]:
    """Right against wrong sums with all replies; nothing to choose; right sums of every sign, length and spelling."""
    _, sound = derived_sum("18")
    derivations: Sequence[Reply] = (SILENT, sound, replace(sound, check=""), replace(sound, answer="9"))
    disputes: Sequence[Answers] = (("9", "18", "18"), ("18", "9", "9"), ("9", "18"), ("18", "9"))
    for answers, reply, judge in product(disputes, derivations, (None, "9", "18")):
        yield calculation(answers, judge, reply)
    agreements: Sequence[Answers] = (("9", "9"), ("18", None, "18"), (None, ""), ())
    for answers, reply, homogeneous in product(agreements, derivations, (None, *HOMOGENEOUS)):
        yield calculation(answers, answers[0] if answers else None, reply, Settings(homogeneous=homogeneous))
    for right, wrong in _VALUES:
        yield from opposed_sums(wrong, right)
    spellings = ("18.0", "18", "$18")
    for answer, n, several in product(spellings, (1, 4), (spellings, spellings[::-1])):
        yield calculation((*several, *["9"] * n), "9", replace(derived_sum("18")[1], answer=answer))
