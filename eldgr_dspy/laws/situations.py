"""The small situations that a rule can meet, each as a trial with a short question: where a rule's bugs show.

A rule sees classes and certificates. So consensus is certified, uncertified, or a yes; there is no other class, one of
each kind, or a certified one with another; there is a tie or not; the judge prefers each of them, or abstains; and the
repairer abstains, or gives a span of each kind. Rarer situations follow: answers that are short, long, or a number,
much of everything, classes of several spellings, an answer that is cut between two passages, passages that deny an
answer, no evidence. Arithmetic comes last, with sums that are also negative, zero, and fractions.

They are the same each time, in the same order, and are tried before anything is drawn. This module uses only the
standard library. Source: ours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.laws.making import (
    CRATES,
    DEFAULTS,
    SHOWN,
    SOUND,
    Answers,
    apart,
    asked,
    counted,
    denials,
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
)
"""Answers that differ in everything that must not matter, above all in length; each is tried against the other."""

_MORE_CRATES = f"A crate holds 3 jars. How many jars do 6{'0' * 40} crates hold?"
_MOST = f"18{'0' * 40}"
_DERIVED: Sequence[Reply] = (SILENT, SOUND, replace(SOUND, check=""), replace(SOUND, answer="9"))
_SUMS: Sequence[Answers] = (("9", "18", "18"), ("18", "9", "9"), ("9", "18"), ("18", "9"))
_AGREED: Sequence[Answers] = (("9", "9"), ("18", None, "18"))


def situations(task: Task | AnswerType | None = None) -> Iterator[Trial]:
    """Yield every situation of a task, or of both; in retrieval the central ones first."""
    way = None if task is None else answer_type(task).way
    if way != "derivation":
        for several in (_contests, _ties, _scored, _spelled, _respelled, _undisputed, _worded, _large, _apart, _denied):
            yield from several()
        yield from _bare()
    if way != "evidence":
        for several in (_sums, _long_sums, _valued, _spelled_sums):
            yield from several()


def few_situations(task: Task | AnswerType) -> Iterator[Trial]:
    """Yield the most telling situations, one in nine, under the default settings: for slower tests."""
    if answer_type(task).way == "derivation":
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
    yield from _bare()


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
            yield from _opposed(consensus, other)


def _opposed(consensus: str, other: str) -> Iterator[Trial]:
    for shown in ((), (other,), (consensus,), (consensus, other)):
        pool = (other, consensus, consensus)
        for answers in (pool,) if consensus in shown else (pool, ("Doha", *pool)):
            yield asked(answers, other, "Doha", shown=("Doha", *shown))
        if consensus not in shown:
            yield asked((consensus, consensus), offer=other, shown=("Doha", *shown))


def _large() -> Iterator[Trial]:
    """The same with a long question, fifteen votes more, a long text for each candidate and a dozen passages more."""
    for trial in _opposed("Rome", "Lyon"):
        question = trial.question
        answers = (*question.answers, *["Rome"] * 15)
        longer = replace(
            question,
            text="Which of all the cities that are named here is it? " * 10,
            answers=answers,
            texts=tuple(f"{'One step, and another. ' * 10}So it is {answer}." for answer in answers),
            passages=(*question.passages, *[Passage("", f"Passage {number}.") for number in range(12)]),
        )
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
        yield from apart((left, right), f"{left} {right}", title="Guide")
        yield from apart((left, right), f"{left} {right}")
        yield from apart((f"{left}.", right), f"{left} {right}")
    yield from apart(("fine", "art"), "fine art", title="Guide", before=12)


def _denied() -> Iterator[Trial]:
    """An answer that one passage states and added passages deny; and many added passages."""
    much = tuple(Passage("", f"Number {number}. {'And so on. ' * 10}") for number in range(30))
    for answer in ("Paris", "new york", "1976"):
        yield shown_alone(answer, denials(answer))
    yield shown_alone("Paris", (*much, *[Passage("", "It was Paris.")] * 6))


def _bare() -> Iterator[Trial]:
    """No evidence, and blank evidence, under answers that are certified in other trials."""
    for answers, shown in product((("Lyon", "Rome", "Rome"), ("Rome", "Lyon", "Lyon"), ("Lyon",)), ((), ("", " "))):
        yield asked(answers, "Lyon", "Lyon", shown=shown)


def _sums() -> Iterator[Trial]:
    """Pools of a right and a wrong sum, with all replies of judge and deriver, and pools with nothing to choose."""
    for answers, derived, judge in product(_SUMS, _DERIVED, (None, "9", "18")):
        yield counted(answers, judge, derived)
    for answers, derived, homogeneous in product((*_AGREED, (None, ""), ()), _DERIVED, (None, *HOMOGENEOUS)):
        judge = answers[0] if answers else None
        yield counted(answers, judge, derived, Settings(homogeneous=homogeneous))


def _long_sums() -> Iterator[Trial]:
    """A right sum of two digits against a wrong one of many, and the other way round."""
    most = Derivation((Step(f"3 * 6{'0' * 40}", _MOST),), _MOST, f"{_MOST} / 6{'0' * 40} = 3")
    for text, right, wrong, sound in ((CRATES, "18", _MOST, SOUND), (_MORE_CRATES, _MOST, "18", most)):
        for derived in (SILENT, sound, replace(sound, check="")):
            for judge, answers in ((right, (right, wrong, wrong)), (wrong, (wrong, right, right))):
                yield counted(answers, judge, derived, text=text, gold=right)


def _valued() -> Iterator[Trial]:
    """Right sums that are negative, zero, fractions, or large, against wrong ones that differ in sign or place."""
    for right, wrong in (
        ("-5", "5"),
        ("−5", "3"),
        ("-1,200", "1200"),
        ("0", "8"),
        ("0.5", "5"),
        ("2.25", "225"),
        ("7", "-7"),
        ("1,200", "12"),
        ("1000000", "-0.5"),
    ):
        yield from opposed_sums(wrong, right)


def _spelled_sums() -> Iterator[Trial]:
    """A right number in three spellings, and a derivation that has one of them."""
    spellings = ("18.0", "18", "$18")
    for derived, wrong in product(spellings, (1, 4)):
        sound = replace(SOUND, answer=derived)
        for answers in ((*spellings, *["9"] * wrong), (*spellings[::-1], *["9"] * wrong)):
            yield counted(answers, "9", sound)
