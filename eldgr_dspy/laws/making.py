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
CRATES = "A crate holds 3 jars. How many jars do 6 crates hold?"
SOUND = Derivation((Step("3 * 6", "18"),), "18", "18 / 6 = 3")

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


def denials(answer: str) -> tuple[Passage, ...]:
    """Return passages that deny this answer in many ways."""
    return tuple(Passage("", denial.format(answer)) for denial in _DENIALS)


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
    return replace(judged(question, judge), settings=settings, gold=gold).replying("repairer", repair)


def counted(
    answers: Answers,
    judge: str | None,
    derived: Reply,
    settings: Settings = DEFAULTS,
    text: str = CRATES,
    gold: str = "18",
) -> Trial:
    """Return an arithmetic trial: the judge prefers an answer, and the deriver gives a reply."""
    question = Question(text, "arithmetic", answers, (), (Passage("", "9"), Passage("", gold)))
    return replace(judged(question, judge), settings=settings, gold=gold).replying("deriver", derived)


def judged(question: Question, judge: str | None) -> Trial:
    """Return a trial in which the judge prefers the first candidate of an answer, another judge another one."""
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
    pool = (other, consensus, consensus)
    yield asked(pool, other, "Doha", shown=("Doha", other))
    yield asked(pool, other, "Doha", shown=("Doha", consensus))
    yield asked(("Doha", *pool), other, shown=("Doha",))
    yield asked((consensus, consensus), offer=other, shown=("Doha", other))
    yield asked(pool, other, shown=(consensus, other))


def shown_alone(answer: str, more: tuple[Passage, ...]) -> Trial:
    """Return a trial in which one short passage certifies consensus, and more evidence is added."""
    trial = asked((answer, answer, "Lyon"), "Lyon", shown=(f"It was {answer} then.",))
    return replace(trial, more=more)


def apart(halves: tuple[str, str], whole: str, title: str = "", before: int = 0) -> Iterator[Trial]:
    """Yield trials in which one passage ends with the first half of an answer, and the next begins with the second.

    Args:
        halves: Beginning and end. whole: the answer. title: that of both passages. before: passages before them.
    """
    first, last = halves
    filler = tuple(Passage("", f"Passage {number}.") for number in range(before))
    passages = (*filler, Passage(title, f"and this is a {first}"), Passage(title, f"{last} can be seen"))
    trial = asked((whole, whole), whole).with_evidence(passages)
    yield replace(varied(trial), more=(Passage("", "another"),))


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
    else:
        start, change, sign, back = value - Fraction(5, 2), Fraction(5, 2), "+", "-"
        text = "There are {} litres in a tank, and {} litres are added. How many litres are there now?"
    first, second = _decimal(start), _decimal(change)
    step = Step(f"{first} {sign} {second}", right)
    return text.format(first, second), Derivation((step,), right, f"{_decimal(value)} {back} {second} = {first}")


def _decimal(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
