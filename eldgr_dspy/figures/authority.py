"""The authority bound of a whole pool: the lowest and highest accuracy of every rule, and what roles can change.

It needs only the pool: no LM, no recording and no run. Without gold answers, accuracy is unknown, but not the number of
questions on which a judge or a repairer can change what ships. Percentages are numbers from 0 to 100; an undefined
value is None, never 0. Source: ours.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import NotRequired

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.cases import Case
from eldgr_dspy.certifying import naming_question
from eldgr_dspy.decision import DEFAULT_RULES
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.bounds import (
    answers_over_derivers,
    answers_over_judges,
    asked_of_any,
    asks,
    derivable,
    differ,
    ends_of,
    extreme_spans,
    interval,
    sways,
)
from eldgr_dspy.figures.distinct import Distinct, Units
from eldgr_dspy.figures.measured import Measured, Replies
from eldgr_dspy.figures.price import prices_of
from eldgr_dspy.figures.results.summary import Priced
from eldgr_dspy.named_judges import unlabelled
from eldgr_dspy.questions import Settings
from eldgr_dspy.rows import Row
from eldgr_dspy.rules import is_own, require_no_judge
from eldgr_dspy.words import ASKING_NOBODY, Role, Task


class Authority(Priced):
    """The authority bound of a pool.

    Attributes:
        can_change: For each rule and role the percentage of questions on which it can change the class of answers that
            ships, see `bounds.sways`; None without questions. For the repairer also None if a user's own rule asks
            another role than the judge, or if a rule asks the repairer under a user's own certificate.
        measured: The accuracy of each rule under each recorded judge, see `figures.measured`.
        gives_up: The laws that the answer type gives up, if it gives up any.
    """

    n: int
    n_scored: int
    can_change: dict[str, dict[Role, float | None]]
    measured: dict[str, float | None]
    gives_up: NotRequired[list[str]]


class PoolBounds:
    """The bounds of the rules on one pool, taken question by question."""

    def __init__(self, task: Task, rules: Iterable[str]) -> None:
        self._task = task
        self.n_scored = 0
        self._names = [*rules]  # with judges' names; the bounds hold for every judge, so they are kept without
        self._silent: dict[str, list[int]] = {unlabelled(name): [0, 0] for name in self._names}
        self._widest: dict[str, list[int]] = {name: [0, 0] for name in self._silent}
        self._not_covered: set[str] = set()
        self._withheld = False

    @property
    def _type(self) -> AnswerType:  # a user's type need not survive being pickled
        return answer_type(self._task)

    @property
    def _derives(self) -> bool:
        return self._type.way == "derivation"

    def add(
        self, case: Case, gold: Sequence[str], judged: Mapping[str, Sequence[str | None]] | None = None
    ) -> frozenset[str]:
        """Take one question with its gold answers, at least one. Return the rules under which it is lost.

        It is lost if majority is right and some judge or deriver makes the rule ship a wrong answer, see
        `figures.price`.

        Args:
            case: The question. gold: its gold answers.
            judged: For each rule the answers that it ships over all judges, where they are known already.
        """

        @cache
        def correct(answer: str | None) -> bool:
            return case.type.right(answer, gold)

        @cache
        def spans() -> list[str]:
            return extreme_spans(case, gold, correct)

        derivations = derivable(case, gold) if self._derives else []
        self.n_scored += 1
        lost = set[str]()
        for name in self._silent:
            rule = case.rule(name)
            ends = ends_of(judged[name] if judged else answers_over_judges(rule, case), correct)
            _add(self._silent[name], ends)
            if self._derives and name not in ASKING_NOBODY:
                ends = ends_of(answers_over_derivers(rule, case, derivations), correct)
            if correct(case.consensus) and not ends[0]:
                lost.add(name)
            if is_own(name):
                if asked_of_any(rule, case, derivations) - {"judge", *(["deriver"] if self._derives else [])}:
                    self._not_covered.add(name)
            elif name not in ASKING_NOBODY and self._type.enumerates_spans and asks(rule, case, "repairer"):
                if case.settings.own:
                    self._not_covered.add(name)
                else:
                    ends = interval(rule, case, correct, spans())
            _add(self._widest[name], ends)
        return frozenset(lost)

    def withhold(self) -> None:
        """Give no bounds: the certificates of a question are not known."""
        self._withheld = True

    def figures(self, lost: Units[frozenset[str]], without: Collection[str] = ()) -> Priced:
        """Return `bounds`, `bounds_any_span` and `bounds_any_deriver` as `summary.json` has them.

        The first are over all judges with the other roles silent, the others also over all spans as repair, or over all
        derivers (`bounds.derivable`). Each names for every rule the ends of its accuracy in percent of the questions
        with a gold answer, None without one. The last is there only if a derivation certifies. The second is None for a
        type that enumerates no spans. It is None also for a user's own rule that asks more than a judge, because the
        spans to try depend on what the rule ships. Under a user's own certificate it is None for a rule that asks the
        repairer, because that certificate may certify an answer that is not a span of the evidence. With them comes
        `price`, see `figures.price`.

        Args:
            lost: What `add` returned, for each distinct question.
            without: Rules that are left out.
        """
        names = [name for name in self._names if name not in without]
        prices = prices_of(self._silent, lost, withheld=self._withheld)
        covered = self._widest.keys() - self._not_covered

        widest = {
            name: self._percentages(self._widest[rule]) if (rule := unlabelled(name)) in covered else None
            for name in names
        }
        figures: Priced = {
            "task": self._type.name_in_files,
            "bounds": {name: self._percentages(self._silent[unlabelled(name)]) for name in names},
            "bounds_any_span": widest if self._type.enumerates_spans else dict.fromkeys(names),
            "price": {name: prices[unlabelled(name)] for name in names},
        }
        if self._derives:
            figures["bounds_any_deriver"] = widest
        return figures

    def _percentages(self, ends: Sequence[int]) -> list[float] | None:
        return [100.0 * end / self.n_scored for end in ends] if self.n_scored and not self._withheld else None


def _add(sums: list[int], ends: tuple[bool, bool]) -> None:
    for index, right in enumerate(ends):
        sums[index] += right


def pool_authority(
    rows: Iterable[Row],
    task: Task,
    settings: Settings | None = None,
    rules: Sequence[str] = DEFAULT_RULES,
    pool: str = "",
    judges: Mapping[str, Replies] | None = None,
) -> Authority:
    """Return the ends of each rule's accuracy on a pool over all judges and derivers, and what the roles can change.

    Args:
        rows: The pool's rows, taken one by one. task: Its task.
        settings: Of the rule; `certificate`, `derivation` and `homogeneous` matter here.
        rules: Their names, as `eldgr_dspy.rules` takes them.
        pool: Its name, for messages.
        judges: Recorded judges by name, as `figures.measured` takes them.

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
    bounds, measured = PoolBounds(task, rules), Measured(rules, judges or {})
    lost = Distinct[frozenset[str]]()
    counts, n = Counter[tuple[str, Role]](), 0
    asking_others: set[str] = set()
    swaying: tuple[Role, ...] = ("judge", kind.repairer)
    others = () if own else swaying[1:]
    for row in rows:
        case = Case(row.to_question(), settings)
        n += 1
        with naming_question(pool, row.id):
            judged = {name: answers_over_judges(case.rule(name), case) for name in rules}
            counts.update((name, "judge") for name in rules if differ(case, judged[name]))
            if row.gold:
                lost.add(case.question.text, bounds.add(case, row.gold, judged))
                measured.add(n - 1, case, partial(case.type.right, gold=row.gold))
            for name in rules:
                rule = case.rule(name)
                counts.update((name, role) for role in others if sways(rule, case, role))
                beyond = is_own(name) and "repairer" in swaying and asked_of_any(rule, case) - {"judge"}
                if beyond or (own and asks(rule, case, "repairer")):
                    asking_others.add(name)

    def share(name: str, role: Role) -> float | None:
        known = n and (role == "judge" or name not in asking_others)
        return 100.0 * counts[name, role] / n if known else None

    figures = bounds.figures(lost.units())
    authority: Authority = {
        "n": n,
        "n_scored": bounds.n_scored,
        "task": figures["task"],
        "bounds": figures["bounds"],
        "bounds_any_span": figures["bounds_any_span"],
        "price": figures["price"],
        "can_change": {name: {role: share(name, role) for role in swaying} for name in rules},
        "measured": measured.figures(),
    }
    if "bounds_any_deriver" in figures:
        authority["bounds_any_deriver"] = figures["bounds_any_deriver"]
    if kind.gives_up:
        authority["gives_up"] = [*kind.gives_up]
    return authority
