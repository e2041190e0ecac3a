"""Situations around the texts in the code under test: a slip that depends on a word shows only beside that word.

For `"not " in text` there are answers that equal and contain the text, and passages that apply it to an answer. Lengths
and counts need no reading: `eldgr_dspy.laws.situations` has every one. This module uses only the standard library.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from inspect import getclosurevars
from itertools import zip_longest
from types import CodeType, FunctionType, MethodType
from typing import Any, get_args

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType, Way
from eldgr_dspy.certificates import Passage
from eldgr_dspy.laws.situations import apart, certified_alone, opposed_sums, oppositions
from eldgr_dspy.laws.trials import Trial
from eldgr_dspy.words import ROLES, TASKS, Branch, Task

_OURS = {"eldgr_dspy", "dspy", "hypothesis", "builtins"}
_VOCABULARY = {*get_args(Branch), *TASKS, *ROLES, ""}
_MOST, _LONGEST, _MOST_THINGS = 12, 60, 400


def literals(*things: object) -> list[str]:
    """Return the first short texts in the code of things and what they refer to, but names of roles and branches."""
    packages = {_package(thing) for thing in things} - _OURS
    texts, history, queue = dict[str, None](), list[object](), [*things]
    while queue and len(history) < _MOST_THINGS:
        thing = queue.pop(0)
        if isinstance(thing, str):
            texts |= {} if len(thing) > _LONGEST or thing in _VOCABULARY else {thing: None}
        elif not any(thing is one for one in history):
            history.append(thing)
            queue += _parts(thing, packages)
    return [*texts][:_MOST]


def _parts(thing: Any, packages: set[str]) -> Iterable[object]:
    match thing:
        case re.Pattern():
            return re.findall(r"[^\W\d_]{3,}", re.sub(r"\\.", " ", str(thing.pattern)))
        case list() | tuple() | set() | frozenset():
            return sorted(thing, key=repr) if isinstance(thing, set | frozenset) else thing
        case dict():
            return [*thing, *thing.values()]
        case partial():
            return [thing.func, thing.args, thing.keywords]
        case MethodType():
            return [thing.__func__, thing.__self__]
        case CodeType():
            return thing.co_consts
    if _package(thing) not in packages:
        return []
    if isinstance(thing, FunctionType):
        texts = [one for one in thing.__code__.co_consts if one != thing.__doc__]
        objects = [thing.__globals__.get(name) for name in _names(thing.__code__)]
        return [*texts, thing.__defaults__, thing.__kwdefaults__, *getclosurevars(thing).nonlocals.values(), *objects]
    if isinstance(thing, type):
        return [value for name, value in vars(thing).items() if name not in ("__doc__", "__module__", "__qualname__")]
    return [*type(thing).__mro__, *getattr(thing, "__dict__", {}).values()]


def _names(code: CodeType) -> list[str]:
    return [*code.co_names, *(name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one))]


def _package(thing: Any) -> str:
    thing = thing.func if isinstance(thing, partial) else thing
    return str(getattr(thing, "__module__", None) or "").partition(".")[0]


def around(texts: Iterable[str], answer: Task | AnswerType | None = None) -> Iterator[Trial]:
    """Yield the situations around some texts, those of each in turn."""
    way = None if answer is None else answer_type(answer).way
    rounds = zip_longest(*(_of_text(text, way) for text in texts))
    yield from (trial for trials in rounds for trial in trials if trial is not None)


def _of_text(text: str, way: Way | None) -> Iterator[Trial]:
    if way != "derivation":
        for word in (text, f"{text} Kyoto {text}", f"{text}Kyoto{text}"):
            yield from oppositions(word, "Lyon")
            yield from oppositions("Rome", word)
        yield from (_about(text, trial) for trial in oppositions("Rome", "Lyon"))
        yield from _evidence(text)
    if way != "evidence":
        for wrong in (text, f"{text}19", f"19{text}"):
            yield from opposed_sums(wrong)
        yield from (_about(text, trial) for trial in opposed_sums("9"))


def _evidence(text: str) -> Iterator[Trial]:
    """Added passages that contain a text, alone and with the answer, and one with it as the title; and a cut answer."""
    for answer in ("Paris", "paris"):
        forms = (text.replace("{}", answer), f"{text} {answer}", f"{answer} {text}", f"{text}{answer}", text)
        yield certified_alone(answer, more=(*(Passage("", form) for form in forms), Passage(text, "And more.")))
    yield apart(("fine", "art"), f"fine{text}art")
    yield apart(("fine", "art"), f"fine {text.strip()} art")


def _about(text: str, trial: Trial) -> Trial:
    """The same with a text in the question, in each candidate's own text, in a passage and as a title."""
    question = trial.question
    own = tuple(f"{text} Then it is {answer}. {text}" for answer in question.answers)
    more = (*question.passages, Passage(text, "No more is known."), Passage("", f"{text} It is known. {text}"))
    return trial.about(text=f"{text} {question.text} {text}", texts=own, passages=more)
