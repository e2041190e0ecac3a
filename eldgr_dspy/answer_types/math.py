r"""Mathematics: expressions, sets, intervals and tuples, in LaTeX or plain. A checked derivation certifies a number.

Two numbers are alike if they have one value, other answers if `math-verify` finds each equal to the other as gold; a
class is what is connected. An answer that looks as if it could take long to compare (`fault`) votes by its text, and so
does prose. The evidence certifies no answer, and nothing certifies a set, an interval, a tuple or an expression with
letters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from eldgr_dspy.answer_types.base import Grouping, QuestionView, require_gold
from eldgr_dspy.answer_types.comparing import QUESTION_SECONDS, SECONDS, Comparisons
from eldgr_dspy.answer_types.related import Related
from eldgr_dspy.matching.text_keys import AnswerClass, class_of_text
from eldgr_dspy.text.folding import drop_invisible
from eldgr_dspy.text.latex import LENGTH, as_expression, fault, formula_at_end, formula_in, is_prose
from eldgr_dspy.text.numbers import last_number, read_number
from eldgr_dspy.words import Form, Mark

DISTINCT: Final = 32  # texts of a pool that are compared with one another: the shortest ones
_NO_COMPARISON: Final = "not compared as mathematics: "
_LATE: Final = (
    f"{_NO_COMPARISON}a pair took longer than {SECONDS:g} seconds or ended its process, or the question longer than "
    f"{QUESTION_SECONDS:g} or its timeout"
)
_PROSE: Final = "text:"


class Math(Related):
    """Mathematics, scored by `math-verify`: `verify(gold, answer)`, in this order, because it is not symmetric."""

    name = "math"
    way = "derivation"
    scores = ("accuracy",)
    connects = True
    gives_up = ("spelling_does_not_decide",)  # marks around an answer may be mathematics: 3!, (0, 1), [0, 1]

    def examples(self) -> Sequence[str]:
        return (
            *("18", "18.0", "9*2", "1/2", "0.5", r"$\frac{1}{2}$", "x+1", "1+x", "2x", "{1, 2}", "{2, 1}", "(0, 1)"),
            *("[0, 1]", "x=3", "no solution", "20%"),
        )

    def read(self, answer: str) -> AnswerClass | None:
        """Return the class of an answer by its text: without delimiters, or as short text if it is prose."""
        is_long = len(answer) > 20 * LENGTH
        expression = " ".join(drop_invisible(answer).split()) if is_long else as_expression(answer)
        if is_prose(expression):
            prose = class_of_text(answer)
            return AnswerClass(f"{_PROSE}{prose.key}", prose.note) if prose else None
        why = fault(expression)
        return AnswerClass(expression, f"{_NO_COMPARISON}{why}" if why else None)

    def __init__(self, comparisons: Comparisons | None = None) -> None:
        """Make the type; with `comparisons`, for the one question that they are about."""
        self.comparisons = comparisons

    def of(self, question: QuestionView) -> "Math":
        """Return the type for one question, whose classes and scores share one limit of time."""
        return Math(question.comparisons or Comparisons())

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether an answer equals a gold answer; one that could not be compared in time is not right."""
        require_gold(gold)
        own, rights = self.class_of(answer), filter(None, map(self.class_of, gold))
        return own is not None and any(self._equal(right.key, own.key, both=False) for right in rights)

    def alike(self, one: str, other: str) -> bool:
        """Return whether two answers are equal, each as gold of the other; the order does not matter."""
        first, second = sorted(class_.key for class_ in map(self.class_of, (one, other)) if class_)
        return self._equal(first, second, both=True)

    def _equal(self, gold: str, answer: str, *, both: bool) -> bool:
        if gold == answer or not (_comparable(gold) and _comparable(answer)):
            return gold == answer
        one, other = (None if text[-1].isalpha() else read_number(text) for text in (gold, answer))  # "3k" is 3 times k
        if one and other and one.percent == other.percent:  # exactly: `verify` rounds decimals
            return one.value == other.value
        return (self.comparisons or Comparisons()).equal(gold, answer, both=both) is True

    def components(self, answers: Mapping[str, str]) -> list[list[str]]:
        """Return the classes of a pool's answers; those that are not compared are alone."""
        keys = {*sorted(filter(_comparable, answers), key=lambda key: (len(key), key))[:DISTINCT]}
        classes = super().components({key: answer for key, answer in answers.items() if key in keys})
        return [*classes, *([key] for key in answers if key not in keys)]

    def grouping(self, answers: Sequence[str | None]) -> Grouping:
        """Return the answers of a pool in classes, with a note on those that could not be compared in time."""
        if (comparisons := self.comparisons) is None:
            return Math(Comparisons()).grouping(answers)
        own_grouping = super().grouping(answers)

        def class_of(answer: str | None) -> AnswerClass | None:
            class_, own = own_grouping.class_of(answer), self.class_of(answer)
            late = own and any(pair.both and own.key in pair for pair in comparisons.late)
            return replace(class_, note=_LATE) if class_ and late else class_

        return Grouping(tuple(map(class_of, answers)), class_of)

    def stated(self, payload: str, mark: Mark) -> str:
        """Return what follows a mark; without the words around it if it has one formula between dollar signs."""
        return payload if (formula := formula_in(payload)) is None else formula

    def unmarked(self, text: str) -> tuple[str, Form]:
        """Return a text of one line as a whole, and of a longer one the last number, or the formula that it is in."""
        if "\n" not in (line := text.strip()):
            return line, "whole"
        number, formula = last_number(text), formula_at_end(text)
        if formula and last_number(formula) and not read_number(formula.rpartition("=")[2]):
            number = formula
        return number, "last_number"


def _comparable(key: str) -> bool:
    return not key.startswith((_PROSE, "json:")) and fault(key) is None
