"""Print which derivations each level keeps: `python -m benchmarks.derivation_levels [POOLS_DIR]`.

The chains are candidates of two pools, read as derivations: gsm8k-openai4 annotates its arithmetic as
`<<expression=value>>`, and svamp-codex8 holds programs of assignments. Neither gives a check, so each chain gets one
that works back from its answer, by undoing the last step. The levels were chosen on gsm8k-openai4 alone.

The attacker (`benchmarks.forging`) tries 1,000 wrong answers on each of 50 questions, at even distances in the pool:
the integers from -50 on, except the right answer. At `bounded` no attacker can certify a value out of reach. So the
number of the 1,000 within reach bounds every attacker; that bound is printed for all questions of the pool.

POOLS_DIR defaults to ELDGR_POOLS, or else to the folder of pools next to the checkout. The attacks take over half an
hour.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, islice, takewhile
from pathlib import Path
from statistics import quantiles

from benchmarks._timing import pools_dir
from benchmarks.forging import forge
from eldgr_dspy.answer_types.answers import numeric_equal
from eldgr_dspy.derivation.arithmetic import evaluate
from eldgr_dspy.derivation.reach import FEW, NEAR, reach
from eldgr_dspy.errors import UnexecutableError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.pools import open_pool
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.derivations import check_derivation
from eldgr_dspy.text.numbers import parse_number
from eldgr_dspy.words import STRICTNESS, Strictness

N_ATTACKS = 50
LOWEST, WRONG = -50, 1_000
CURVE = ((1, FEW), (2, FEW), (2, 500), (NEAR, 100), (NEAR, FEW), (NEAR, 500))
_ANNOTATION = re.compile(r"<<([^<>]*)=([^<>=]*)>>")
_ASSIGNMENT = re.compile(r"^(\w+) = (.+)$", re.MULTILINE)
_INVERSE = {"+": "-", "-": "+", "*": "/", "/": "*"}


@dataclass(frozen=True)
class Chain:
    """A candidate as a derivation, how many levels it passes, and whether it is right."""

    question: str
    derivation: Derivation
    levels: int
    right: bool


def read_annotations(text: str) -> tuple[Step, ...]:
    """Return the annotated equations of a text as steps."""
    return tuple(Step(*parts) for parts in _ANNOTATION.findall(text))


def read_assignments(program: str) -> tuple[Step, ...]:
    """Return the assignments of a program that compute something as steps, with values in place of names."""
    values: dict[str, str] = {}
    steps: list[Step] = []
    for name, source in _ASSIGNMENT.findall(program):
        expression = re.sub(r"[A-Za-z_]\w*", lambda match: values.get(match[0], match[0]), source.split("#")[0].strip())
        try:
            value = str(evaluate(expression))
        except UnexecutableError:
            return ()
        values[name] = f"({value})" if "/" in value or value.startswith("-") else value
        if re.search(r"[^-][-+*/%]", expression):
            steps.append(Step(expression, value))
    return tuple(steps)


POOLS = {"gsm8k-openai4": read_annotations, "svamp-codex8": read_assignments}


def derivation_of(steps: Sequence[Step], answer: str, question: str) -> Derivation:
    """Return the steps as a derivation, with the first check that passes of those that undo the last step."""
    plain = Derivation(tuple(steps), answer, "none")
    for check in undo(steps[-1].expression, answer) if steps else ():
        candidate = Derivation(plain.steps, answer, check)
        if check_derivation(candidate, question, "executed").passed:
            return candidate
    return plain


def undo(expression: str, answer: str) -> Iterator[str]:
    """Yield equations that lead from the answer back to one side of an operator: 24 - 6 = 18 for 18+6."""
    number = parse_number(answer)
    shown_answer = f"({number.value})" if number else answer
    for place, sign in enumerate(expression):
        left, right = expression[:place], expression[place + 1 :]
        if sign in _INVERSE and left.strip():
            yield f"{shown_answer} {_INVERSE[sign]} ({right}) = {left}"
            if sign in "+*":
                yield f"{shown_answer} {_INVERSE[sign]} ({left}) = {right}"
            else:
                yield f"({left}) {sign} {shown_answer} = {right}"


def chains_of(rows: Iterable[Row], steps_in: Callable[[str], tuple[Step, ...]]) -> list[Chain]:
    chains: list[Chain] = []
    for row in rows:
        for candidate in row.candidates:
            steps = steps_in(candidate.text)
            if steps:
                derivation = derivation_of(steps, candidate.answer or "", row.question)
                passes = (check_derivation(derivation, row.question, level).passed for level in STRICTNESS)
                n_levels = sum(takewhile(bool, passes))
                chains.append(Chain(row.question, derivation, n_levels, numeric_equal(candidate.answer, row.gold)))
    return chains


def wrong_answers(right: Fraction | None) -> list[int]:
    """Return the 1,000 integers from -50 on, without the right answer."""
    return list(islice((answer for answer in count(LOWEST) if answer != right), WRONG))


def count_forgeries(row: Row) -> dict[Strictness, int]:
    """Return for each level how many wrong answers the attacker certifies; a level includes all levels before it."""
    rest = wrong_answers(_gold(row))
    counts: dict[Strictness, int] = {}
    for level in reversed(STRICTNESS):
        answers = [answer for answer in rest if level != "bounded" or answer == 0 or answer in reach(row.question)]
        forgeries = {answer for answer in answers if forge(row.question, answer, level)}
        rest = [answer for answer in rest if answer not in forgeries]
        counts[level] = WRONG - len(rest)
    return counts


def within_reach(row: Row, near: int = NEAR, few: int = FEW) -> int:
    """Return how many wrong answers are within reach, which no attacker exceeds."""
    numbers = reach(row.question, near, few) | {0}
    return sum(answer in numbers for answer in wrong_answers(_gold(row)))


def main(folder: Path) -> None:
    for name in POOLS:
        rows = list(open_pool(folder / f"{name}.jsonl.gz").rows())
        chains = chains_of(rows, POOLS[name])
        print_levels(name, chains)
        targets = rows[:: len(rows) // N_ATTACKS][:N_ATTACKS]
        attacks = [count_forgeries(row) for row in targets]
        for level in STRICTNESS:
            print(f"  {level:8} attacker, {N_ATTACKS} questions: {_spread(attack[level] for attack in attacks)}")
        print(f"  bounded  within reach, the same questions: {_spread(map(within_reach, targets))}")
        _print_curve(rows, [chain for chain in chains if chain.right and chain.levels > STRICTNESS.index("executed")])


def print_levels(name: str, chains: Sequence[Chain]) -> None:
    """Print how many chains of a pool pass each level, and how many of those are right."""
    right = sum(chain.right for chain in chains)
    print(f"{name}: {len(chains):,} chains, {right:,} of them right")
    for place, level in enumerate(STRICTNESS, start=1):
        rights = [chain.right for chain in chains if chain.levels >= place]
        print(
            f"  {level:8} {len(rights):>5,} pass, {sum(rights):>5,} of them right "
            f"({100 * sum(rights) / max(1, len(rights)):.1f} %): {100 * sum(rights) / right:.1f} % of the right ones"
        )


def _print_curve(rows: Sequence[Row], right: Sequence[Chain]) -> None:
    """Print, for several limits, how many right chains that pass `executed` are kept, and what is within reach."""
    answers = [(chain.question, check_derivation(chain.derivation, "", "stated").answer) for chain in right]
    for near, few in CURVE:
        n_near = sum(answer == 0 or answer in reach(question, near, few) for question, answer in answers)
        golds = sum(_gold(row) == 0 or _gold(row) in reach(row.question, near, few) for row in rows)
        print(
            f"  NEAR={near} FEW={few:<4} keeps {n_near:,} of {len(right):,} ({100 * n_near / len(right):.1f} %); "
            f"right answers within reach {100 * golds / len(rows):.1f} %; "
            f"wrong ones {_spread(within_reach(row, near, few) for row in rows)}"
        )


def _gold(row: Row) -> Fraction | None:
    number = parse_number(row.gold[0])
    return number.value if number else None


def _spread(figures: Iterable[int]) -> str:
    values = sorted(figures)
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return f"quartiles {low:g}, {middle:g}, {high:g}; most {values[-1]}"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else pools_dir())
