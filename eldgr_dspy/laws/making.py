"""Make the trials of the situations: answers, evidence, the roles' replies, and the changes that laws try.

This module uses only the standard library. Source: ours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.laws.trials import SILENT, Trial
from eldgr_dspy.questions import Question, Settings

Answers = tuple[str | None, ...]

DEFAULTS = Settings()
SHOWN = ("Doha", "Paris", "Lyon", "Nice")
"""The default evidence, a passage each."""
SOUND = Derivation((Step("3 * 6", "18"),), "18", "18 / 6 = 3")
_CRATES = "A crate holds 3 jars. How many jars do 6 crates hold?"


def asked(
    answers: Answers,
    judge: str | None = None,
    offer: str = "",
    settings: Settings = DEFAULTS,
    shown: Sequence[str] = SHOWN,
) -> Trial:
    """Return a retrieval trial: the judge prefers an answer, the repairer offers a span; empty for an abstention."""
    question = Question("Which?", "retrieval", answers, (), tuple(Passage("", text) for text in shown))
    gold = max(answers, key=answers.count, default=None) or ""
    repair = Repair(offer) if offer else SILENT
    return replace(_judged(question, judge), settings=settings, gold=gold).replying("repairer", repair)


def counted(
    answers: Answers,
    judge: str | None,
    derived: Reply,
    settings: Settings = DEFAULTS,
    text: str = _CRATES,
    gold: str = "18",
) -> Trial:
    """Return an arithmetic trial: the judge prefers an answer, and the deriver gives a reply."""
    question = Question(text, "arithmetic", answers, (), (Passage("", "9"), Passage("", gold)))
    return replace(_judged(question, judge), settings=settings, gold=gold).replying("deriver", derived)


def _judged(question: Question, judge: str | None) -> Trial:
    """A trial in which the judge prefers the first candidate of an answer, another judge another one."""
    verdict = SILENT if judge is None else Verdict(question.answers.index(judge))
    named = (Verdict(index) for index, answer in enumerate(question.answers) if answer)
    other = next((rival for rival in named if rival != verdict), SILENT)
    failure, more = Abstention("the call timed out"), (Passage("", "Rome"),)
    return varied(Trial(question, replies={"judge": verdict}, other_judge=other, failure=failure, more=more))


def varied(trial: Trial) -> Trial:
    """Return the same with the passages backwards and the first of them twice, and the candidates backwards."""
    passages, candidates = range(len(trial.question.passages)), range(len(trial.question.answers))
    order = (*reversed(passages), 0) if passages else ()
    return replace(trial, evidence_order=order, pool_order=tuple(reversed(candidates)))


def opposed(consensus: str, other: str) -> Iterator[Trial]:
    """Yield consensus against another answer, with one, both or neither certified, and a repair by the other answer."""
    for shown in ((), (other,), (consensus,), (consensus, other)):
        pool = (other, consensus, consensus)
        for answers in (pool,) if consensus in shown else (pool, ("Doha", *pool)):
            yield asked(answers, other, "Doha", shown=("Doha", *shown))
        if consensus not in shown:
            yield asked((consensus, consensus), offer=other, shown=("Doha", *shown))


def shown_alone(answer: str, more: tuple[Passage, ...]) -> Trial:
    """Return a trial in which one short passage certifies consensus, and more evidence is added."""
    trial = asked((answer, answer, "Lyon"), "Lyon", shown=(f"It was {answer} then.",))
    return replace(trial, more=more)


def apart(halves: tuple[str, str], whole: str, title: str = "", before: int = 0) -> Trial:
    """Return a trial in which a passage ends with the first half of an answer, and the next begins with the second."""
    first, last = halves
    filler = tuple(Passage("", f"Passage {number}.") for number in range(before))
    passages = (*filler, Passage(title, f"and this is a {first}"), Passage(title, f"{last} can be seen"))
    return replace(varied(asked((whole, whole), whole).with_evidence(passages)), more=(Passage("", "another"),))


def opposed_sums(wrong: str, right: str = "18") -> Iterator[Trial]:
    """Yield a right number against a wrong one in either place, with a sound, a failing and no derivation."""
    text, sound = derived_sum(right)
    of_wrong, of_right = (right, wrong, wrong), (wrong, right, right)
    yield counted(of_wrong, right, SILENT, text=text, gold=right)
    yield counted(of_wrong, wrong, sound, text=text, gold=right)
    yield counted(of_wrong, right, replace(sound, check=""), text=text, gold=right)
    yield counted(of_right, wrong, sound, text=text, gold=right)
    yield counted((wrong, wrong), None, sound, Settings(homogeneous="repair"), text, right)


def derived_sum(right: str) -> tuple[str, Derivation]:
    """Return a question whose answer is this number as spelled, and a sound derivation of it."""
    value = Fraction(right.replace(",", "").replace("−", "-"))
    if value < 0:
        start, change, sign, back = Fraction(3), 3 - value, "-", "+"
        text = "In the morning it was {} degrees, and then it fell by {} degrees. How many degrees is it now?"
    elif value < 4:
        start, change, sign, back = value + 4, Fraction(4), "-", "+"
        text = "There are {} litres in a tank, and {} litres are taken out. How many litres are left?"
    elif value.denominator == 1 and value > 10**9:
        start, change, sign, back = value - 1, Fraction(1), "+", "-"
        text = "There are {} grains in a heap, and {} grain is added. How many grains are there now?"
    else:
        start, change, sign, back = value - Fraction(5, 2), Fraction(5, 2), "+", "-"
        text = "There are {} litres in a tank, and {} litres are added. How many litres are there now?"
    first, second = _decimal(start), _decimal(change)
    step = Step(f"{first} {sign} {second}", right)
    return text.format(first, second), Derivation((step,), right, f"{_decimal(value)} {back} {second} = {first}")


def _decimal(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
