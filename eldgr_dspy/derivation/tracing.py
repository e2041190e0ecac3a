"""Find the numbers that a derivation may use: those that a question states, and constants that its words license.

A question states its numerals (`1,000`, `3/4`, `2 1/2`, `20%` as 20 and as a fifth, `50 cents` as 50 and as a half) and
its number words (`twenty-four`, `two hundred`, `three quarters`, `one and a half`, `2 dozen`, and `dozen` alone). The
rest after a stated percentage or fraction counts as stated, and so does the whole with a percentage added: `25%` states
0.75 and 1.25, `3/4` a quarter. `TABLE` adds what a word of the question means: a week has 7 days, percent is out
of 100. The choice of words is ours.

It does not understand the question: an irrelevant number traces as well as one that matters.
"""

import re
import unicodedata
from collections.abc import Container, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from eldgr_dspy.derivation.arithmetic import Exact, Expression, Operand
from eldgr_dspy.text.numbers import VULGAR_FRACTIONS, fold_digits

_ROWS: Final = (
    # Parts and multiples.
    ("% percent percentage", "100 1 1/100"),
    ("half halve halves halved", "1/2 2 1"),
    ("third", "1/3 3 1"),
    ("quarter", "1/4 4 25 1"),  # 25: the coin
    ("fourth", "1/4 4 1"),
    ("fifth", "1/5 5 1"),
    ("sixth", "1/6 6 1"),
    ("seventh", "1/7 7 1"),
    ("eighth", "1/8 8 1"),
    ("ninth", "1/9 9 1"),
    ("tenth", "1/10 10 1"),
    ("once single", "1"),
    ("twice double doubled doubling both pair couple twin", "2"),
    ("thrice triple tripled tripling triplet", "3"),
    ("quadruple quadrupled", "4"),
    ("dozen", "12"),
    ("hundred", "100"),
    ("thousand", "1000"),
    ("million", "1000000"),
    ("billion", "1000000000"),
    # Time.
    ("second minute", "60"),
    ("hour hourly", "60 24"),
    ("day daily", "24"),
    ("week weekly", "7 52"),
    ("weekday", "5"),
    ("weekend", "2"),
    ("fortnight", "14"),
    ("month monthly", "12 30 4"),  # a month has thirty days, or four weeks, in word problems
    ("year yearly annual annually", "12 52 365"),
    ("leap", "366"),
    ("decade", "10"),
    ("century", "100"),
    # Length.
    ("inch", "12"),
    ("foot feet ft", "12 3"),
    ("yard", "3 36"),
    ("mile", "5280 1760"),
    ("millimetre millimeter mm", "10 1000"),
    ("centimetre centimeter cm", "10 100"),
    ("metre meter", "100 1000"),
    ("kilometre kilometer km", "1000"),
    # Weight and volume.
    ("ounce oz pound lb", "16"),
    ("ton", "2000"),
    ("gram kilogram kilo kg tonne", "1000"),
    ("millilitre milliliter ml litre liter", "1000"),
    ("gallon", "4 8 16 128"),
    ("quart", "2 4"),
    ("pint", "2 8"),
    ("cup", "2 4 8 16"),
    ("tablespoon", "3 16"),
    ("teaspoon", "3"),
    # Money.
    ("$ € £ dollar euro cent ¢ pence", "100 1/100"),
    ("nickel", "5 1/20"),
    ("dime", "10 1/10"),
    ("penny", "1 100 1/100"),
)
TABLE: Final[Mapping[str, tuple[Fraction, ...]]] = MappingProxyType(
    {name: tuple(map(Fraction, values.split())) for names, values in _ROWS for name in names.split()}
)
"""The constants that each word or sign licenses, in the singular and lower case; regular plurals count as singular."""

_ONES: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS: Final = {
    **{word: value for value, word in enumerate(_ONES.split())},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), start=2)},
}
SCALES: Final = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
PARTS: Final = ("half", "third", "quarter", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
PERCENT: Final = frozenset({"%", "percent"})
HUNDREDTHS: Final = PERCENT | {"¢", "cent"}
_LONGEST: Final = 40  # digits of a numeral; a longer one is not a quantity of a word problem
_VULGAR: Final = re.compile(f"[{VULGAR_FRACTIONS}]")
_TOKEN: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d*\.?\d+|[^\W\d_]+|[%¢$€£/]")
_UNITS: Final = "kg|km|cm|mm|ml|[gml]|euro|lit(?:er|re)|met(?:er|re)|hour"
_SPELLINGS: Final = (
    (re.compile(r"\ba (?=(?:hundred|thousand|million|billion)\b)"), "one "),
    (re.compile(r"\bper cent\b"), "percent"),
    (re.compile(r"(?<=\d)k\b"), " thousand"),
    (re.compile(r"(?<=\d)(?:\s(?=(?:\d{3}\s){0,3}000(?!\d))|['’](?=\d{3}(?!\d)))"), ""),
    (re.compile(rf"(?<![\d.,])(\d{{1,9}}),(?=\d{{1,2}} ?(?:[%€]|(?:{_UNITS})s?\b))"), r"\1."),
)
"""How quantities are spelled, and what is read instead of each spelling: a hundred, $50k, 1'000, 3,5 kg."""


def traceable(question: str) -> frozenset[Exact]:
    """Return every number that an operand may trace to: stated by the question, or licensed by the table."""
    constants = {value for token in set(tokens_of(question)) for value in TABLE.get(token, ())}
    return question_numbers(question).union(constants)


def question_numbers(question: str) -> frozenset[Exact]:
    """Return the numbers that a question states by a numeral or a number word, without what the table licenses."""
    tokens = tokens_of(question)
    return frozenset(_numbers_in(tokens)).union(SCALES[token] for token in tokens if token in SCALES)


def traces(operand: Operand, numbers: Container[Exact]) -> bool:
    """Whether an operand is a known number. A sign is an operation, so -5 traces to a 5, and 20% to 20 or a fifth."""
    return any(reading in numbers or -reading in numbers for reading in operand.readings)


def fold(expression: Expression, values: Container[Exact]) -> Expression:
    """Return the expression with a division of two whole numbers as one number where it writes one of `values`."""
    # So `10/3 * 9` and `9 * (10/3)` are products of two numbers.
    program: list[Operand | str] = []
    for item in expression.program:
        program.append(item)
        if item == "/":
            _fold_last(program, values)
    return Expression(expression.text, tuple(program))


def _fold_last(program: list[Operand | str], values: Container[Exact]) -> None:
    """Fold the division that a program ends in; `9 * 10/3` divides the product, with the same result."""
    start = -4 if program[-3:-2] == ["*"] else -3
    upper, lower = program[start], program[-2]
    if not (isinstance(upper, Operand) and isinstance(lower, Operand)) or upper.percent or lower.percent:
        return
    if lower.value and upper.value.denominator == lower.value.denominator == 1:
        value = Fraction(upper.value, lower.value)
        # A whole value is never folded: 18/2 is an operation.
        if value.denominator != 1 and value in values:
            program[start:] = [Operand(value), *program[start + 1 : -2]]


def tokens_of(question: str) -> list[str]:
    """Return the numerals, words and signs of a question, words in lower case and in the singular."""
    plain = _VULGAR.sub(_as_fraction, fold_digits(question)).lower()  # digits in ASCII, and `½` as ` 1/2`
    for spelling, usual in _SPELLINGS:
        plain = spelling.sub(usual, plain)
    return [_singular(token) for token in _TOKEN.findall(plain)]


def _as_fraction(fraction: re.Match[str]) -> str:
    return " " + unicodedata.normalize("NFKC", fraction[0]).replace("\N{FRACTION SLASH}", "/")


def _singular(token: str) -> str:
    if token in TABLE or not token.endswith("s"):
        return token
    plurals = {"s": "", "es": "", "ies": "y"}
    singulars = (token.removesuffix(plural) + ending for plural, ending in plurals.items() if token.endswith(plural))
    return next((singular for singular in singulars if singular in TABLE or singular in SCALES), token)


def _numbers_in(tokens: list[str]) -> Iterator[Fraction]:
    position = 0
    while position < len(tokens):
        amount, after = amount_at(tokens, position)
        if amount is None:
            position += 1
            continue
        yield amount
        if after < len(tokens) and tokens[after] in SCALES:
            amount *= SCALES[tokens[after]]
            after += 1
            yield amount
        yield from _combine(amount, tokens, after)
        position = after


def _combine(amount: Fraction, tokens: list[str], after: int) -> Iterator[Fraction]:
    if not (following := tokens[after : after + 4]):
        return
    part = fraction_at(following)
    if following[0] in PERCENT:
        yield 1 + amount / 100
        yield from _share(amount / 100)
    elif following[0] in HUNDREDTHS:
        yield amount / 100
    elif following[0] in PARTS and part is not None:
        yield from _share(amount * part)
    elif following[0] == "/":
        if divisor := numeral_at(tokens, after + 1):
            yield from _share(amount / divisor)
    elif part is not None:
        yield amount + part


def _share(share: Fraction) -> Iterator[Fraction]:
    yield share
    if share < 1:
        yield 1 - share


def fraction_at(tokens: list[str]) -> Fraction | None:
    """Return the fraction that these tokens begin with: `half`, `and a half`, `and three quarters`, `1/2`."""
    if tokens[0] in PARTS:
        return TABLE[tokens[0]][0]
    upper, lower = numeral_at(tokens, 0), numeral_at(tokens, 2)
    if upper and lower and tokens[1] == "/":
        return upper / lower
    if tokens[0] != "and" or len(tokens) < 3 or tokens[2] not in PARTS:
        return None
    count = 1 if tokens[1] in ("a", "an") else NUMBER_WORDS.get(tokens[1])
    return None if count is None else count * TABLE[tokens[2]][0]


def amount_at(tokens: list[str], position: int) -> tuple[Fraction | None, int]:
    """Return the number that a numeral or number words give from `position`, or None, and where it ends."""
    amount = numeral_at(tokens, position)
    return _word_number(tokens, position) if amount is None else (amount, position + 1)


def numeral_at(tokens: list[str], position: int) -> Fraction | None:
    """Return the number that the token at `position` writes in digits, or None."""
    if position >= len(tokens):
        return None
    token = tokens[position]
    if len(token) > _LONGEST or not (token[0].isdecimal() or token[0] == "."):
        return None
    return Fraction(token.replace(",", ""))


def _word_number(tokens: list[str], position: int) -> tuple[Fraction | None, int]:
    total, group, after = 0, 0, position
    while after < len(tokens):
        word = tokens[after]
        value = NUMBER_WORDS.get(word)
        is_followed = not NUMBER_WORDS.keys().isdisjoint(tokens[after + 1 : after + 2])  # two hundred and five
        if value is not None and _fits(group, value):
            group += value
        elif word == "hundred" and 0 < group < 100:
            group *= 100
        elif word in ("thousand", "million", "billion") and group:
            total, group = total + group * SCALES[word], 0
        elif not (word == "and" and total + group and tokens[after - 1] in SCALES and is_followed):
            break
        after += 1
    return (None, position) if after == position else (Fraction(total + group), after)


def _fits(group: int, value: int) -> bool:
    """Whether a number word may follow within a group: `twenty` then `four`, `hundred` then anything below it."""
    return group % 100 == 0 or (group % 100 >= 20 and group % 10 == 0 and 0 < value < 10)
