"""Refusals: answers which say that there is no answer, such as "I don't know".

A phrase names a whole class of answers, not a part of an answer. "i don’t know!" is in the class of "I don't know";
"None of the above" and "I don't know, perhaps Doha" are not. To find refusals inside longer answers, give a function.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.base.named_objects import NamedFunction, load_object, name_of, naming_function, source_of
from eldgr_dspy.errors import ArgumentError, result_of
from eldgr_dspy.matching.text_keys import short_class

REFUSALS: tuple[str, ...] = (
    "I don't know",
    "I do not know",
    "Don't know",
    "I cannot answer",
    "Cannot answer",
    "Cannot be determined",
    "Not enough information",
    "Insufficient information",
    "Unanswerable",
    "No answer",
    "NoAnswer",
    "None",
)
"""The default phrases. "Unknown" is not among them, because it answers some questions; nor is "N/A", which votes with
the sodium of "Na"."""


@dataclass(frozen=True, slots=True)
class OwnRefusals(NamedFunction):
    """A user's function that says whether an answer refuses."""

    def names(self, answer: str) -> bool:
        """Return whether an answer that is not empty refuses; a failure of the function is an ArgumentError."""
        what = f"The function {self.name!r}, given as refusals, failed on the answer {answer!r:.60}"
        with naming_function(what, self.function):
            value = result_of(self.function(answer), "refusals", "give a function that is not")
        if not isinstance(value, bool):
            raise ArgumentError(
                f"refusals({answer!r:.60}) must be True or False; got {value!r:.60}. Change {self.name}."
            )
        return value


Refusals = tuple[str, ...] | OwnRefusals


def refusals_of(value: object) -> Refusals:
    """Return refusals from phrases, from a function, or from its name `module:function`.

    Raises:
        ArgumentError: A phrase is not one, or the function cannot be found or called.
    """
    if isinstance(value, OwnRefusals) or callable(value) or (isinstance(value, str) and ":" in value):
        return own_refusals(value)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentError(
            f"refusals must be phrases in a tuple, or a function (answer) -> True or False; got {value!r:.80}. For one "
            "phrase give a tuple of one; for none, ()."
        )
    for index, phrase in enumerate(value):
        if type(phrase) is not str or short_class(phrase) is None:
            raise ArgumentError(
                f"refusals[{index}] must be a phrase that is not blank; got {phrase!r:.80}. For no refusals give ()."
            )
    return tuple(value)


class Refusing:
    """Says which answers to one question refuse. A class refuses if the settings name any of its spellings.

    `bound` says that the type is for this question alone. Then what it says of the phrases is not kept for others.
    """

    def __init__(
        self, refusals: Refusals, answers: Iterable[str | None], kind: AnswerType, *, bound: bool = False
    ) -> None:
        self._own = refusals if isinstance(refusals, OwnRefusals) else None
        self._phrases = frozenset[str]() if isinstance(refusals, OwnRefusals) else _of_phrases(refusals, kind, bound)
        self._cache: dict[str, bool] = {}
        self._type = kind
        for answer in dict.fromkeys(answers) if self._own else ():
            class_ = kind.class_of(answer)
            if class_ is not None and answer:
                self._cache[class_.key] = self._cache.get(class_.key) or self._own_names(answer)

    def __call__(self, answer: str | None) -> bool:
        """Return whether an answer's class refuses."""
        class_ = self._type.class_of(answer)
        if class_ is None or not answer:
            return False
        key = class_.key
        if key not in self._cache and self._own:
            self._cache[key] = self._own_names(answer)
        return key in self._phrases or self._cache.get(key, False)

    def _own_names(self, answer: str) -> bool:
        return self._own is not None and self._own.names(answer)


def _of_phrases(phrases: tuple[str, ...], kind: AnswerType, bound: bool) -> frozenset[str]:
    """The classes of the phrases. They are kept with their type, except for one that holds the text of a question."""
    if not bound:
        with suppress(TypeError):  # a type that cannot be hashed, such as a dataclass with a list in it
            return _classes(phrases, kind)
    return _classes.__wrapped__(phrases, kind)


@lru_cache(maxsize=64)
def _classes(phrases: tuple[str, ...], kind: AnswerType) -> frozenset[str]:
    return frozenset(class_.key for phrase in phrases if (class_ := kind.class_of(phrase)) is not None)


def own_refusals(value: Any) -> OwnRefusals:
    """Return a user's refusals from a function, or from its name `module:function`."""
    if isinstance(value, OwnRefusals):
        return value
    function = load_object(value, "refusals", "my_answers:refuses") if isinstance(value, str) else value
    if isinstance(function, type) or not callable(function):
        raise ArgumentError(f"refusals must be a function (answer) -> True or False; got {function!r:.80}.")
    return OwnRefusals(value if isinstance(value, str) else name_of(function), source_of(function), function)
