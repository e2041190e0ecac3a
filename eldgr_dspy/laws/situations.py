"""The small situations that a rule can meet, each as a trial with a short question: where a rule's bugs show.

A rule sees classes and certificates. So consensus is certified, uncertified, or a yes; there is no other class, one of
each kind, or a certified one with another; there is a tie or not; the judge prefers each of them, or abstains; and the
repairer abstains, or gives a span of each kind. Rarer situations follow: answers of every length, much of everything,
classes of several spellings, an answer that is cut between two passages, passages that deny an answer, no evidence.
Arithmetic comes last, with sums that are also negative, zero, and fractions.

They are the same each time, in the same order, and are tried before anything is drawn. This module uses only the
standard library. Source: ours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice, permutations, product

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Repair, Reply, Verdict
from eldgr_dspy.laws.making import (
    DEFAULTS,
    SHOWN,
    SOUND,
    Answers,
    apart,
    asked,
    counted,
    opposed,
    opposed_sums,
    shown_alone,
    varied,
)
from eldgr_dspy.laws.trials import SILENT, Trial
from eldgr_dspy.questions import Settings
from eldgr_dspy.words import HOMOGENEOUS, PREFERENCE, Task

_CONSENSUS: dict[bool | None, str] = {False: "Rome", True: "Paris", None: "yes"}
_OTHER: dict[bool | None, str] = {True: "Lyon", False: "Oslo", None: "no"}
_OTHERS: Sequence[tuple[bool | None, ...]] = ((), (True,), (False,), (None,), (True, False), (True, None))
_SETTLED_OFFERS = ("", "Doha")  # an abstention, and a certified span
_OFFERS = (*_SETTLED_OFFERS, "Bern", "no", "Lyon", "Rome")  # nowhere, a no, perhaps a candidate's, perhaps consensus

_NAMES = ("Anna", "Bay", "Port", "Mill", "Lake", "Hill", "Ford", "Town", "Glen", "Vale")
_OTHER_NAMES = ("North", "Moor", "Cape", "Wood", "East", "Dale", "South", "Peak", "West", "Isle")
_MOST_WORDS, _MOST_CHARACTERS = 13, 130
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
    "{0} never was it. {0} cannot be it. {0}? No.",
    "{0} is false. {0} is wrong. {0} is incorrect. {0} was denied. False: {0}.",
    "Unlike {0}, except {0}, without {0}, rather than {0}, instead of {0}.",
    "Contrary to what was said, {0} is not true.",
    "However, {0} is disputed, and {0} was refuted. There is no evidence for {0}.",
)
_DERIVED: Sequence[Reply] = (SILENT, SOUND, replace(SOUND, check=""), replace(SOUND, answer="9"))
_SUMS: Sequence[Answers] = (("9", "18", "18"), ("18", "9", "9"), ("9", "18"), ("18", "9"))
_AGREED: Sequence[Answers] = (("9", "9"), ("18", None, "18"))
_LONG_SUMS = (("18", f"18{'0' * 40}"), (f"18{'0' * 40}", "18"))
_VALUES = (
    ("-5", "5"),
    ("−5", "3"),
    ("-1,200", "1200"),
    ("0", "8"),
    ("0.5", "5"),
    ("2.25", "225"),
    ("7", "-7"),
    ("1,200", "12"),
    ("1000000", "-0.5"),
)
"""Right sums, each with a wrong one that differs in sign or place."""


def situations(answer: Task | AnswerType | None = None) -> Iterator[Trial]:
    """Yield every situation of an answer type, or of all; in retrieval the smallest first, then the central ones."""
    way = None if answer is None else answer_type(answer).way
    retrieval = (
        _least,
        _contests,
        _ties,
        _scored,
        _spelled,
        _undisputed,
        _worded,
        _respelled,
        _apart,
        _denied,
        _sized,
        _large,
    )
    for several in retrieval if way != "derivation" else ():
        yield from several()
    for several in (_sums, _valued, _spelled_sums) if way != "evidence" else ():
        yield from several()


def few_situations(answer: Task | AnswerType) -> Iterator[Trial]:
    """Yield the most telling situations, one in ten, under the default settings: for slower tests."""
    if answer_type(answer).way == "derivation":
        yield from (trial for trial in _sums() if trial.settings == DEFAULTS)
        yield from (trial for trial in _valued() if trial.settings == DEFAULTS and trial.gold in ("-5", "0"))
        return
    for trial in _contests():
        answers, quiet = trial.question.answers, trial.reply("judge") == SILENT
        alone, one_certified = len(answers) == 2, len(answers) == 3 and answers[0] == "Lyon"
        certified = trial.reply("repairer") == Repair("Doha")
        if (certified and ("Rome" in answers or one_certified)) or (quiet and (alone or one_certified)):
            yield trial
    yield from (trial for trial in _scored() if trial.settings == DEFAULTS and trial.reply("repairer") == SILENT)
    yield from _spelled()
    yield from opposed(*_WORDINGS[-1])
    yield from (trial for trial in _least() if not any(passage.text.strip() for passage in trial.question.passages))


def _name(words: Sequence[str], n: int, characters: int | None = None) -> str:
    """A name of this many words, or of this many characters."""
    text = " ".join(islice(cycle(words), n))[:characters]
    return text if not text.endswith(" ") else f"{text[:-1]}s"


# -- retrieval ---------------------------------------------------------------------------------------------------------


def _least() -> Iterator[Trial]:
    """A pool of two, one or none, and evidence of one, the other or neither: what is read most easily comes first."""
    pools: Sequence[Answers] = (("Paris", "Lyon"), ("Paris",), ())
    evidence = ((), ("", " "), ("Lyon",), ("Paris",), ("Paris", ""))
    for answers, shown, offer, preferred in product(pools, evidence, ("", "Lyon"), (True, False)):
        yield asked(answers, answers[-1] if answers and preferred else None, offer, shown=shown)


def _contests() -> Iterator[Trial]:
    """Consensus of each kind with two votes, the others before it."""
    for mark, others in product(_CONSENSUS, _OTHERS):
        named, consensus = [_OTHER[other] for other in others], _CONSENSUS[mark]
        for judge in (None, consensus, *named):
            for offer in _OFFERS if mark is False else _SETTLED_OFFERS:
                yield asked((*named, consensus, consensus), judge, offer)


def _ties() -> Iterator[Trial]:
    """The same with one vote for each, consensus before the others."""
    for mark, others in product(_CONSENSUS, _OTHERS):
        answers = (_CONSENSUS[mark], *(_OTHER[other] for other in others))
        for judge, offer in product((None, *answers), _SETTLED_OFFERS):
            yield asked(answers, judge, offer)


def _scored() -> Iterator[Trial]:
    """Scores that rise and fall, under both readings of the preference; two candidates are certified."""
    answers = ("Lyon", "Nice", "Oslo", "no", "Rome", "Rome")
    rising = tuple((index + 1) / 8 for index in range(len(answers)))
    for reading, judge, scores in product(PREFERENCE, answers[:5], (rising, rising[::-1])):
        for offer in _SETTLED_OFFERS:
            trial = asked(answers, judge, offer, Settings(preference=reading))
            verdict = Verdict(answers.index(judge), scores)
            yield replace(trial.replying("judge", verdict), other_scores=scores[::-1])


def _spelled() -> Iterator[Trial]:
    """Candidates that vote together in two spellings, a repair in consensus's class, and missing answers."""
    lyon, rome = ("the Lyon", "Lyon"), ("the Rome", "Rome")
    for judge in (None, *lyon, *rome):
        yield asked((*lyon, *rome, "Rome"), judge)
    for judge in ("the Paris", "Lyon"):
        yield asked(("Lyon", "the Paris", "Paris"), judge)
    cased = Settings(certificate="token")  # under which two spellings of a class may differ in certificate
    for answers, judge in product((("Lyon", "rome", "rome"), ("Oslo", "rome", "rome"), ("rome",)), (None, "rome")):
        for settings in (DEFAULTS, cased):
            yield asked(answers, judge, "Rome", settings, shown=(*SHOWN, "Rome"))
    for judge in (None, "Lyon", ""):
        yield asked((None, "Lyon", "", "Rome", "Rome"), judge)


def _undisputed() -> Iterator[Trial]:
    """Pools of one class, and without one, under each setting of what is still asked."""
    pools: Sequence[Answers] = (("Rome", None, "Rome"), ("Paris",), ("yes",), (None, ""), ())
    for answers, homogeneous in product(pools, (None, *HOMOGENEOUS)):
        for offer in _OFFERS if answers[:1] != ("Paris",) else _SETTLED_OFFERS:
            yield asked(answers, answers[0] if answers else None, offer, Settings(homogeneous=homogeneous))


def _worded() -> Iterator[Trial]:
    """Consensus and the other class in other words, each certified or not; judge or repairer name the other."""
    for pair in _WORDINGS:
        for consensus, other in (pair, pair[::-1]):
            yield from opposed(consensus, other)


def _sized() -> Iterator[Trial]:
    """Answers of each number of words, contested, and of each number of characters, certified."""
    for n in range(2, _MOST_WORDS + 1):
        yield from opposed(_name(_NAMES, n), _name(_OTHER_NAMES, n))
    for n in range(1, _MOST_CHARACTERS + 1):
        name = _name(_NAMES, n, n)
        yield asked((name, name), shown=(name,))


def _large() -> Iterator[Trial]:
    """Contests of three to twenty candidates, with a long question, long texts and up to thirty passages more."""
    for n in (*range(1, 11), 16):
        for trial in opposed("Rome", "Lyon"):
            question = trial.question
            answers = (*question.answers, *["Rome"] * n)
            filler = tuple(Passage("", f"Passage {number}.") for number in range(3 * n if n > 3 else 0))
            longer = replace(question, answers=answers, passages=(*question.passages, *filler))
            if n > 10:
                texts = tuple(f"{'One step, and another. ' * 10}So it is {answer}." for answer in answers)
                longer = replace(longer, text="Which of all the cities that are named here is it? " * 10, texts=texts)
            yield varied(replace(trial, question=longer))


def _respelled() -> Iterator[Trial]:
    """A class in three spellings in each order, one of them in the evidence: consensus, preferred, or a repair."""
    spellings = ("Lyon", "the Lyon", "LYON")
    for (first, second, third), shown in product(permutations(spellings), spellings):
        members, evidence = (first, second, third, third), ("Doha", shown)
        yield asked((*members, "Oslo"), "Oslo", shown=evidence)
        pool = (*members[:3], *["Rome"] * 4)
        yield asked(pool, first, shown=evidence)
        yield asked(pool, None, second, shown=evidence)


def _apart() -> Iterator[Trial]:
    """An answer that is cut between two passages, with a space and without one."""
    for answers in (("fineart", "fine art", "fine art"), ("fine art", "Rome", "fineart", "Rome")):
        for title, text in (("", "art can be seen"), ("art", "can be seen")):
            trial = asked(answers, "fine art", "fineart", shown=("and this is a fine",))
            passages = (*trial.question.passages, Passage(title, text))
            yield replace(varied(trial.with_evidence(passages)), more=(Passage("", "another"),))
    half = _BANGKOK.index(" ", 80)
    for left, right in (
        ("Port of", "Spain"),
        ("the mouth of the longest", "river in Asia"),
        (_BANGKOK[:half], _BANGKOK[half + 1 :]),
    ):
        for halves in ((left, right), (f"{left}.", right)):
            yield from (apart(halves, f"{left} {right}", title) for title in ("Guide", ""))
    yield apart(("fine", "art"), "fine art", title="Guide", before=12)


def _denied() -> Iterator[Trial]:
    """An answer that one passage states and added passages deny; and many added passages."""
    much = tuple(Passage("", f"Number {number}. {'And so on. ' * 10}") for number in range(30))
    for answer in ("Paris", "new york", "1976"):
        yield shown_alone(answer, tuple(Passage("", denial.format(answer)) for denial in _DENIALS))
    yield shown_alone("Paris", (*much, *[Passage("", "It was Paris.")] * 6))


# -- arithmetic --------------------------------------------------------------------------------------------------------


def _sums() -> Iterator[Trial]:
    """Pools of a right and a wrong sum, with all replies of judge and deriver, and pools with nothing to choose."""
    for answers, derived, judge in product(_SUMS, _DERIVED, (None, "9", "18")):
        yield counted(answers, judge, derived)
    for answers, derived, homogeneous in product((*_AGREED, (None, ""), ()), _DERIVED, (None, *HOMOGENEOUS)):
        judge = answers[0] if answers else None
        yield counted(answers, judge, derived, Settings(homogeneous=homogeneous))


def _valued() -> Iterator[Trial]:
    """Right sums that are negative, zero, fractions, or of many digits, against wrong ones."""
    for right, wrong in (*_VALUES, *_LONG_SUMS):
        yield from opposed_sums(wrong, right)


def _spelled_sums() -> Iterator[Trial]:
    """A right number in three spellings, and a derivation that has one of them."""
    spellings = ("18.0", "18", "$18")
    for derived, wrong in product(spellings, (1, 4)):
        sound = replace(SOUND, answer=derived)
        for answers in ((*spellings, *["9"] * wrong), (*spellings[::-1], *["9"] * wrong)):
            yield counted(answers, "9", sound)
