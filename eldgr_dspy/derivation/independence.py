"""Decide whether an equation checks an answer independently of the steps that led to it.

The equation must be true, hold the answer as one of its numbers, draw its other numbers from the question, its words'
constants or what was computed without the answer, and fail for any other answer. It must not restate the steps: nothing
in it may compute, without the answer, from all the numbers that the answer was computed from, counted as often as they
were used. So for 18+6 = 24, the equation `24-6 = 18` is a check, but `24+2 = 18+6+2`, `(18*2 + 6*2)/2 = 24` and
`18 - (-6) = 24` are not. A check that computes the answer from other numbers must use another operator:
`6+6+6+6 = 24` checks 4*6.

It tests only the form: it does not know whether the equation is about the question. It misses numbers that fit by
chance, steps padded with irrelevant numbers, and a number of the steps computed from others (4*4 + 2 instead of 18). A
square's repeated sum (`2+2 = 4` for 2*2) is refused although it is a check.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from fractions import Fraction

from eldgr_dspy.derivation.arithmetic import Exact, Expression, Operand, Operation, parse_sides
from eldgr_dspy.derivation.tracing import fold, traces
from eldgr_dspy.errors import UnexecutableError

Sides = tuple[Expression, ...]  # of the equals signs of a step or of a check
_Key = tuple[str, Exact, Exact]
_Numbers = Counter[Exact]  # magnitudes, as often as they are used


def fault_of_check(check: str, steps: Sequence[Sides], sources: Iterable[Exact], answer: Fraction) -> str | None:
    """Return why an untrusted equation is not a check, in a sentence, or None if it is one."""
    try:
        # The steps were executed before, so what does not execute here is the check.
        numbers = _apart_from(answer, steps, sources) | {answer}
        sides = _fold_fractions(parse_sides(check), steps, numbers, answer)
        values = [side.value() for side in sides]
    except UnexecutableError as error:
        return f"The check does not execute: {as_ending(error)}"
    if len(sides) != 2:
        return f"The check {quote(check)} is not one equation of two sides."
    if values[0] != values[1]:
        return f"The check {quote(check)} is false: its sides are {spell(values[0])} and {spell(values[1])}."
    what = _fault_of_operands(sides, numbers, answer) or _fault_of_equation(sides, steps, answer)
    return what and f"The check {quote(check)} {what}."


def _fault_of_operands(sides: Sides, numbers: Container[Exact], answer: Fraction) -> str | None:
    operands = [operand for side in sides for operand in side.operands]
    if not _holds(operands, answer):
        return f"does not contain the answer {spell(answer)}"
    if (stray := next((operand for operand in operands if not traces(operand, numbers)), None)) is None:
        return None
    return f"uses {spell(stray.readings[-1])}, which neither the question nor a step apart from the answer supplies"


def _apart_from(answer: Fraction, steps: Iterable[Sides], sources: Iterable[Exact]) -> set[Exact]:
    """Return the numbers that are known without the answer: a result computed from the answer cannot check it."""
    numbers = set(sources)
    for first, *_ in steps:
        value = first.value()
        if abs(value) != abs(answer) and all(traces(operand, numbers) for operand in first.operands):
            numbers.add(value)
    return numbers


def _fold_fractions(sides: Sides, steps: Iterable[Sides], numbers: set[Exact], answer: Fraction) -> Sides:
    """Return the sides with `10/3` as one number if the steps gave it, or if the sides are equal only then."""
    totals = {first.value() for first, *_ in steps} - {answer}
    own = {answer, -answer}
    readings = [tuple(fold(side, values) for side in sides) for values in (totals, (), totals | own, numbers | own)]
    holding = [one for one in readings if any(_holds(side.operands, answer) for side in one)]
    tracing = (one for one in holding if all(traces(operand, numbers) for side in one for operand in side.operands))
    return next(tracing, holding[0] if holding else sides)


def _holds(operands: Iterable[Operand], answer: Fraction) -> bool:
    return any(traces(operand, {answer}) for operand in operands)


def _fault_of_equation(sides: Sides, steps: Sequence[Sides], answer: Fraction) -> str | None:
    operations = _operations(sides)
    variants: list[Operation] = []
    for other in (10 * answer + 7, answer + 1, answer - 1):
        trial = tuple(side.substitute({answer: other}) for side in sides)
        try:
            holds = trial[0].value() == trial[1].value()
            variants = variants or _operations(trial)
        except UnexecutableError:
            continue  # without a value for that answer it does not hold either
        if holds:
            return f"would hold for {spell(other)} as well as for the answer"
    if len(variants) != len(operations):
        return "could not be tested with any other answer"
    # An operation is touched if another answer changes what it works on.
    changes = [(now, then) for now, then in zip(operations, variants, strict=True) if now[:3] != then[:3]]
    if (blunt := next((now.kind for now, _ in changes if now.kind in ("//", "%")), None)) is not None:
        return f"takes {blunt} of the answer, which is the same for many answers"
    apart = [now for now, then in zip(operations, variants, strict=True) if now[:3] == then[:3]]
    if _is_independent(changes, apart, steps, answer) and not _restates(sides, steps, answer):
        return None
    return "restates the steps; it must work back from the answer, or reach it by another operator"


def _is_independent(
    changes: Iterable[tuple[Operation, Operation]], apart: Iterable[Operation], steps: Iterable[Sides], answer: Fraction
) -> bool:
    """Whether the check computes the answer by other operators, or uses the answer in an operation that no step has."""
    operations = [operation for step in steps for operation in _operations(step)]
    if anew := _kinds_that_give(answer, apart):
        return not anew & _kinds_that_give(answer, operations)
    keys = {_key(operation) for operation in operations}
    return any(
        _key(now) not in keys and not _is_idle(then) and (not _is_idle(now) or _undoes(now, keys))
        for now, then in changes
    )


def _kinds_that_give(answer: Fraction, operations: Iterable[Operation]) -> set[str]:
    return {
        operation.kind for operation in operations if abs(operation.result) == abs(answer) and not _is_idle(operation)
    }


def _operations(sides: Iterable[Expression]) -> list[Operation]:
    return [operation for side in sides for operation in side.operations()]


def _key(operation: Operation) -> _Key:
    """Return an operation in a form that ignores the order of a sum or a product."""
    kind, left, right, _ = operation
    return (kind, min(left, right), max(left, right)) if kind in "+*" else (kind, left, right)


def _is_idle(operation: Operation) -> bool:
    """Whether an operation is trivial: a zero or a one leaves the other number unchanged, or leaves nothing of it."""
    kind, left, right, result = operation
    if kind in "+-":
        return left == 0 or right == 0
    if kind == "%":
        return result == left
    return 0 in (left, right) or right == 1 or (left == 1 and kind != "/")


def _undoes(operation: Operation, keys: set[_Key]) -> bool:
    """Whether `5 + 0` undoes a step 5 - 5 = 0, or `5 * 1` a step 5/5 = 1, and so is not trivial."""
    kind, left, right, _ = operation
    neutral = 0 if kind in "+-" else 1
    inverse = "-" if kind in "+-" else "/"
    return any((inverse, number, number) in keys for number in (left, right) if number != neutral)


# --- what a number was computed from ----------------------------------------------------------------------------------


class Origins:
    """The numbers that the answer, and each intermediate result, was computed from.

    `ways` has those of the answer, once for each operation or step that gives it.
    """

    def __init__(self, steps: Iterable[Sides], answer: Fraction) -> None:
        self.ways: list[_Numbers] = []
        self._answer = abs(answer)
        self._behind: dict[Exact, _Numbers] = {}
        for side in (side for step in steps for side in step):
            results = [operation.result for operation in side.operations()]
            for result, part in zip(results, side.parts(), strict=True):
                self._add(result, part)
            if results:
                self._add(side.value(), side.operands)  # a sign or a percentage of the last result

    def behind(self, value: Exact) -> _Numbers:
        """Return all numbers that a value was computed from; none if no step gives it."""
        return self._behind.get(_size(value), _Numbers())

    def _add(self, result: Exact, part: Iterable[Operand]) -> None:
        way = _Numbers()
        for operand in part:
            way.update(self._behind.get(_size(operand.value)) or (_size(operand.readings[-1]),))
        self._behind[_size(result)] = self.behind(result) | way
        if _size(result) == self._answer:
            self.ways.append(way)


def _size(value: Exact) -> Exact:
    return value if value >= 0 else -value


def _restates(sides: Sides, steps: Sequence[Sides], answer: Fraction) -> bool:
    """Whether a part of the check without the answer, or a whole side without it, uses all the numbers behind it."""
    origins = Origins(steps, answer)
    holds = _names if _undoes_all(sides, steps, answer) else _holds
    for side, other in (sides, sides[::-1]):
        beside = holds(other.operands, answer)
        for part in side.parts():
            if beside or not holds(part, answer):
                origin_numbers = _numbers_behind(part, origins, answer)
                if any(way <= origin_numbers for way in origins.ways):
                    return True
    return False


def _names(operands: Iterable[Operand], answer: Fraction) -> bool:
    return any(answer in operand.readings for operand in operands)


def _undoes_all(sides: Sides, steps: Sequence[Sides], answer: Fraction) -> bool:
    """Whether the negative of the answer is a number of the steps that the check works back to."""
    # So for `-6 + 12 = 6` after 6 - 12 = -6: with another 6 the steps give another answer, and the check still holds.
    for other in (10 * answer + 7, 11 - answer):
        if (outcome := recompute(steps, -answer, other)) is None or outcome == answer:
            return False
        try:
            values = [side.substitute({-answer: other, answer: outcome}).value() for side in sides]
        except UnexecutableError:
            return False
        if values[0] != values[1]:
            return False
    return True


def recompute(steps: Iterable[Sides], number: Exact, other: Exact) -> Exact | None:
    """Return the result of the steps when one number replaces another throughout, or None without a result."""
    swaps: dict[Exact, Exact] = {number: other}
    outcome: Exact | None = None
    try:
        for step in steps:
            sides = [side for side in step if side.operations()] or step
            values = [side.substitute(swaps).value() for side in sides]
            outcome = next((value for value in values if value != other), other)
            swaps[step[0].value()] = outcome
    except UnexecutableError:
        return None
    return outcome


def _numbers_behind(part: Iterable[Operand], origins: Origins, answer: Fraction) -> _Numbers:
    """Return the numbers of a part and what they were computed from. The answer counts only as itself."""
    numbers = _Numbers()
    for operand in part:
        numbers.update(_size(reading) for reading in operand.readings)
        if abs(operand.value) != abs(answer):
            numbers += origins.behind(operand.value)
    return numbers


# --- how sentences name numbers and texts -----------------------------------------------------------------------------


def spell(value: Exact) -> str:
    """Return a number for a sentence: exact, and cut if it is long."""
    return _shorten(str(value))


def quote(text: str) -> str:
    """Return a text quoted for a sentence: as typed, and cut if it is long."""
    return repr(_shorten(text.strip()))


def as_ending(error: UnexecutableError) -> str:
    sentence = str(error)
    return sentence[0].lower() + sentence[1:]


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
