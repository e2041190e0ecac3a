"""What one should know of a pool before its figures: roles that gave nothing to go by, and questions without an answer.

A table looks the same whether a judge decided or none could be read. These are sentences for where that matters: half
of the questions, or more.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation
from eldgr_dspy.figures.abstention_kinds import KINDS, kind_of
from eldgr_dspy.formatting import questions
from eldgr_dspy.words import ROLES, Role, Task

_INSTEAD: Mapping[Role, str] = {
    "judge": "rules went on without it there",
    "deriver": "nothing was derived there",
    "repairer": "nothing was repaired there",
}


class Remarks:
    """The remarks on a pool, taken question by question; counts alone are kept."""

    def __init__(self, task: Task) -> None:
        self._task: Task = task
        self._n = self._unanswered = self._bare = 0
        self._asked: Counter[Role] = Counter()
        self._called: Counter[Role] = Counter()
        self._kinds: dict[Role, Counter[str]] = {role: Counter() for role in ROLES}
        self._implausible: Counter[Role] = Counter()
        self._example = ""

    def take(self, case: Case, consultations: Iterable[Consultation]) -> None:
        """Take a question, and what was asked on it by whatever rules."""
        self._n += 1
        self._unanswered += case.vote.n_classes == 0
        self._bare += not case.question.passages
        for one in {one.role: one for one in consultations}.values():
            self._asked[one.role] += 1
            self._called[one.role] += bool(one.calls)
            if one.implausible:
                self._implausible[one.role] += 1
                self._example = self._example or one.implausible
            if one.outcome == "abstained" and _counts(one):
                self._kinds[one.role][kind_of(one.reason or "")] += 1

    def sentences(self) -> list[str]:
        """Return the remarks, a sentence or two each; none where all is well."""
        return [*self._on_candidates(), *self._on_evidence(), *self._on_roles(), *self._on_counts()]

    def _on_candidates(self) -> Iterator[str]:
        if self._is_most(self._unanswered, self._n):
            repaired = "a repair" if self._task == "retrieval" else "a derivation"
            yield (
                f"No candidate has an answer on {_of(self._unanswered, self._n)}, so that nothing but {repaired} can "
                "ship there. The field `answer` of a candidate holds it; `eldgr pool check` says what a pool holds."
            )

    def _on_evidence(self) -> Iterator[str]:
        if self._task == "retrieval" and self._is_most(self._bare, self._n):
            yield (
                f"There is no evidence on {_of(self._bare, self._n)}: nothing can be certified there, so that eldgr is "
                "majority. The field `evidence` of a question holds it."
            )

    def _on_roles(self) -> Iterator[str]:
        for role, kinds in self._kinds.items():
            if self._is_most(kinds.total(), self._asked[role]):
                found = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
                doctor = f" `eldgr doctor --judge MODEL` looks into the {role}'s model." if self._called[role] else ""
                asked = f"{_of(kinds.total(), self._asked[role])} that it was asked"
                yield f"The {role} gave no usable reply on {asked} ({found}): {_INSTEAD[role]}.{doctor}"

    def _on_counts(self) -> Iterator[str]:
        for role, n in self._implausible.items():
            yield (
                f"The server of the {role} reported counts that cannot be true on {_of(n, self._asked[role])} "
                f"({self._example}); they count as unknown."
            )

    def _is_most(self, count: int, of: int) -> bool:
        return bool(of) and 2 * count >= of


def _counts(one: Consultation) -> bool:
    """Whether an abstention leaves nothing to go by; to find no span and no derivation is a reply of its own."""
    return one.role == "judge" or kind_of(one.reason or "") != KINDS[-1]


def never_asked(why: Mapping[Role, int]) -> str:
    """Return in words on how many questions which role was never asked where a rule needs it."""
    asked = " and ".join(f"the {role} was never asked on {questions(n)}" for role, n in why.items())
    return f"{asked} where this rule needs it"


def _of(count: int, n: int) -> str:
    return f"{count:,} of {questions(n)}"
