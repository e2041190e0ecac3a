"""The authority bound of a whole pool: the lowest and highest accuracy of every rule, and what roles can change.

It needs only the pool: no LM, no recording and no run. Without gold answers, accuracy is unknown, but not the number of
questions on which a judge or a repairer can change what ships. Percentages are numbers from 0 to 100; an undefined
value is None, never 0. Source: ours.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from eldgr_dspy.answers import exact_match, numeric_equal
from eldgr_dspy.cases import Case
from eldgr_dspy.certifying import naming_question
from eldgr_dspy.decision import DEFAULT_RULES
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.bounds import asked_of_any_judge, asks, extreme_spans, interval, sways
from eldgr_dspy.figures.results.summary import Bounds
from eldgr_dspy.named_judges import unlabelled
from eldgr_dspy.questions import Settings
from eldgr_dspy.rows import Row
from eldgr_dspy.rules import is_own
from eldgr_dspy.words import Role, Task

_SWAYING: dict[Task, tuple[Role, ...]] = {"retrieval": ("judge", "repairer"), "arithmetic": ("judge", "deriver")}


class Authority(Bounds):
    """The authority bound of a pool.

    Attributes:
        can_change: For each rule and role the percentage of questions on which it can change the class of answers that
            ships, see `bounds.sways`; None without questions, and for any role but the judge where a rule of the
            user's asks one. Also where a rule asks the repairer under a certificate of the
            user's.
        unbounded: The roles whose replies no bound covers: a deriver's possible answers are not in the pool.
    """

    n: int
    n_scored: int
    task: Task
    can_change: dict[str, dict[Role, float | None]]
    unbounded: list[Role]


class PoolBounds:
    """The bounds of the rules on one pool, taken question by question."""

    def __init__(self, task: Task, rules: Iterable[str]) -> None:
        self.task: Task = task
        self.n_scored = 0
        self._names = [*rules]  # the bounds are the same for every judge, so that its name does not matter
        self._silent: dict[str, list[int]] = {unlabelled(name): [0, 0] for name in self._names}
        self._any_span: dict[str, list[int]] = {name: [0, 0] for name in self._silent}
        self._not_covered: set[str] = set()
        self._withheld = False

    def add(self, case: Case, gold: Sequence[str]) -> None:
        """Take one question with its gold answers, at least one."""

        @cache
        def correct(answer: str | None) -> bool:
            return numeric_equal(answer, gold) if self.task == "arithmetic" else exact_match(answer, gold)

        self.n_scored += 1
        for name in self._silent:
            rule = case.rule(name)
            ends = interval(rule, case, correct)
            _add(self._silent[name], ends)
            if is_own(name):
                if asked_of_any_judge(rule, case) - {"judge"}:
                    self._not_covered.add(name)
            elif self.task == "retrieval" and asks(rule, case, "repairer"):
                if case.settings.own:
                    self._not_covered.add(name)
                else:
                    ends = interval(rule, case, correct, extreme_spans(case, gold, correct))
            _add(self._any_span[name], ends)

    def withhold(self) -> None:
        """Give no bounds: the certificates of a question are not known."""
        self._withheld = True

    def figures(self) -> Bounds:
        """Return `bounds` and `bounds_any_span` as `summary.json` has them.

        The former are over all judges with the other roles silent, the latter also over all spans as repair. Each names
        for every rule the ends of its accuracy in percent of the questions with a gold answer, None without one. The
        latter is None in arithmetic, where no span repairs, for a rule of the user's that asks more than a judge, since
        which spans stand for all depends on what it ships, and for one that asks the repairer under a certificate of
        the user's, which may certify a repair that is no span.
        """
        covered = self._any_span.keys() - self._not_covered if self.task == "retrieval" else ()
        return {
            "bounds": {name: self._percentages(self._silent[unlabelled(name)]) for name in self._names},
            "bounds_any_span": {
                name: self._percentages(self._any_span[rule]) if (rule := unlabelled(name)) in covered else None
                for name in self._names
            },
        }

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
) -> Authority:
    """Return the ends of each rule's accuracy on a pool over all judges, and what the roles can change.

    Args:
        rows: The pool's rows, taken one by one. task: Its task.
        settings: Of the rule; `certificate` and `homogeneous` matter here.
        rules: Their names, as `eldgr_dspy.rules` takes them.
        pool: Its name, for messages.

    Raises:
        ArgumentError: The settings have a certificate that must be asked. CertificateError: it failed on a question.
    """
    own = settings.own if settings and task == "retrieval" else None
    if own and own.consulted:
        raise ArgumentError(
            f"certificate={own.name!r} must be asked about each answer, and a bound asks nobody. Give it to eldgr "
            "evaluate, whose report has the bounds under the certificates that it gave."
        )
    bounds, counts, n = PoolBounds(task, rules), Counter[tuple[str, Role]](), 0
    asking_others: set[str] = set()
    swaying: tuple[Role, ...] = ("judge",) if own else _SWAYING[task]
    for row in rows:
        case = Case(row.to_question(), settings)
        n += 1
        with naming_question(pool, row.id):
            if row.gold:
                bounds.add(case, row.gold)
            for name in rules:
                rule = case.rule(name)
                counts.update((name, role) for role in swaying if sways(rule, case, role))
                if (is_own(name) and asked_of_any_judge(rule, case) - {"judge"}) or (
                    own and asks(rule, case, "repairer")
                ):
                    asking_others.add(name)

    def share(name: str, role: Role) -> float | None:
        known = n and (role == "judge" or name not in asking_others)
        return 100.0 * counts[name, role] / n if known else None

    return {
        "n": n,
        "n_scored": bounds.n_scored,
        "task": task,
        **bounds.figures(),
        "can_change": {name: {role: share(name, role) for role in _SWAYING[task]} for name in rules},
        "unbounded": ["deriver"] if task == "arithmetic" else [],
    }
