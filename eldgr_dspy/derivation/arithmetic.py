"""Exact arithmetic on untrusted text: the value of an expression as a fraction, or a sentence that says why not.

It reads integers, decimals, `+ - * / // % **`, signs and parentheses, and also `×`, `÷`, `·`, `−`, `–`, `^`, an `x`
between two numbers, thousands commas, currency signs and percentages. `%` is a remainder where an
operand follows it directly (`17 % 5`) and a hundredth otherwise (`20%`, `20% * 80`). A sign before a power applies
after it (`-2**2` is -4); `//` and remainders round towards minus infinity. Digits of other scripts read as their ASCII
digits; superscripts, `½`, `0x10` and two currencies in one expression are refused.

It is not a computer algebra system and not a calculator for floats: no names, calls, roots or units, and `0**0` has no
value. Python's own parser never sees the text, and the reader does not recurse. Length, tokens, nesting, operands and
powers are bounded before anything is computed, so that no intermediate result exceeds a few thousand bits.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from eldgr_dspy.errors import UnexecutableError
from eldgr_dspy.text.numbers import CURRENCY_SIGNS, fold_digits

MAX_LENGTH: Final = 256  # characters of an expression
MAX_TOKENS: Final = 128  # numbers, operators and parentheses in it
MAX_DEPTH: Final = 32  # parentheses inside one another
MAX_BITS: Final = 512  # of the numerator and of the denominator of every intermediate result
MAX_EXPONENT: Final = 64  # of a power, by magnitude

Exact = int | Fraction
"""A number without rounding. An int and a Fraction of the same value are equal and hash alike."""


class Operand(NamedTuple):
    """A number as it is written in an expression, its sign included: `20%` is a fifth, with `percent` set."""

    value: Exact
    percent: bool = False

    @property
    def readings(self) -> tuple[Exact, ...]:
        """The value and, for a percentage, the figure before its sign."""
        return (self.value, self.value * 100) if self.percent else (self.value,)


class Operation(NamedTuple):
    """One binary operation with its operands and its result."""

    kind: str
    left: Exact
    right: Exact
    result: Exact


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that has been read but not computed; `program` holds it in postfix order.

    A string in the program is a binary operator, or `negate`, or `percent`.
    """

    text: str
    program: tuple[Operand | str, ...] = field(repr=False)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Every number that is written in the expression, from left to right."""
        return tuple(item for item in self.program if isinstance(item, Operand))

    def value(self) -> Fraction:
        """Return the exact value, or raise an UnexecutableError: a result on the way is undefined or too big."""
        return Fraction(self._run(None))

    def operations(self) -> tuple[Operation, ...]:
        """Return the binary operations in the order in which they are carried out; raises as `value` does."""
        operations: list[Operation] = []
        self._run(operations)
        return tuple(operations)

    def parts(self) -> tuple[tuple[Operand, ...], ...]:
        """Return the numbers under each binary operation, in the order of `operations`."""
        stack: list[tuple[Operand, ...]] = []
        parts: list[tuple[Operand, ...]] = []
        for item in self.program:
            if isinstance(item, Operand):
                stack.append((item,))
            elif item in _BINARY:
                right = stack.pop()
                stack.append(stack.pop() + right)
                parts.append(stack[-1])
        return tuple(parts)

    def substitute(self, swaps: Mapping[Exact, Exact]) -> "Expression":
        """Return the expression with some numbers replaced, also where they are negated or percentages."""
        new = (_swap(item, swaps) if isinstance(item, Operand) else item for item in self.program)
        return Expression(self.text, tuple(new))

    def _run(self, operations: list[Operation] | None) -> Exact:
        stack: list[Exact] = []
        for item in self.program:
            if isinstance(item, Operand):
                stack.append(item.value)
            elif item == "negate":
                stack.append(-stack.pop())
            elif item == "percent":
                stack.append(self._bound(Fraction(stack.pop(), 100)))
            else:
                right, left = stack.pop(), stack.pop()
                # A sum, product, quotient or remainder has at most twice its operands' bits and one, so it is computed
                # and then measured; a power is measured before.
                result = self._bound(self._apply(item, left, right))
                if operations is not None:
                    operations.append(Operation(item, left, right, result))
                stack.append(result)
        return stack.pop()

    def _apply(self, kind: str, left: Exact, right: Exact) -> Exact:
        if kind == "+":
            return left + right
        if kind == "-":
            return left - right
        if kind == "*":
            return left * right
        if kind == "**":
            return self._power(left, right)
        if right == 0:
            raise _refusal(self.text, "it divides by zero, which has no value")
        if kind == "/":
            return simplify(Fraction(left, right))
        return left // right if kind == "//" else left % right

    def _power(self, base: Exact, exponent: Exact) -> Exact:
        count = exponent.numerator
        if exponent.denominator != 1 or abs(count) > MAX_EXPONENT:
            raise _refusal(self.text, f"an exponent must be a whole number from -{MAX_EXPONENT} to {MAX_EXPONENT}")
        if base == 0 and count <= 0:
            raise _refusal(self.text, "zero to the power of zero, or of less, has no value")
        if max(base.numerator.bit_length(), base.denominator.bit_length()) * abs(count) > MAX_BITS:
            raise _refusal(self.text, f"a power in it would be longer than {MAX_BITS} bits")
        return simplify(Fraction(base) ** count)

    def _bound(self, result: Exact) -> Exact:
        if result.numerator.bit_length() > MAX_BITS or result.denominator.bit_length() > MAX_BITS:
            raise _refusal(self.text, f"a result in it is longer than {MAX_BITS} bits")
        return result


def evaluate(expression: str) -> Fraction:
    """Return the exact value of an expression, which may be any text.

    Raises:
        UnexecutableError: The text is not an expression, exceeds a bound, or has no value. Nothing else is raised.
    """
    return parse(expression).value()


def parse(expression: str) -> Expression:
    """Read an expression without computing anything; an UnexecutableError if it is not one, or exceeds a bound."""
    if len(expression) > MAX_LENGTH:
        raise _refusal(expression, f"it has {len(expression)} characters, and at most {MAX_LENGTH} are read")
    tokens = _scan(expression)
    if len(tokens) > MAX_TOKENS:
        raise _refusal(expression, f"it has {len(tokens)} numbers and signs, and at most {MAX_TOKENS} are read")
    return Expression(expression, tuple(_postfix(expression, tokens)))


def parse_sides(text: str) -> tuple[Expression, ...]:
    """Read each side of the equals signs in a text. Without one, the whole text is the only side."""
    sides = text.split("=") if len(text) <= MAX_LENGTH else [text]
    return tuple(parse(side.strip()) for side in sides)


_TOKEN: Final = re.compile(
    r"((?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"  # a number
    r"|(\*\*|//|[-+*/%^()])"  # an operator or a parenthesis
    rf"|([{CURRENCY_SIGNS}¢])"  # a currency sign
    r"|([^ \t])",  # an x between numbers, or a character that is not allowed
    re.ASCII,
)
_NUMBER: Final = re.compile(r"([1-9]\d{0,2}(?:,\d{3})+|\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"(?<![\d.,])0[xX]\d", re.ASCII)
_MAX_DIGITS: Final = 150  # 10**150, and a hundredth of its inverse, stay below MAX_BITS bits
_LEVELS: Final = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "negate": 3, "**": 4}
_BINARY: Final = frozenset(_LEVELS) - {"(", "negate"}
# Spaces keep two neighbours apart, so that no two typographic signs make a power or a floor division.
_TYPOGRAPHIC: Final = str.maketrans(
    dict.fromkeys("×⋅·∙＊", " * ")
    | dict.fromkeys("÷∕⁄／", " / ")
    | dict.fromkeys("−–－", " - ")
    | dict.fromkeys("\u00a0\u2007\u2009\u202f\u3000", " ")
    | dict(zip("＋（）％＾＄￥￡．，", "+()%^$¥£.,", strict=True))
)


def _scan(text: str) -> list[str]:
    """Return the tokens without currency signs; refuse a character that cannot be in an expression."""
    tokens: list[str] = []
    currencies: set[str] = set()
    plain = fold_digits(text).translate(_TYPOGRAPHIC).strip()
    for number, sign, currency, other in _TOKEN.findall(plain):
        if number or sign:
            tokens.append(number or ("**" if sign == "^" else sign))
        elif currency:
            currencies.add(currency)
        elif other.lower() == "x":
            tokens.append("x")
        else:
            raise _refusal(text, f"{other!r} is neither a number nor an operator")
    if len(currencies) > 1:
        raise _refusal(text, f"it mixes the currencies {' and '.join(sorted(currencies))}")
    if "x" in tokens and _HEXADECIMAL.search(plain):
        raise _refusal(text, "it holds a hexadecimal number")
    return tokens


def _postfix(text: str, tokens: Sequence[str]) -> list[Operand | str]:
    """Return the program of a list of tokens: operator precedence by two stacks, without recursion."""
    program: list[Operand | str] = []
    pending: list[str] = []
    operand_next = True
    for position, token in enumerate(tokens):
        if operand_next:
            operand_next = _awaits_operand(text, token, program, pending)
        elif token == ")":
            _close(text, program, pending)
        elif token == "%" and not _operand_starts(tokens, position + 1):
            _make_percent(text, program)
        else:
            _push(text, "*" if token == "x" else token, program, pending)
            operand_next = True
    if operand_next:
        raise _refusal(text, "it ends where a number is expected" if tokens else "it is empty")
    if "(" in pending:
        raise _refusal(text, "a parenthesis in it is never closed")
    _unwind(1, program, pending)
    return program


def _awaits_operand(text: str, token: str, program: list[Operand | str], pending: list[str]) -> bool:
    """Take a token where an operand begins; say whether the operand itself is still to come."""
    if token == "(":
        if pending.count("(") == MAX_DEPTH:
            raise _refusal(text, f"its parentheses nest deeper than {MAX_DEPTH}")
        pending.append("(")
    elif token == "-":
        pending.append("negate")
    elif token != "+":
        program.append(_literal(text, token))
        return False
    return True


def _operand_starts(tokens: Sequence[str], position: int) -> bool:
    return position < len(tokens) and (tokens[position] == "(" or _is_number(tokens[position]))


def _push(text: str, sign: str, program: list[Operand | str], pending: list[str]) -> None:
    if sign not in _BINARY:
        raise _refusal(text, f"an operator is missing before {sign!r}")
    # Powers group from the right, everything else from the left.
    _unwind(_LEVELS[sign] + (sign == "**"), program, pending)
    pending.append(sign)


def _close(text: str, program: list[Operand | str], pending: list[str]) -> None:
    _unwind(1, program, pending)
    if not pending:
        raise _refusal(text, "a parenthesis in it is never opened")
    pending.pop()


def _unwind(level: int, program: list[Operand | str], pending: list[str]) -> None:
    while pending and _LEVELS[pending[-1]] >= level:
        sign = pending.pop()
        last = program[-1]
        if sign == "negate" and isinstance(last, Operand):
            program[-1] = Operand(-last.value, last.percent)
        else:
            program.append(sign)


def _make_percent(text: str, program: list[Operand | str]) -> None:
    last = program[-1]
    if last == "percent" or (isinstance(last, Operand) and last.percent):
        raise _refusal(text, "it takes a percentage of a percentage sign")
    if isinstance(last, Operand):
        program[-1] = Operand(Fraction(last.value, 100), percent=True)
    else:
        program.append("percent")


def _literal(text: str, token: str) -> Operand:
    """Return the number that a token writes. Its digits are counted before they are read."""
    if not _is_number(token):
        raise _refusal(text, f"{token!r} is where a number is expected")
    match = _NUMBER.fullmatch(token)
    if match is None:
        raise _refusal(text, f"the commas of {token!r} do not separate thousands, so it can be read in two ways")
    digits, power = match[1].replace(",", "") + (match[2] or ""), match[3] or "0"
    shift = int(power) - len(match[2] or "")
    if len(digits) + abs(shift) > _MAX_DIGITS:
        raise _refusal(text, f"a number in it is longer than {MAX_BITS} bits")
    return Operand(simplify(Fraction(int(digits) * 10 ** max(shift, 0), 10 ** max(-shift, 0))))


def _is_number(token: str) -> bool:
    return token[0].isdigit() or token[0] == "."


def _swap(operand: Operand, swaps: Mapping[Exact, Exact]) -> Operand:
    for scale in (1, -1, 100, -100) if operand.percent else (1, -1):
        new = swaps.get(operand.value * scale)
        if new is not None:
            return Operand(simplify(Fraction(new, scale)), operand.percent)
    return operand


def simplify(value: Exact) -> Exact:
    """Return a whole fraction as an int, on which the next operation is several times as fast."""
    return value.numerator if value.denominator == 1 else value


def _refusal(text: str, what: str) -> UnexecutableError:
    head = text if len(text) <= 60 else f"{text[:57]}..."
    return UnexecutableError(
        f"The expression {head!r} cannot be executed: {what}. Write only numbers, + - * / // % ** and parentheses."
    )
