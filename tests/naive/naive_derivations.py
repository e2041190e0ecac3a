"""Whether a derivation is a certificate, the obvious way: level after level, every number looked up in a list."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from eldgr_dspy.derivation.reach import reach  # compared with the obvious way in tests/rule/test_reach.py
from eldgr_dspy.rule.consultations import Derivation, Step
from tests.naive.naive_answers import number
from tests.naive.naive_arithmetic import (
    Hundredth,
    Leaf,
    Negation,
    Node,
    Tree,
    UnreadableError,
    leaves,
    read,
    trees,
    value,
)
from tests.naive.naive_tracing import question_numbers, traceable

OTHERS = (Fraction(7919), Fraction(-6841, 13), Fraction(104_729, 17))
Line = tuple[list[Node], Fraction]
"""The sides of a step, and the value that they share."""


def check(derivation: Derivation, question: str, level: str) -> bool:
    return level in levels(derivation, question)


def levels(derivation: Derivation, question: str) -> list[str]:
    """The levels that a derivation passes; each asks all that the one before asks."""
    answer = amount(derivation.answer)
    if answer is None or not derivation.check.strip():
        return []
    names = ["stated"]
    try:
        lines = execute(derivation.steps)
    except UnreadableError:
        return names
    if not lines or lines[-1][1] != answer or is_carried(lines, answer):
        return names
    names.append("chained")
    lines = trace(lines, traceable(question))
    if not draws_on(lines, answer, question_numbers(question)):
        return names
    names.append("traced")
    if checks(derivation.check, lines, traceable(question), answer):
        names.append("executed")
        if answer == 0 or answer in reach(question):
            names.append("bounded")
            if any(amount(one.answer) == answer and check(one, question, "bounded") for one in derivation.others):
                names.append("agreed")
    return names


def amount(text: str) -> Fraction | None:
    """A text as a number; a percentage is a number of hundredths."""
    result = number(text)
    return None if result is None else result[0] / 100 if result[1] else result[0]


def execute(steps: Sequence[Step]) -> list[Line]:
    """The steps, each of which has exactly its stated value on every side of its equals signs."""
    lines: list[Line] = []
    for step in steps:
        result = amount(step.value)
        sides = [read(side) for side in step.expression.split("=")]
        if result is None or len(step.expression) > 256 or any(value(side) != result for side in sides):
            raise UnreadableError(step.expression)
        lines.append(([one_number(side, [v for _, v in lines]) for side in sides], result))
    return lines


def one_number(node: Node, sources: Collection[Fraction]) -> Node:
    """The tree with a division of two whole numbers as one number, where it writes a known fraction."""
    match node:
        case Tree("/", Tree("*", below, upper), lower) if is_fraction(upper, lower, sources):
            return Tree("*", one_number(below, sources), Leaf(value(Tree("/", upper, lower)), False))
        case Tree("/", upper, lower) if is_fraction(upper, lower, sources):
            return Leaf(value(node), False)
        case Tree(kind, left, right):
            return Tree(kind, one_number(left, sources), one_number(right, sources))
        case Negation(inner):
            return Negation(one_number(inner, sources))
        case Hundredth(inner):
            return Hundredth(one_number(inner, sources))
        case _:
            return node


def is_fraction(upper: Node, lower: Node, sources: Collection[Fraction]) -> bool:
    if not (isinstance(upper, Leaf) and isinstance(lower, Leaf)) or upper.percent or lower.percent or not lower.figure:
        return False
    whole = upper.figure.denominator == lower.figure.denominator == 1
    result = upper.figure / lower.figure
    return whole and result.denominator != 1 and result in sources


def replace(node: Node, swaps: Mapping[Fraction, Fraction]) -> Node:
    """The tree with other numbers in the place of some, negated or as percentages too."""
    match node:
        case Leaf():
            for scale in (1, -1, 100, -100) if node.percent else (1, -1):
                if node.value * scale in swaps:
                    return Leaf(swaps[node.value * scale] / scale, False)
            return node
        case Negation(inner):
            return Negation(replace(inner, swaps))
        case Hundredth(inner):
            return Hundredth(replace(inner, swaps))
        case Tree(kind, left, right):
            return Tree(kind, replace(left, swaps), replace(right, swaps))


def is_carried(lines: Sequence[Line], answer: Fraction) -> bool:
    """Whether another number in the answer's place would come out as well."""
    return all(comes_out(lines, answer, other) for other in OTHERS)


def comes_out(lines: Sequence[Line], answer: Fraction, other: Fraction) -> bool:
    swaps = {answer: other}
    for sides, result in lines:
        try:
            results = {value(replace(side, swaps)) for side in sides}
        except UnreadableError:
            return False
        if len(results) != 1:
            return False
        swaps[result] = results.pop()
    return swaps[answer] == other


def trace(lines: Sequence[Line], sources: Collection[Fraction]) -> list[Line]:
    """The steps, read so that every number is known from the question, its words or an earlier step; or nothing."""
    numbers = set(sources)
    out: list[Line] = []
    for sides, result in lines:
        readings: list[Node] = []
        for side in sides:  # a later side may use what the first has computed
            reading = next((read for read in (side, one_number(side, numbers)) if traces(read, numbers)), None)
            if reading is None:
                return []
            readings.append(reading)
            numbers.add(result)
        out.append((readings, result))
    return out


def traces(node: Node, numbers: Collection[Fraction]) -> bool:
    return all(leaf_traces(leaf, numbers) for leaf in leaves(node))


def leaf_traces(leaf: Leaf, numbers: Collection[Fraction]) -> bool:
    readings = [leaf.value, leaf.figure] if leaf.percent else [leaf.value]
    return any(reading in numbers or -reading in numbers for reading in readings)


def draws_on(lines: Sequence[Line], answer: Fraction, numbers: Collection[Fraction]) -> bool:
    """Whether the answer was computed from at least one of the numbers, in its step or in those that fed it."""
    needs, hit = {answer}, False
    for at, (sides, result) in reversed([*enumerate(lines)]):
        if result in needs:
            earlier = {abs(value) for _, value in lines[:at]}  # what a step computes comes from its numbers
            for leaf in [leaf for side in sides for leaf in leaves(side)]:
                hit = hit or (abs(leaf.value) not in earlier and leaf_traces(leaf, numbers))
                needs |= {leaf.value, -leaf.value}
    return hit


def checks(text: str, lines: Sequence[Line], sources: Collection[Fraction], answer: Fraction) -> bool:
    """Whether an equation checks the answer in another way than the steps."""
    try:
        sides = [read(side) for side in text.split("=")] if len(text) <= 256 else []
        true = len(sides) == 2 and len({value(side) for side in sides}) == 1
    except UnreadableError:
        return False
    if not true:
        return False
    read_so = reread(sides, lines, known_apart(lines, sources, answer), answer)
    if read_so is None:
        return False
    sides = read_so
    if any(holds_for(sides, answer, other) for other in (*OTHERS, 10 * answer + 7, answer + 1, answer - 1)):
        return False
    return not restates(sides, lines, answer) and another_way(sides, lines, answer)


def reread(
    sides: Sequence[Node], lines: Sequence[Line], apart: Collection[Fraction], answer: Fraction
) -> list[Node] | None:
    """The sides in the first reading of `10/3` that holds the answer and nothing unknown, None without one."""
    values = [result for _, result in lines if result != answer]
    itself = [answer, -answer]
    for fractions in (values, [], [*values, *itself], [*apart, *itself]):
        reading = [one_number(side, fractions) for side in sides]
        numbers = [leaf for side in reading for leaf in leaves(side)]
        answers = [leaf for leaf in numbers if is_answer(leaf, answer)]
        if answers and all(leaf in answers or leaf_traces(leaf, apart) for leaf in numbers):
            return reading
    return None


def is_answer(leaf: Leaf, answer: Fraction) -> bool:
    return leaf_traces(leaf, [answer])


def known_apart(lines: Sequence[Line], sources: Collection[Fraction], answer: Fraction) -> set[Fraction]:
    """The numbers of the question, and those of the steps that were computed from such alone and are not the answer."""
    numbers = set(sources)
    for sides, result in lines:
        if abs(result) != abs(answer) and traces(sides[0], numbers):
            numbers.add(result)
    return numbers


def holds_for(sides: Sequence[Node], answer: Fraction, other: Fraction) -> bool:
    try:
        return len({value(replace(side, {answer: other})) for side in sides}) == 1
    except UnreadableError:
        return False


Numbers = Counter[Fraction]


def origins(lines: Sequence[Line], answer: Fraction) -> tuple[dict[Fraction, Numbers], list[Numbers]]:
    """What each result on the way was computed from, back to what no step gives; and each way to the answer."""
    behind: dict[Fraction, Numbers] = {}
    ways: list[Numbers] = []
    for node in [node for sides, _ in lines for side in sides for node in (*trees(side), side)]:
        if not trees(node):
            continue
        way = Counter[Fraction]()
        for leaf in leaves(node):
            way += behind.get(abs(leaf.value)) or Counter([abs(leaf.figure)])
        result = abs(value(node))
        behind[result] = behind.get(result, Counter()) | way
        if result == abs(answer):
            ways.append(way)
    return behind, ways


def restates(sides: Sequence[Node], lines: Sequence[Line], answer: Fraction) -> bool:
    """Whether a part without the answer, or the side beside one that holds it, draws on all that the answer does."""
    behind, ways = origins(lines, answer)
    by_sign = led_back(sides, lines, answer)

    def has_answer(node: Node) -> bool:
        return any(answer in (leaf.value, leaf.figure) for leaf in leaves(node)) if by_sign else holds(node, answer)

    parts: list[Node] = [tree for side in sides for tree in trees(side) if not has_answer(tree)]
    parts += [tree for side, other in (sides, sides[::-1]) if has_answer(other) for tree in trees(side)]
    return any(numbers_behind(part, behind, answer) >= way for part in parts for way in ways)


def led_back(sides: Sequence[Node], lines: Sequence[Line], answer: Fraction) -> bool:
    """Whether the answer's negative is a number that the steps began with, and the check holds whatever it is."""
    try:
        for other in OTHERS:
            swaps = {-answer: other}
            for line, result in lines:
                outcome = [value(replace(side, swaps)) for side in line if trees(side)] or [
                    value(replace(line[0], swaps))
                ]
                swaps[result] = next((one for one in outcome if one != other), other)
            if swaps[answer] == answer or len({value(replace(side, swaps_of(swaps, answer))) for side in sides}) > 1:
                return False
    except UnreadableError:
        return False
    return True


def swaps_of(swaps: Mapping[Fraction, Fraction], answer: Fraction) -> dict[Fraction, Fraction]:
    return {one: swaps[one] for one in (answer, -answer)}


def numbers_behind(part: Node, behind: Mapping[Fraction, Numbers], answer: Fraction) -> Numbers:
    """The numbers of a part, and what they were computed from; the answer stands for itself alone."""
    out = Counter[Fraction]()
    for leaf in leaves(part):
        out.update({abs(leaf.value), abs(leaf.figure)})
        if abs(leaf.value) != abs(answer):
            out += behind.get(abs(leaf.value), Counter())
    return out


def holds(node: Node, answer: Fraction) -> bool:
    return any(is_answer(leaf, answer) for leaf in leaves(node))


Key = tuple[str, tuple[Fraction, ...]]


def key(tree: Tree) -> Key:
    """An operation, apart from the order in which a sum or a product is written."""
    pair = (value(tree.left), value(tree.right))
    return tree.kind, tuple(sorted(pair)) if tree.kind in "+*" else pair


def idle(tree: Tree) -> bool:
    """Whether an operation is true of every number: with a zero, or a one that changes nothing."""
    left, right = value(tree.left), value(tree.right)
    if tree.kind in "+-":
        return 0 in (left, right)
    if tree.kind == "%":
        return left % right == left
    return 0 in (left, right) or right == 1 or (left == 1 and tree.kind != "/")


def undoes(tree: Tree, steps: Sequence[Tree]) -> bool:
    """Whether `5 + 0` undoes a step 5 - 5 = 0, or `5 * 1` a step 5/5 = 1."""
    inverse = "-" if tree.kind in "+-" else "/"
    return any(
        key(step) == (inverse, (number, number))
        for step in steps
        for number in (value(tree.left), value(tree.right))
        if number != (0 if inverse == "-" else 1)
    )


def gives(tree: Tree, answer: Fraction) -> bool:
    return abs(value(tree)) == abs(answer) and not idle(tree)


def depends(tree: Tree, answer: Fraction) -> bool:
    """Whether another answer changes what an operation works on."""
    try:
        return any(value(replace(side, {answer: 10 * answer + 7})) != value(side) for side in (tree.left, tree.right))
    except UnreadableError:
        return True


def another_way(sides: Sequence[Node], lines: Sequence[Line], answer: Fraction) -> bool:
    """Whether what computes the answer anew does so by other operators, or else the answer enters what no step does."""
    mine = [tree for side in sides for tree in trees(side)]
    steps = [tree for line, _ in lines for side in line for tree in trees(side)]
    anew = {tree.kind for tree in mine if not depends(tree, answer) and gives(tree, answer)}
    old = {tree.kind for tree in steps if gives(tree, answer)}
    if anew:
        return anew.isdisjoint(old)
    return any(
        depends(tree, answer) and key(tree) not in map(key, steps) and (not idle(tree) or undoes(tree, steps))
        for tree in mine
    )
