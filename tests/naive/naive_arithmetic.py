"""Exact values of expressions by Python's own parser: numbers become names, and what is left must be arithmetic."""

import ast
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

LONGEST, DEEPEST, BITS, EXPONENT, DIGITS = 256, 32, 512, 64, 150
CURRENCY = "[$£¥฿₠-\u20cf]"
NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?"
SIGNS = {"×": " * ", "·": " * ", "÷": " / ", "−": " - ", "–": " - ", "^": "**"}
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}


class UnreadableError(Exception):
    """The text is not an expression, or has no value."""


@dataclass
class Leaf:
    """A number as written, with its sign; a percentage is a number of hundredths."""

    figure: Fraction
    percent: bool

    @property
    def value(self) -> Fraction:
        return self.figure / 100 if self.percent else self.figure


@dataclass
class Tree:
    kind: str
    left: "Node"
    right: "Node"


@dataclass
class Negation:
    inner: "Node"


@dataclass
class Hundredth:
    inner: "Node"


Node = Leaf | Tree | Negation | Hundredth


def read(text: str) -> Node:
    """The tree of an expression."""
    if len(text) > LONGEST:
        raise UnreadableError(text)
    figures: list[Fraction] = []

    def name(result: re.Match[str]) -> str:
        if digits(result[0]) > DIGITS:
            raise UnreadableError(text)
        figures.append(Fraction(result[0].replace(",", "").removesuffix(".")))
        return f" n{len(figures) - 1} "

    source = ascii_of(text)
    if re.search(r"[^0-9.,eExX+\-*/%()\s]", source) or re.search(
        r"\*\s+\*|/\s+/|\d\s+\d|(?<![\d.,])0[xX][\da-fA-F]|%\s*%(?!\s*[\d.(])", source
    ):
        raise UnreadableError(text)
    source = re.sub(r"(?<=[\d.)%])\s*[xX]\s*(?=[-+\d.(])", "*", source)
    if depth(source) > DEEPEST:
        raise UnreadableError(text)
    source = re.sub(NUMBER, name, source)
    source = re.sub(r"%(?!\s*[n(])", ".percent", source)
    try:
        return tree(ast.parse(source.strip(), mode="eval").body, figures)
    except (SyntaxError, ValueError, RecursionError):
        raise UnreadableError(text) from None


def digits(number: str) -> int:
    """How many digits a number has, written out."""
    mantissa, _, power = number.replace(",", "").lower().partition("e")
    places = len(mantissa.partition(".")[2])
    return len(mantissa.replace(".", "")) + abs(int(power or 0) - places)


def ascii_of(text: str) -> str:
    for sign, replacement in SIGNS.items():
        text = text.replace(sign, replacement)
    text = "".join(str(unicodedata.digit(c)) if unicodedata.category(c) == "Nd" else c for c in text)
    if len(set(re.findall(CURRENCY, text))) > 1:
        raise UnreadableError(text)
    return re.sub(CURRENCY, " ", text)


def depth(source: str) -> int:
    depths = [source[:at].count("(") - source[:at].count(")") for at in range(len(source) + 1)]
    return max(depths)


def tree(node: ast.AST, figures: list[Fraction]) -> Node:
    match node:
        case ast.Name(id=name) if name.startswith("n"):
            return Leaf(figures[int(name[1:])], False)
        case ast.Attribute(value=inner, attr="percent"):
            below = tree(inner, figures)
            return Leaf(below.figure, True) if isinstance(below, Leaf) else Hundredth(below)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            below = tree(inner, figures)
            return Leaf(-below.figure, below.percent) if isinstance(below, Leaf) else Negation(below)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return tree(inner, figures)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            return Tree(OPERATORS[type(operator)], tree(left, figures), tree(right, figures))
    raise UnreadableError(ast.dump(node))


def value(node: Node) -> Fraction:
    match node:
        case Leaf():
            return limit(node.value)
        case Negation(inner):
            return -value(inner)
        case Hundredth(inner):
            return limit(value(inner) / 100)
        case Tree(kind, left, right):
            return limit(operate(kind, value(left), value(right)))


def limit(number: Fraction) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > BITS:
        raise UnreadableError("too big")
    return number


def operate(kind: str, left: Fraction, right: Fraction) -> Fraction:
    if kind == "**":
        if right.denominator != 1 or abs(right) > EXPONENT or (left == 0 and right <= 0):
            raise UnreadableError("no power")
        return Fraction(left ** int(right))
    operations: Mapping[str, Callable[[], Fraction]] = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
        "//": lambda: Fraction(left // right),
        "%": lambda: left % right,
    }
    try:
        return operations[kind]()
    except ZeroDivisionError:
        raise UnreadableError("division by zero") from None


def leaves(node: Node) -> list[Leaf]:
    """The numbers as written, from left to right."""
    match node:
        case Leaf():
            return [node]
        case Negation(inner) | Hundredth(inner):
            return leaves(inner)
        case Tree(_, left, right):
            return leaves(left) + leaves(right)


def trees(node: Node) -> list[Tree]:
    """The binary operations, those below before those above."""
    match node:
        case Leaf():
            return []
        case Negation(inner) | Hundredth(inner):
            return trees(inner)
        case Tree(_, left, right):
            return [*trees(left), *trees(right), node]
