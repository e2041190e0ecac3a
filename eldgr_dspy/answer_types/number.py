"""A number: the result of a calculation. A checked derivation certifies it; the evidence does not."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from eldgr_dspy.answer_types.base import AnswerType, Score, require_gold
from eldgr_dspy.matching.text_keys import AnswerClass, class_of_text, note_on, read_answer, short_class
from eldgr_dspy.text.folding import BIDI_CONTROLS
from eldgr_dspy.text.numbers import Number, last_number, parse_number, read_number, stated_number
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import Form, Mark


class ANumber(AnswerType):
    """A number, scored by numeric equality.

    The key of a class is the number's exact value and whether it is a percentage. Any other text has a key that no
    number has.
    """

    name = "number"
    way = "derivation"
    scores = ("accuracy",)

    def read(self, answer: str) -> AnswerClass | None:
        """Return the class of an answer."""
        return number_class(answer)

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether an answer is the number of a gold answer."""
        return numeric_equal(answer, gold)

    def official_score(self, answer: str | None, gold: Sequence[str]) -> Score:
        """Return the same of the answer as it is, where nothing is stripped."""
        require_gold(gold)
        return Score(_is_number_of(answer, gold, parse_number), None)

    def sentence(self, line: str) -> str:
        """Return the line, in which the number is looked for."""
        return line

    def stated(self, payload: str, mark: Mark) -> str:
        """Return the number of an explicit answer, cut out where that is safe."""
        number = stated_number(payload, mark)
        words = () if re.search(r"\d", payload) else (payload, f"{strip_answer(payload)} units")  # twelve, ten percent
        keys = (class_.key for class_ in map(short_class, words) if class_)
        return next((amount[1] for amount in map(_AMOUNT, keys) if amount), number)

    def unmarked(self, text: str) -> tuple[str, Form]:
        """Return the last number of the text."""
        return last_number(text), "last_number"


@lru_cache(maxsize=4096)
def number_class(answer: str) -> AnswerClass | None:
    """Return the class of an answer that is a number, or should be one."""
    number = number_in(answer)
    if number is not None:
        notes = ["currency sign dropped"] if number.is_price else []
        return AnswerClass(f"{number.value}{'%' * number.percent}", note_on(answer, *notes))
    text = class_of_text(answer)
    if text is None:
        return None
    plain = _INFINITY.sub("∞", read_answer(answer))
    symbols = _SYMBOLS.search(plain) is not None and BIDI_CONTROLS.isdisjoint(plain)
    return AnswerClass(f"text:{''.join(plain.split()) if symbols else text.key}", text.note)


_AMOUNT = re.compile(r"([0-9.]+%?)(?: units)?").fullmatch
_INFINITY = re.compile(r"\\infty(?![a-z])|(?<![a-z])(?:infinity|inf|oo)(?![a-z])")
_SYMBOLS = re.compile(
    r"""\\[a-z] | [+/^=<>√∞] | [\w)\]}]\s?\*\s?[\w(\[\\] | \w_[\w{] | (?<![^\W\d_])[a-z]'++(?!\w)
    | -(?![^\W\d_]{3}|\Z) | -(?:sin|cos|tan|log|ln|exp|sqrt|pi)(?![a-z]) | \A[(\[].*[)\]]\Z""",
    re.VERBOSE | re.DOTALL,
)
"""What makes a text an expression, whose signs and operators tell it from others."""


def numeric_equal(answer: str | None, gold: Sequence[str]) -> bool:
    """Say whether the answer is exactly the number of a gold answer: '18.0' is '$18', '5%' is not '5'."""
    require_gold(gold)
    # A text that is not a number equals nothing, not even itself.
    return _is_number_of(answer, gold, number_in)


def number_in(answer: str) -> Number | None:
    """Return the stripped answer as a number, or None."""
    return read_number(strip_answer(answer))


def _is_number_of(answer: str | None, gold: Sequence[str], parse: Callable[[str], Number | None]) -> bool:
    number = None if answer is None else parse(answer)
    return number is not None and any(number == parse(right) for right in gold)
