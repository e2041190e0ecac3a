"""The authority bound of a whole pool: the lowest and highest accuracy of every rule, its price, and what roles change.

It needs only the pool, and what roles can change needs no gold answers. Source: ours.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import TypedDict

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.decision import DEFAULT_RULES
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.bounds import (
    answer_and_roles,
    answers_over_any,
    derivable,
    differ,
    ends_of,
    extreme_spans,
    roles_over_any,
    sways,
)
from eldgr_dspy.figures.distinct import Column, Units, counts_by, questions_in, text_key
from eldgr_dspy.figures.results.summary_fields import Bounds, Price
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.rule.authority_order import chains
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import naming_question
from eldgr_dspy.rule.named_judges import name_in
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.rules import is_own, require_no_judge
from eldgr_dspy.statistics import passing, proportion_upper_bound, questions_without_loss
from eldgr_dspy.words import ASKING_NOBODY, Role, Task

_EndsOfRules = tuple[tuple[str, tuple[bool, bool] | None], ...]
"""For each rule, whether its worst and its best outcome are right; None if unknown."""


class QuestionBounds(NamedTuple):
    """What the bounds need of a question with a gold answer; rules are without the names of judges."""

    silent: _EndsOfRules  # whether each rule is right under all judges, and under some; the other roles silent
    widest: _EndsOfRules  # also over all spans as repair, or all derivers
    losses: frozenset[str]  # rules that some judge or deriver makes wrong, the others silent, where majority is right


def question_bounds(
    rules: Iterable[str], case: Case, gold: Sequence[str], by_judge: Mapping[str, Sequence[str | None]] | None = None
) -> QuestionBounds:
    """Return the bounds of rules; `by_judge` has what each ships over all judges, where that is known already."""

    @cache
    def correct(answer: str | None) -> bool:
        return case.type.right(answer, gold)

    derives = case.type.way == "derivation"
    derivations = derivable(case, gold) if derives else []
    spans: list[str] | None = None
    silent, widest, losses = dict[str, tuple[bool, bool]](), dict[str, tuple[bool, bool] | None](), set[str]()
    for name in rules:
        rule = case.rule(name)
        ends = ends_of(by_judge[name] if by_judge else answers_over_any(rule, case), correct)
        silent[name] = ends
        if derives and name not in ASKING_NOBODY:
            ends = ends_of(answers_over_any(rule, case, derivations=derivations), correct)
        if correct(case.consensus) and not ends[0]:
            losses.add(name)
        has_bounds = True
        if is_own(name):
            has_bounds = roles_over_any(rule, case, derivations) <= {"judge", *(["deriver"] if derives else [])}
        elif name not in ASKING_NOBODY and case.type.enumerates_spans and "repairer" in answer_and_roles(rule, case)[1]:
            has_bounds = not case.settings.own
            if has_bounds:
                spans = extreme_spans(case, gold, correct) if spans is None else spans
                ends = ends_of(answers_over_any(rule, case, spans=spans), correct)
        widest[name] = ends if has_bounds else None
    return QuestionBounds(tuple(silent.items()), tuple(widest.items()), frozenset(losses))


def bounds_of(task: Task, rules: Sequence[str], units: Units[QuestionBounds], *, withheld: bool = False) -> Bounds:
    """Return `bounds`, `bounds_any_span`, `bounds_any_deriver` and `price` as `summary.json` has them."""
    kind, bounds = answer_type(task), questions_in(units)
    losses = counts_by(units, lambda unit: tuple(of.losses for of in unit))

    def percentages(rule: str, part: Callable[[QuestionBounds], _EndsOfRules]) -> list[float] | None:
        ends: Any = [dict(part(of))[name_in(rule)] for of in bounds]
        # If a question's certificates are withheld, nothing is known. Otherwise the bounds hold for every judge.
        if withheld or not bounds or None in ends:
            return None
        right = (sum(one[end] * times for one, times in zip(ends, bounds.values(), strict=True)) for end in (0, 1))
        return [100.0 * n / bounds.total() for n in right]

    widest = {rule: percentages(rule, lambda of: of.widest) for rule in rules}
    figures: Bounds = {
        "task": kind.name_in_files,
        "bounds": {rule: percentages(rule, lambda of: of.silent) for rule in rules},
        "bounds_any_span": widest if kind.enumerates_spans else dict.fromkeys(rules),
        "price": {rule: None if withheld else price_of(name_in(rule), losses) for rule in rules},
    }
    if kind.way == "derivation":
        figures["bounds_any_deriver"] = widest
    return figures


def price_of(rule: str, losses: Units[frozenset[str]]) -> Price | None:
    """Return the price of a rule: the most accuracy that any judge can cost against majority on new questions."""
    # Whether a question can be lost does not depend on an LM, so the upper bound of Clopper and Pearson on the share of
    # lost questions holds for all LMs. Copies of a question are lost once, if any of them is. Source: ours.
    n, count = sum(losses.values()), sum(times for unit, times in losses.items() if any(rule in one for one in unit))
    if not n:
        return None
    return {"lost": count, "of": n, "at_most": 0.0 if rule == "majority" else 100.0 * proportion_upper_bound(n, count)}


class Authority(Bounds):
    """The authority bound of a pool; `can_change` is in percent of the questions, see `sways`, and None if unknown."""

    n: int
    n_scored: int
    can_change: dict[str, dict[Role, float | None]]
    gives_up: list[str]  # the laws that the answer type gives up


def pool_authority(
    rows: Iterable[Row],
    task: Task,
    settings: Settings | None = None,
    rules: Sequence[str] = DEFAULT_RULES,
    pool: str = "",
) -> Authority:
    """Return the ends of each rule's accuracy on a pool over all judges and derivers, and what the roles can change."""
    for name in rules:
        require_no_judge(name, "rules")
    kind = answer_type(task)
    own = settings.own if settings and kind.way == "evidence" else None
    if own and own.consulted:
        raise ArgumentError(
            f"certificate={own.name!r} must be asked about each answer, and a bound asks nobody. Give it to eldgr "
            "evaluate, whose report has the bounds under the certificates that it gave."
        )
    swaying: tuple[Role, ...] = ("judge", kind.repairer)
    texts, bounds = list[int](), Column[QuestionBounds]()
    changes, opaque, n = Counter[tuple[str, Role]](), set[str](), 0
    for row in rows:
        case, n = Case(row.to_question(), settings), n + 1
        with naming_question(pool, row.id):
            ruling = {name: case.rule(name) for name in rules}
            by_judge = {name: answers_over_any(rule, case) for name, rule in ruling.items()}
            changes.update((name, "judge") for name, answers in by_judge.items() if differ(case, answers))
            if row.gold:
                texts.append(text_key(case.question.text))
                bounds.append(question_bounds(ruling, case, row.gold, by_judge))
            for name, rule in ruling.items():
                changes[name, kind.repairer] += not own and sways(rule, case, kind.repairer)
                beyond = is_own(name) and kind.repairer == "repairer" and roles_over_any(rule, case) - {"judge"}
                if beyond or (own and "repairer" in answer_and_roles(rule, case)[1]):
                    opaque.add(name)  # it asks more than a judge, or a repairer under a user's own certificate

    def share(name: str, role: Role) -> float | None:
        return 100.0 * changes[name, role] / n if n and (role == "judge" or name not in opaque) else None

    return {
        "n": n,
        "n_scored": len(bounds),
        **bounds_of(task, [*dict.fromkeys(rules)], bounds.units(np.array(texts, np.int64))),
        "can_change": {name: {role: share(name, role) for role in swaying} for name in rules},
        "gives_up": [*kind.gives_up],
    }


class Allowance(TypedDict):
    """The rules under which any judge costs at most a given number of points on new questions."""

    worst: float  # the most that a judge may lose, in percentage points
    chains: list[list[str]]  # rules in the order in which they were tested, from narrow to wide
    passing: list[str]  # the widest rule of each chain that passes; empty if only majority is left
    questions: int  # distinct scored ones
    needed: int  # of them, for a rule that loses none to pass


def allowance(prices: Mapping[str, Price | None], worst: float, task: Task = "retrieval") -> Allowance:
    """Return which rules pass; `majority`, which loses nothing against itself, is not tested.

    `worst` is the most that a judge may cost, in percentage points; `task` is as in `chains`.
    """
    if not 0 < worst < 100:
        raise ArgumentError(f"worst must be between 0 and 100 percentage points; got {worst!r}. Give 2 for 2 points.")
    groups, share = chains(prices, task), worst / 100
    losses = {rule: price["lost"] if price else 0 for rule, price in prices.items()}
    n = max((price["of"] for price in prices.values() if price), default=0)
    return {
        "worst": worst,
        "chains": groups,
        "passing": [chain[-1] for chain in passing(groups, losses, n, share) if chain],
        "questions": n,
        "needed": questions_without_loss(share, chains=len(groups)),
    }
