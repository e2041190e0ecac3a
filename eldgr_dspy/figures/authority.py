"""The authority bound of a whole pool: the lowest and highest accuracy of every rule, its price, and what roles change.

It needs only the pool: no LM, no recording and no run. Without gold answers, accuracy is unknown, but not the number of
questions on which a judge or a repairer can change what ships. Percentages are numbers from 0 to 100; an undefined
value is None, never 0. Source: ours.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from typing_extensions import TypedDict

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.decision import DEFAULT_RULES, Rule
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
from eldgr_dspy.rule.named_judges import unlabelled
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.rules import is_own, require_no_judge
from eldgr_dspy.statistics import passing, proportion_upper_bound, questions_without_loss
from eldgr_dspy.words import ASKING_NOBODY, Role, Task


class QuestionBounds(NamedTuple):
    """What the bounds need of a question with a gold answer; rules are without the names of judges.

    Attributes:
        silent: Whether each rule is right under all judges, and under some; the other roles silent.
        widest: The same also over all spans of the evidence as repair, or over all derivers.
        lost: The rules under which majority is right, and some judge or deriver makes what ships wrong.
        uncovered: The rules whose `widest` is not known.
    """

    silent: tuple[tuple[bool, bool], ...]
    widest: tuple[tuple[bool, bool], ...]
    lost: frozenset[str]
    uncovered: frozenset[str]


def question_bounds(
    rules: Iterable[str], case: Case, gold: Sequence[str], judged: Mapping[str, Sequence[str | None]] | None = None
) -> QuestionBounds:
    """Return the bounds of rules on a question.

    Args:
        rules: Their names, without those of judges.
        case: The question. gold: its gold answers, at least one.
        judged: For each rule the answers that it ships over all judges, where they are known already.
    """

    @cache
    def correct(answer: str | None) -> bool:
        return case.type.right(answer, gold)

    @cache
    def spans() -> list[str]:
        return extreme_spans(case, gold, correct)

    derives = case.type.way == "derivation"
    derivations = derivable(case, gold) if derives else []
    silent, widest, lost, uncovered = list[tuple[bool, bool]](), list[tuple[bool, bool]](), set[str](), set[str]()
    for name in rules:
        rule = case.rule(name)
        ends = ends_of(judged[name] if judged else answers_over_any(rule, case), correct)
        silent.append(ends)
        if derives and name not in ASKING_NOBODY:
            ends = ends_of(answers_over_any(rule, case, derivations=derivations), correct)
        if correct(case.consensus) and not ends[0]:
            lost.add(name)
        if is_own(name):
            if roles_over_any(rule, case, derivations) - {"judge", *(["deriver"] if derives else [])}:
                uncovered.add(name)
        elif name not in ASKING_NOBODY and case.type.enumerates_spans and _asks_repairer(rule, case):
            if case.settings.own:
                uncovered.add(name)
            else:
                ends = ends_of(answers_over_any(rule, case, spans=spans()), correct)
        widest.append(ends)
    return QuestionBounds(tuple(silent), tuple(widest), frozenset(lost), frozenset(uncovered))


def _asks_repairer(rule: Rule, case: Case) -> bool:
    return "repairer" in answer_and_roles(rule, case)[1]


def bounds_of(
    task: Task,
    rules: Sequence[str],
    units: Units[QuestionBounds],
    *,
    without: Collection[str] = (),
    withheld: bool = False,
) -> Bounds:
    """Return `bounds`, `bounds_any_span`, `bounds_any_deriver` and `price` as `summary.json` has them.

    Args:
        task: The pool's. rules: their names, with those of judges; the bounds hold for every judge.
        units: The bounds of its questions with a gold answer, those of `rules` without the names of judges. Copies of
            a question are lost once, if any of them is.
        without: Rules that are left out.
        withheld: Whether the certificates of a question are not known, so that nothing is.
    """
    kind, bounds = answer_type(task), questions_in(units)
    places = {name: place for place, name in enumerate(dict.fromkeys(map(unlabelled, rules)))}
    uncovered = frozenset[str]().union(*(of.uncovered for of in bounds))
    lost = counts_by(units, lambda unit: tuple(of.lost for of in unit))
    rules = [rule for rule in rules if rule not in without]

    def percentages(rule: str, part: Callable[[QuestionBounds], Sequence[tuple[bool, bool]]]) -> list[float] | None:
        if not bounds or withheld:
            return None
        place, n = places[unlabelled(rule)], bounds.total()
        return [100.0 * sum(part(of)[place][end] * times for of, times in bounds.items()) / n for end in (0, 1)]

    widest = {
        rule: None if unlabelled(rule) in uncovered else percentages(rule, lambda of: of.widest) for rule in rules
    }
    figures: Bounds = {
        "task": kind.name_in_files,
        "bounds": {rule: percentages(rule, lambda of: of.silent) for rule in rules},
        "bounds_any_span": widest if kind.enumerates_spans else dict.fromkeys(rules),
        "price": {rule: None if withheld else price_of(unlabelled(rule), lost) for rule in rules},
    }
    if kind.way == "derivation":
        figures["bounds_any_deriver"] = widest
    return figures


def price_of(rule: str, lost: Units[frozenset[str]]) -> Price | None:
    """Return the price of a rule: the most accuracy that any judge can cost against majority on new questions.

    Where a derivation certifies, it is the most that any judge and any deriver can cost together. A question is lost
    under a rule if majority is right on it and some of them make the rule ship a wrong answer, while the other roles
    abstain. That depends on the question, its candidates and its evidence, but not on an LM. So an upper bound on the
    share of lost questions bounds what any LM loses against majority on questions that are drawn alike, even one that
    was chosen after the pool was seen. Right means exact match, or numeric equality, with ties to the earliest
    candidate. The price of `majority` is 0, because majority is what the others are compared with. None without a
    scored question. Source: ours; the bound on the share is that of Clopper and Pearson.
    """
    n, count = sum(lost.values()), sum(times for unit, times in lost.items() if any(rule in one for one in unit))
    at_most = 0.0 if rule == "majority" else 100.0 * proportion_upper_bound(n, count) if n else None
    return {"lost": count, "of": n, "at_most": at_most} if n and at_most is not None else None


# -- a pool without a run ---------------------------------------------------------------------------------------------


class Authority(Bounds):
    """The authority bound of a pool.

    Attributes:
        can_change: For each rule and role the percentage of questions on which it can change the class of answers that
            ships, see `bounds.sways`; None without questions. For the repairer also None if a user's own rule asks
            another role than the judge, or if a rule asks the repairer under a user's own certificate.
        gives_up: The laws that the answer type gives up.
    """

    n: int
    n_scored: int
    can_change: dict[str, dict[Role, float | None]]
    gives_up: list[str]


def pool_authority(
    rows: Iterable[Row],
    task: Task,
    settings: Settings | None = None,
    rules: Sequence[str] = DEFAULT_RULES,
    pool: str = "",
) -> Authority:
    """Return the ends of each rule's accuracy on a pool over all judges and derivers, and what the roles can change.

    Args:
        rows: The pool's rows, taken one by one. task: Its task.
        settings: Of the rule; `certificate`, `derivation` and `homogeneous` matter here.
        rules: Their names, as `eldgr_dspy.rule.rules` takes them.
        pool: Its name, for messages.

    Raises:
        ArgumentError: A rule names a judge, or the settings have a certificate that must be asked. CertificateError: it
            failed on a question.
    """
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
    changed, unknown, n = Counter[tuple[str, Role]](), set[str](), 0
    for row in rows:
        case, n = Case(row.to_question(), settings), n + 1
        with naming_question(pool, row.id):
            ruling = {name: case.rule(name) for name in rules}
            judged = {name: answers_over_any(rule, case) for name, rule in ruling.items()}
            changed.update((name, "judge") for name, answers in judged.items() if differ(case, answers))
            if row.gold:
                texts.append(text_key(case.question.text))
                bounds.append(question_bounds(ruling, case, row.gold, judged))
            for name, rule in ruling.items():
                changed[name, kind.repairer] += not own and sways(rule, case, kind.repairer)
                beyond = is_own(name) and kind.repairer == "repairer" and roles_over_any(rule, case) - {"judge"}
                if beyond or (own and _asks_repairer(rule, case)):
                    unknown.add(name)

    def share(name: str, role: Role) -> float | None:
        return 100.0 * changed[name, role] / n if n and (role == "judge" or name not in unknown) else None

    ends = bounds_of(task, [*dict.fromkeys(rules)], bounds.units(np.array(texts, np.int64)))
    return {
        "n": n,
        "n_scored": len(bounds),
        **ends,
        "can_change": {name: {role: share(name, role) for role in swaying} for name in rules},
        "gives_up": [*kind.gives_up],
    }


# -- which rules pass -------------------------------------------------------------------------------------------------


class Allowed(TypedDict):
    """The rules under which any judge costs at most a given number of points on new questions.

    Attributes:
        worst: The most that a judge may lose, in percentage points.
        chains: The rules in the order in which they were tested, from narrow to wide.
        passing: The widest rule of each chain that passes; empty if none does, so that only majority is left.
        questions: The distinct scored questions. needed: how many it takes for a rule that loses none of them to pass.
    """

    worst: float
    chains: list[list[str]]
    passing: list[str]
    questions: int
    needed: int


def allowed(prices: Mapping[str, Price | None], worst: float, task: Task = "retrieval") -> Allowed:
    """Return which rules pass; `majority`, which loses nothing against itself, is not tested.

    Args:
        prices: The price of each rule, see `price_of`.
        worst: In percentage points, between 0 and 100.
        task: `arithmetic` where a derivation certifies, else `retrieval`.

    Raises:
        ArgumentError: `worst` is out of range.
    """
    if not 0 < worst < 100:
        raise ArgumentError(f"worst must be between 0 and 100 percentage points; got {worst!r}. Give 2 for 2 points.")
    tested, share = chains(prices, task), worst / 100
    lost = {rule: price["lost"] if price else 0 for rule, price in prices.items()}
    n = max((price["of"] for price in prices.values() if price), default=0)
    return {
        "worst": worst,
        "chains": tested,
        "passing": [chain[-1] for chain in passing(tested, lost, n, share) if chain],
        "questions": n,
        "needed": questions_without_loss(share, chains=len(tested)),
    }
