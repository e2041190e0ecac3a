r"""Mathematics: expressions, sets, intervals and tuples, in LaTeX or plain. A checked derivation certifies a number.

Two answers are alike if `math-verify` finds each equal to the other as gold; a class is what is connected. An answer
that looks as if it could take long to compare (`fault`) votes by its text, and so does prose. The evidence certifies
no answer, and nothing certifies a set, an interval, a tuple or an expression with letters.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from eldgr_dspy.answer_types.base import Grouping, QuestionView, require_gold
from eldgr_dspy.answer_types.comparing import QUESTION_SECONDS, SECONDS, Comparisons
from eldgr_dspy.answer_types.related import Related
from eldgr_dspy.matching.text_keys import AnswerClass, class_of_text
from eldgr_dspy.text.folding import PLAIN, drop_invisible
from eldgr_dspy.text.numbers import last_number, read_number
from eldgr_dspy.words import Form, Mark

LENGTH: Final = 500  # characters of a text that is compared
DEPTH: Final = 8  # of nested brackets
DISTINCT: Final = 32  # texts of a pool that are compared with one another: the shortest ones
_NO_COMPARISON: Final = "not compared as mathematics: "
_LATE: Final = (
    f"{_NO_COMPARISON}a pair took longer than {SECONDS:g} seconds or ended its process, or the question longer than "
    f"{QUESTION_SECONDS:g} or its timeout"
)
_PROSE: Final = "text:"

_LATEX: Final = r"\cdot \cdot \cap \infty ^2 ^3 \frac{1}{2} ^\circ".split()
_SIGNS: Final = PLAIN | {ord(sign): f"{latex} " for sign, latex in zip("·⋅∩∞²³½°", _LATEX, strict=True)}
_DELIMITER: Final = re.compile(r"\\?\$|(?<!\\)\\[()\[\]]")
# What is written in plain text and `math-verify` reads otherwise or not at all, and how LaTeX has it.
_PLAIN: Final = (
    (re.compile(r"(?:\*\*|\^)\s*(-?\d+|\w+)"), r"^{\1}"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"√\s*(\w+)"), r"\\sqrt{\1}"),
    (re.compile(r"√"), "sqrt"),
    (re.compile(r"π|(?<![\\A-Za-z])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"(?<![\\A-Za-z])(?:oo|inf(?:inity)?)(?![A-Za-z])", re.I), r"\\infty "),
    (re.compile(r"\^\s*(?:\{\s*\\prime\s*\}|\\prime)"), "'"),
)
_WORD: Final = re.compile(r"(?<![\\\w])[^\W\d_]{3,}")
_FUNCTIONS: Final = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log exp sqrt frac min max gcd lcm mod and abs"
    " matrix pmatrix bmatrix vmatrix cases array".split()
)
_INLINE: Final = re.compile(
    r"\$\$?([^$]++)\$\$?(?![\d$])|\\\(((?>(?:[^\\]|\\[^()])+))\\\)|\\\[((?>(?:[^\\]|\\[^\[\]])+))\\\]"
)
# What could take long to compare, by what it looks like.
_REFUSALS: Final = {
    "it has a character that is not printed": re.compile(r"[^\x20-\U0010ffff]|[\x7f-\x9f\ud800-\udfff]"),
    "it has a power of a power, or an exponent of five digits or more": re.compile(
        r"\^\s*\{[^{}]*(?:\d\s*|\}\s*)\^ | \^[\s{(+-]*\d{5} | \d[eE][+-]?\d{4}", re.X
    ),
    "it has a power of three digits of a bracket": re.compile(r"[)\]}]\s*\^[\s{(+-]*\d{3}"),
    "it has a large factorial or binomial, or a factorial of a factorial": re.compile(
        r"\d{5}\s*!|![\s)}\]]*!|(?:binom|choose)(?s:.*)\d{5}|\d{5}(?s:.*)\\choose|\\?Gamma\b"
    ),
    "it has a sum, a product, an integral or a limit": re.compile(r"\\(?:sum|prod|i*int|oint|lim)(?![a-z])"),
    "it has more than eight bars or unions": re.compile(r"(?:(?>.*?(?:[|∪]|\\[lr]?vert|\\c[ua]p))){9}"),
}
_BRACKET: Final = re.compile(r"(\^\s*)?([({\[])|[)}\]]|\\[lr]?[({\[)}\]]")  # with the exponent that it opens


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
        expression = " ".join(drop_invisible(answer).split()) if is_long else _expression(answer)
        if _is_prose(expression):
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
        if gold == answer or not (_comparable(gold) and _comparable(answer)) or _are_other_numbers(gold, answer):
            return gold == answer
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
        formulas = [*islice(_INLINE.finditer(payload), 2)]
        return payload if len(formulas) != 1 else next(filter(None, formulas[0].groups())).strip()

    def unmarked(self, text: str) -> tuple[str, Form]:
        """Return a text of one line as a whole, and of a longer one the last number, or the formula that it is in."""
        above, _, end = text.strip().rpartition("\n")
        if not above:
            return end, "whole"
        if opener := {"$$": "$$", r"\]": r"\["}.get(end):  # of a formula on lines of its own
            end = f"{above[above.rfind(opener) :]}\n{end}"
        formulas = [*_INLINE.finditer(end)]
        if len(formulas) == 1 and not re.search(r"\d", end[formulas[0].end() :]):
            formula = self.stated(end, "phrase")
            if last_number(formula) and not read_number(formula.rpartition("=")[2]):
                return formula, "last_number"
        return last_number(text), "last_number"


def _are_other_numbers(one: str, other: str) -> bool:
    """Whether two texts are numbers of different value, however small the difference is; `verify` rounds decimals."""
    first, second = read_number(one), read_number(other)
    return first is not None and second is not None and first.percent == second.percent and first != second


def _expression(answer: str) -> str:
    text = _DELIMITER.sub("", drop_invisible(answer).translate(_SIGNS))
    text = " ".join(text.split()).lstrip(" *_`").rstrip(" *_`.,;:")
    for plain, latex in _PLAIN:
        text = plain.sub(latex, text)
    return text.strip()


def _is_prose(expression: str) -> bool:
    """Whether a text is words: as LaTeX it would be a product of letters, in which "no" is "on"."""
    words = [word for word in islice(_WORD.finditer(expression), 100) if word[0].lower() not in _FUNCTIONS]
    if any(map(str.isdigit, expression)):
        return len(words) > 3
    return bool(words) or expression.lower() in ("no", "")


def _comparable(key: str) -> bool:
    return not key.startswith((_PROSE, "json:")) and fault(key) is None


def fault(expression: str) -> str | None:
    """Return why an expression is not compared, or None: it could take long, by what its text looks like."""
    if len(expression) > LENGTH:
        return f"it is longer than {LENGTH} characters"
    for why, pattern in _REFUSALS.items():
        if pattern.search(expression):
            return why
    powers: list[bool] = []
    braces = 0
    for bracket in _BRACKET.finditer(expression):
        if bracket[2]:
            powers.append(bracket[1] is not None)
        elif bracket[0] in ")}]" and powers:
            powers.pop()
        braces += (bracket[2] == "{") - (bracket[0] == "}")
        if len(powers) > DEPTH or sum(powers) > 2:
            return f"brackets nest deeper than {DEPTH}, or exponents deeper than 2"
        if braces < 0:
            break
    return "its braces do not match" if braces else None
