"""Decide whether a derivation is a certificate: it executes, traces, passes a check, and its answer is within reach.

There are six named levels, each with all the conditions of the ones before it (`check_derivation`). Everything is
exact: `10/3` is not 3.33, and 20% is a fifth and not 20. An equals sign inside a step's expression makes it a chain,
all of whose sides must be equal. Text operands, units and names are refused with the expression that holds them.

It is not a proof that the answer is right: a derivation may execute and trace and yet answer another question. It never
sees the gold answer, the candidates or the evidence.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final

from eldgr_dspy.derivation.arithmetic import MAX_LENGTH, Exact, Expression, parse, parse_sides
from eldgr_dspy.derivation.independence import Origins, as_ending, fault_of_check, quote, recompute, spell
from eldgr_dspy.derivation.reach import reach
from eldgr_dspy.derivation.tracing import fold, question_numbers, traceable, traces
from eldgr_dspy.errors import ArgumentError, UnexecutableError
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.text.numbers import parse_number
from eldgr_dspy.words import STRICTNESS, Strictness

BOUNDED_LEVELS: Final = STRICTNESS[STRICTNESS.index("bounded") :]
"""The levels that exclude the numbers out of reach."""
MAX_STEPS: Final = 32
MAX_CHARACTERS: Final = 1_000  # of the steps, the answer and the check together


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict on a derivation at a level, one sentence why, and the answer as a number where it is one."""

    passed: bool
    level: Strictness
    reason: str
    answer: Fraction | None


def check_derivation(derivation: Derivation, question: str, level: Strictness = "bounded") -> CheckResult:
    """Check a derivation at one of six cumulative levels.

    * `stated`, the paper's letter: the answer is a number and a consistency check is given, whatever it says.
    * `chained` (ours): every step executes and has exactly its stated value, the last value is the answer, and the
      steps compute it. If the steps would give any other number in its place as well, they only carry it through:
      42*1 is not a derivation, nor is 42/2 and then 21*2. The same rule refuses 5*2-5, which may be meant.
    * `traced` (ours): every operand traces to the question, to an earlier step, or to the table of
      `eldgr_dspy.derivation.tracing`, and the answer is computed from at least one number that the question states.
    * `executed` (ours): the check is a true equation that contains the answer, traces too, would fail
      for another answer, and does not restate the steps: it works back from the answer, or computes it by another
      operator (`eldgr_dspy.derivation.independence`, which says what it does not catch).
    * `bounded` (ours, the default): the answer is zero or a number that the question reaches
      (`eldgr_dspy.derivation.reach`), whatever the steps are. Without this level, ones made from 5/5 and doublings
      certify nearly every whole number.
    * `agreed` (ours): another sample of the same deriver also passes `bounded`, with the same answer.

    From `chained` on, a derivation of more than 32 steps, or of more than 1,000 characters, is refused unread.

    A derivation that passes may be wrong. In gsm8k-openai4, the annotated equations of 3,597 candidates pass
    together with a check that undoes the last step; 1,729 of these candidates are right, which is 48.1 %
    (`python -m benchmarks.derivation_levels`). The steps may answer another question, and the check tests only them.

    Args:
        derivation: The deriver's steps, answer and check, as untrusted text.
        question: The question as asked, to which operands trace.
        level: How strict the check is.

    Returns:
        The verdict; where a single step is at fault it is named, counted from 1.

    Raises:
        ArgumentError: `level` is not one of the six.
    """
    if level not in STRICTNESS:
        raise ArgumentError(f"level must be one of {', '.join(STRICTNESS)}; got {level!r}.")
    answer = _exact(derivation.answer)
    try:
        return CheckResult(True, level, _examine(derivation, question, level, answer), answer)
    except _FaultError as fault:
        return CheckResult(False, level, str(fault), answer)


class _FaultError(Exception):
    """A derivation fails; the message says where and why."""


@dataclass(frozen=True, slots=True)
class _Line:
    """An executed step: the sides of its equals signs, and the value that they share."""

    number: int
    sides: tuple[Expression, ...]
    value: Fraction


def _examine(derivation: Derivation, question: str, level: Strictness, answer: Fraction | None) -> str:
    if answer is None:
        raise _FaultError(f"The answer {quote(derivation.answer)} is not a number.")
    if not derivation.check.strip():
        raise _FaultError("The derivation gives no consistency check.")
    if level == "stated":
        return f"The answer {spell(answer)} is a number and a consistency check is given; nothing was executed."
    _require_short(derivation)
    lines = _execute(derivation.steps)
    _require_chain(lines, answer)
    if level == "chained":
        return f"Every step executes to its stated value, and the last gives the answer {spell(answer)}."
    sources = traceable(question)
    lines = _trace(lines, sources)
    _require_numbers(lines, question_numbers(question), answer)
    if level == "traced":
        return f"Every step executes, every number traces, and the last step gives the answer {spell(answer)}."
    if (fault := fault_of_check(derivation.check, [line.sides for line in lines], sources, answer)) is not None:
        raise _FaultError(fault)
    if level in BOUNDED_LEVELS:
        _require_within_reach(answer, question)
    if level == "agreed":
        others = (check_derivation(other, question) for other in derivation.others)
        if not any(other.passed and other.answer == answer for other in others):
            raise _FaultError(f"No other derivation passes and gives the answer {spell(answer)}.")
    return (
        f"Every step executes, every number traces, the last step gives the answer {spell(answer)}, "
        f"and the check {quote(derivation.check)} holds and would fail for another."
    )


def _require_short(derivation: Derivation) -> None:
    if len(derivation.steps) > MAX_STEPS:
        raise _FaultError(f"The derivation has {len(derivation.steps):,} steps, and at most {MAX_STEPS} are checked.")
    steps = sum(len(step.expression) + len(step.value) for step in derivation.steps)
    characters = steps + len(derivation.answer) + len(derivation.check)
    if characters > MAX_CHARACTERS:
        raise _FaultError(f"The derivation has {characters:,} characters, and at most {MAX_CHARACTERS:,} are checked.")


# --- chained ----------------------------------------------------------------------------------------------------------


def _execute(steps: Iterable[Step]) -> list[_Line]:
    lines: list[_Line] = []
    results: set[Exact] = set()
    for number, step in enumerate(steps, start=1):
        lines.append(_execute_step(number, step, results))
        results.add(lines[-1].value)
    return lines


def _execute_step(number: int, step: Step, results: Container[Exact]) -> _Line:
    """Return a step that holds; an earlier result that it writes as a fraction is one number in it."""
    try:
        sides = tuple(fold(side, results) for side in parse_sides(step.expression))
        values = [side.value() for side in sides]
    except UnexecutableError as error:
        raise _FaultError(f"Step {number} does not execute: {as_ending(error)}") from error
    for side, value in zip(sides, values, strict=True):
        if value != values[0]:
            raise _FaultError(
                f"Step {number} is false: {quote(sides[0].text)} is {spell(values[0])}, "
                f"but {quote(side.text)} is {spell(value)}."
            )
    if (claim := _exact(step.value)) is None:
        raise _FaultError(f"Step {number} states the value {quote(step.value)}, which is not a number.")
    if claim != values[0]:
        raise _FaultError(
            f"Step {number} is false: {quote(step.expression)} is {spell(values[0])} and not {quote(step.value)}."
        )
    return _Line(number, sides, claim)


def _require_chain(lines: Sequence[_Line], answer: Fraction) -> None:
    if not lines:
        raise _FaultError("The derivation has no steps.")
    last = lines[-1]
    if last.value != answer:
        raise _FaultError(
            f"Step {last.number}, the last, gives {spell(last.value)}, but the stated answer is {spell(answer)}."
        )
    steps = [line.sides for line in lines]
    if all(recompute(steps, answer, other) == other for other in (answer + 1_009, answer + 10_007)):
        raise _FaultError(
            f"The steps compute nothing: they carry {spell(answer)} through, and another number in its place would "
            "come out as well."
        )


# --- traced -----------------------------------------------------------------------------------------------------------


def _trace(lines: Iterable[_Line], sources: Iterable[Exact]) -> list[_Line]:
    numbers = set(sources)
    trail: list[_Line] = []
    for line in lines:
        sides: list[Expression] = []
        for side in line.sides:
            sides.append(_traced_side(line.number, side, numbers))
            numbers.add(line.value)  # the later sides of a chain may use what the first has computed
        trail.append(replace(line, sides=tuple(sides)))
    return trail


def _traced_side(number: int, side: Expression, numbers: set[Exact]) -> Expression:
    """Return a side that traces, as it is written or with each known fraction as one number."""
    for read in (side, fold(side, numbers)):
        if all(traces(operand, numbers) for operand in read.operands):
            return read
    stray = next(operand for operand in side.operands if not traces(operand, numbers))
    raise _FaultError(
        f"Step {number} uses {spell(stray.readings[-1])}, which neither the question nor an earlier step supplies."
    )


def _require_numbers(lines: Iterable[_Line], stated_numbers: Container[Exact], answer: Fraction) -> None:
    ways = Origins((line.sides for line in lines), answer).ways
    if not any(number in stated_numbers for way in ways for number in way):
        raise _FaultError(f"The answer {spell(answer)} is computed from no number that the question states.")


def _require_within_reach(answer: Fraction, question: str) -> None:
    if not (numbers := reach(question)):
        raise _FaultError("The question states no quantity, or so many that no answer is within reach.")
    if answer and answer not in numbers:
        raise _FaultError(
            f"The answer {spell(answer)} is not within reach: it is not one of the {len(numbers):,} numbers that the "
            "question's own quantities give in few operations."
        )


# --- equations in free text -------------------------------------------------------------------------------------------

_RUN: Final = "0123456789+-*/×÷·−–^%().,$€£ xX\t\u00a0"
_LEAD: Final = re.compile(r"\A(?>(?:[ \t]++|[-–*+/×÷·^%.,)xX](?=[ \t])|\d++[.)](?=[ \t]))*)")
_SIGN: Final = re.compile(r"[-+*/×÷·−–^%xX]")
_BREAK: Final = re.compile(r"[.,][ \t]+|(?<=[\d)])[ \t]+(?=[\d($€£])")
_RESULT: Final = re.compile(
    r"[ \t]*+([-−]?+[$€£]?+(?:\d{1,3}+(?>(?:,\d{3})+)(?!\d)|\d++)(?>(?:\.(\d++))?))[ \t]*+(%?+)"
    r"(?![ \t]*+[-−–+*/×÷·^xX][ \t]*+[\d($€£])"
)


def true_equations(text: str) -> tuple[int, int]:
    """Return how many equations `expression = number` in a text are true, and how many there are, in linear time.

    Only the lexical judge uses this. A number with decimals may be off by half its last digit (`10/3 = 3.33`), and
    `25%` may stand for 25 or for a quarter. What does not execute, or has no operation, is not counted.
    """
    verdicts = list(_verdicts(text))
    return sum(verdicts), len(verdicts)


def _verdicts(text: str) -> Iterator[bool]:
    for before, after in pairwise(text.split("=")):
        result = _RESULT.match(after)
        number = result and parse_number(result[1])
        value = _value_before(before) if number else None
        if result and number and value is not None:
            tolerance = Fraction(1, 2 * 10 ** len(result[2])) if result[2] else 0
            readings = (value, value * 100) if result[3] else (value,)
            yield any(abs(reading - number.value) <= tolerance for reading in readings)


def _value_before(text: str) -> Fraction | None:
    end = text[-MAX_LENGTH:]
    run = end[len(end.rstrip(_RUN)) :]
    for expression in dict.fromkeys((run, _BREAK.split(run)[-1]) if _SIGN.search(run) else ()):
        try:
            if (read := parse(_LEAD.sub("", expression, count=1))).operations():
                return read.value()
        except UnexecutableError:
            continue
    return None


def _exact(text: str) -> Fraction | None:
    if (number := parse_number(text)) is None:
        return None
    return number.value / 100 if number.percent else number.value
