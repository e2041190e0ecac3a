"""A hostile deriver: derivations of any answer it wants, from any number that a question states.

It makes 1 by dividing a number by itself (5/5 = 1), larger numbers by doubling (1+1 = 2, 2+2 = 4) or in base four, and
negative ones by changing a sign (-5 + 3 = -2). It checks each answer by working back from it. It tries one method
after another until one passes.

`python -m benchmarks.derivation_levels` prints how many wrong answers it certifies at each level.
"""

from collections.abc import Iterator
from fractions import Fraction

from eldgr_dspy.derivation.tracing import question_numbers
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.derivations import check_derivation
from eldgr_dspy.words import Strictness

Lines = list[tuple[str, Fraction | int]]
"""Expressions with their values."""


def forge(question: str, answer: int, level: Strictness = "bounded") -> Derivation | None:
    """Return a derivation of `answer` that passes at `level`, or None if every method fails."""
    for derivation in ways(question, answer):
        if check_derivation(derivation, question, level).passed:
            return derivation
    return None


def ways(question: str, answer: int) -> Iterator[Derivation]:
    """Yield derivations of any answer, from the numbers that the question states."""
    for number in sorted(Fraction(value) for value in question_numbers(question) if value > 0):
        ones: Lines = [(f"{_literal(number)} / {_literal(number)}", 1)]
        for lines, checks in (*_in_base_four(ones, answer), *_by_doubling(ones, answer), *_by_turning(ones, answer)):
            for check in checks:
                yield _derivation(lines, answer, check)
        for lines, checks in _small(number, ones, answer):
            for check in checks:
                yield _derivation(lines, answer, check)


def _in_base_four(ones: Lines, answer: int) -> Iterator[tuple[Lines, list[str]]]:
    """Write a number above four as 4*rest + digit, with 2, 3 and 4 made of ones."""
    rest, digit = divmod(answer, 4)
    if answer > 4:
        lines = [*ones, ("1 + 1", 2), ("2 + 1", 3), ("2 + 2", 4), *([(_horner(rest), rest)] if rest > 4 else [])]
        if digit:
            yield [*lines, (f"{rest} * 4 + {digit}", answer)], [f"({answer} - {digit}) / 4 = {rest}"]
        else:
            yield [*lines, (f"{rest} * 4", answer)], [f"{answer} / 4 = {rest}"]


def _horner(number: int) -> str:
    """Return an expression of a number above four in the digits 1 to 4."""
    rest, digit = divmod(number, 4)
    if rest == 0:
        return str(digit)
    inner = str(rest) if rest <= 4 else f"({_horner(rest)})"
    return f"{inner} * 4 + {digit}" if digit else f"{inner} * 4"


def _by_doubling(ones: Lines, answer: int) -> Iterator[tuple[Lines, list[str]]]:
    """Add up powers of two, each the double of the one before."""
    for more in (0, 1, 2, 4):
        target = answer + more
        if target <= 1:
            continue
        lines, powers = list(ones), [1]
        while powers[-1] * 2 <= target:
            lines.append((f"{powers[-1]} + {powers[-1]}", powers[-1] * 2))
            powers.append(powers[-1] * 2)
        total, checks = (
            powers[-1],
            [f"{answer} / 2 = {powers[-1] // 2}", f"{answer} - {powers[-1] // 2} = {powers[-1] // 2}"],
        )
        for power in powers[-2::-1]:
            if total + power <= target:
                checks = [f"{answer} - {power} = {total}", f"{answer} - {total} = {power}"]
                lines.append((f"{total} + {power}", total + power))
                total += power
        if more:
            lines.append((f"{target} - {more}", answer))
            checks = [f"{answer} + {more} = {target}", f"{target} - {answer} = {more}"]
        yield lines, checks


def _by_turning(ones: Lines, answer: int) -> Iterator[tuple[Lines, list[str]]]:
    """Change the sign of a number and add what is missing: -5 + 3 = -2."""
    for offset in (1, 2, 3, 4) if answer < 0 else ():
        size = offset - answer
        for lines, _ in (*_in_base_four(ones, size), *_by_doubling(ones, size)):
            if offset in {value for _, value in lines}:
                checks = [f"{answer} - {offset} = -{size}", f"{offset} - ({answer}) = {size}"]
                yield [*lines, (f"-{size} + {offset}", answer)], checks


def _small(number: Fraction, ones: Lines, answer: int) -> Iterator[tuple[Lines, list[str]]]:
    """Reach values close to zero or to a stated number."""
    literal = _literal(number)
    if answer == 0:
        yield [(f"{literal} - {literal}", 0)], [f"0 + {literal} = {literal}", f"{literal} + 0 = {literal}"]
    if answer == 1:
        yield ones, [f"1 * {literal} = {literal}", f"{literal} * 1 = {literal}"]
    if answer == -1:  # no one on the way, from which a check could not be told apart
        twice, thrice = _literal(2 * number), _literal(3 * number)
        multiples: Lines = [(f"{literal} + {literal}", 2 * number), (f"{twice} + {literal}", 3 * number)]
        lines: Lines = [*multiples, (f"{twice} / {literal}", 2), (f"{thrice} / {literal}", 3), ("-3 + 2", -1)]
        yield lines, ["-1 - 2 = -3"]
    if number.denominator == 1:
        step = answer - number.numerator
        single: list[tuple[Lines, list[str]]] = [(ones, [])] if step else []
        for lines, _ in _by_doubling(ones, abs(step)) if abs(step) > 1 else iter(single):
            sign, inverse = ("+", "-") if step > 0 else ("-", "+")
            yield [*lines, (f"{literal} {sign} {abs(step)}", answer)], [f"{answer} {inverse} {abs(step)} = {literal}"]


def _derivation(lines: Lines, answer: int, check: str) -> Derivation:
    return Derivation(tuple(Step(expression, str(value)) for expression, value in lines), str(answer), check)


def _literal(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"({number})"
