"""Situations around the constants of the code under test: a bug that depends on a number or a word shows next to it.

    pointed(constants_of(my_rule))      trials, at most 240, the same each time

For `len(answer) > 40` it makes answers of 39, 40 and 41 characters and words, as many candidates and passages, and the
numbers themselves. For `"not " in text` it makes answers that equal and contain the text, and passages that apply it to
an answer. This module uses only the standard library. Source: ours.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType, Way
from eldgr_dspy.certificates import Passage
from eldgr_dspy.laws.constants import Constants
from eldgr_dspy.laws.making import apart, opposed, opposed_sums, shown_alone, varied
from eldgr_dspy.laws.trials import Trial
from eldgr_dspy.words import Task

MOST_TRIALS = 240
_LONGEST_ANSWER, _MOST_WORDS, _MOST_OF, _LONGEST_TEXT = 400, 60, 60, 20_000
_NAMES = ("Anna", "Bay", "Port", "Mill", "Lake", "Hill", "Ford", "Town", "Glen", "Vale")
_OTHERS = ("North", "Moor", "Cape", "Wood", "East", "Dale", "South", "Peak", "West", "Isle")


def pointed(
    constants: Constants, task: Task | AnswerType | None = None, *, most: int = MOST_TRIALS, added: bool = True
) -> Iterator[Trial]:
    """Yield the situations around some constants, those of each constant in turn.

    Args:
        constants: The constants. task: `retrieval` or `arithmetic`; both if it is not given.
        most: How many at most.
        added: Whether to include situations that add or reorder evidence.
    """
    way = None if task is None else answer_type(task).way
    several = [_of_text(text, way, added) for text in constants.texts]
    several += [_of_number(number, way, added) for number in constants.numbers]
    rounds = chain.from_iterable(zip_longest(*several))
    yield from islice((trial for trial in rounds if trial is not None), most)


def _of_text(text: str, way: Way | None, added: bool) -> Iterator[Trial]:
    if way != "derivation":
        if added:
            yield from _said(text)
            for joined in (f"fine{text}art", f"fine {text.strip()} art"):
                yield from apart(("fine", "art"), joined)
        for word in dict.fromkeys((text, f"{text} Kyoto {text}", f"{text}Kyoto{text}")):
            yield from opposed(word, "Lyon")
            yield from opposed("Rome", word)
            if word == text:
                yield from (_about(text, trial) for trial in opposed("Rome", "Lyon"))
    if way != "evidence":
        for wrong in (text, f"{text}19", f"19{text}"):
            yield from opposed_sums(wrong)
        yield from (_about(text, trial) for trial in opposed_sums("9"))


def _said(text: str) -> Iterator[Trial]:
    """Added passages that contain a text, alone and with the answer, and one with the text as its title."""
    for answer in ("Paris", "paris"):
        named = (text.replace(hole, answer) for hole in ("{}", "%s") if hole in text)
        beside = (f"{text} {answer}", f"{answer} {text}", f"{text}{answer}", f"{answer}{text}")
        forms = dict.fromkeys((*named, *beside, text))
        yield shown_alone(answer, more=(*(Passage("", form) for form in forms), Passage(text, "And more.")))


def _about(text: str, trial: Trial) -> Trial:
    """The same with a text in the question, in each candidate's own text, in a passage and as a title."""
    question = trial.question
    own = tuple(f"{text} Then it is {answer}. {text}" for answer in question.answers)
    more = (*question.passages, Passage(text, "No more is known."), Passage("", f"{text} It is known. {text}"))
    return varied(
        replace(trial, question=replace(question, text=f"{text} {question.text} {text}", texts=own, passages=more))
    )


def _of_number(number: float, way: Way | None, added: bool) -> Iterator[Trial]:
    if way != "derivation" and number >= 1:
        yield from _of_size(int(number), added)
    if way != "evidence":
        values = (number, number + 1, number - 1) if abs(number) < 10**12 else ()
        for value in map(_spelled, values):
            yield from opposed_sums("9", right=value)
            yield from opposed_sums(value)


def _of_size(n: int, added: bool) -> Iterator[Trial]:
    """Answers of this many characters and words, then pools, evidence, questions and texts of that size."""
    near = [size for size in (n + 1, n, n - 1) if 0 < size <= _LONGEST_ANSWER]
    if added:
        yield _enlarged_evidence(n)
        yield from _joined(n)
    for size in near:
        yield from opposed(_long(size, _NAMES), _long(size, _OTHERS))
        if size <= _MOST_WORDS:
            yield from opposed(_worded(size, _NAMES), _worded(size, _OTHERS))
    for size in near:
        yield from (_enlarged(size, trial) for trial in opposed("Rome", "Lyon"))


def _spelled(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _long(size: int, names: Sequence[str]) -> str:
    """A name of this many characters."""
    text = " ".join(islice(_over(names), size))[:size]
    return text if not text.endswith(" ") else f"{text[:-1]}s"


def _worded(size: int, names: Sequence[str]) -> str:
    """A name of this many words."""
    return " ".join(islice(_over(names), size))


def _over(names: Sequence[str]) -> Iterator[str]:
    while True:
        yield from names


def _enlarged_evidence(n: int) -> Trial:
    """Added evidence: passages, one of them long in characters and in words, and as many with the answer."""
    many = min(n, _MOST_OF) + 1
    told: Iterable[str] = (f"Number {number} says: Paris." for number in range(many))
    long = ("And so on. " * min(n, _LONGEST_TEXT))[:_LONGEST_TEXT]
    return shown_alone("Paris", more=(*(Passage("", sentence) for sentence in told), Passage("", long)))


def _joined(n: int) -> Iterator[Trial]:
    """An answer of more than this many characters or words, half in each of two passages, and as many passages."""
    if n <= _MOST_WORDS:
        for names in (islice(_over(_NAMES), n // 4 + 2), islice(_over(_NAMES), n + 1)):
            words = [*names]
            half = len(words) // 2
            yield from apart((" ".join(words[:half]), " ".join(words[half:])), " ".join(words))
    if n <= _MOST_OF:
        yield from apart(("fine", "art"), "fine art", before=n)


def _enlarged(size: int, trial: Trial) -> Trial:
    """The same with this many candidates and passages, and a question and texts of this length."""
    question, consensus = trial.question, trial.question.answers[-1]
    more = max(0, min(size, _MOST_OF) - len(question.answers))
    answers = (*question.answers, *[consensus] * more)
    filler = max(0, min(size, _MOST_OF) - len(question.passages))
    larger = replace(
        question,
        text=_long(size, ("Which", "of", "them", "is", "it")),
        answers=answers,
        texts=tuple(f"{_long(size, _OTHERS)}" for _ in answers),
        passages=(*question.passages, *(Passage("", f"Passage {number}.") for number in range(filler))),
    )
    return varied(replace(trial, question=larger))
