"""Warnings to read before a pool's results: roles without usable replies, and questions without an answer.

A table looks the same whether a judge decided or its replies could not be read. These sentences appear when that
concerns half of the questions or more.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation
from eldgr_dspy.figures.abstention_kinds import KINDS, kind_of
from eldgr_dspy.formatting import questions
from eldgr_dspy.named_judges import Asked, asked_in_order, role_of
from eldgr_dspy.replies import journaled_reply
from eldgr_dspy.words import Consulted, Task, is_role

_INSTEAD: Mapping[Consulted, str] = {
    "judge": "rules went on without it there",
    "deriver": "nothing was derived there",
    "repairer": "nothing was repaired there",
    "certificate": "no certificate applied there, so that consensus shipped",
    "repair_certificate": "no repair was certified there",
}


class Remarks:
    """The remarks on a pool, taken question by question; only counts are kept."""

    def __init__(self, task: Task) -> None:
        self._by_evidence = answer_type(task).way == "evidence"
        self._n = self._unanswered = self._bare = self._late = 0
        self._asked: Counter[Asked] = Counter()
        self._called: Counter[Asked] = Counter()
        self._kinds: dict[Asked, Counter[str]] = defaultdict(Counter)
        self._implausible: Counter[Asked] = Counter()
        self._unusable: Counter[Asked] = Counter()  # replies that count but for a part
        self._example = self._fault = ""

    def add(self, case: Case, consultations: Iterable[Consultation]) -> None:
        """Take a question with its consultations by any rule."""
        self._n += 1
        self._unanswered += case.vote.n_classes == 0
        self._bare += not case.question.passages
        for consultation in {consultation.label: consultation for consultation in consultations}.values():
            self._asked[consultation.label] += 1
            self._called[consultation.label] += bool(consultation.calls)
            if consultation.implausible:
                self._implausible[consultation.label] += 1
                self._example = min(self._example or consultation.implausible, consultation.implausible)
            fault = _fault_of(case, consultation)
            if fault:
                self._unusable[consultation.label] += 1
                self._fault = min(self._fault or fault, fault)
            if consultation.outcome == "abstained" and _counts(consultation):
                self._kinds[consultation.label][kind_of(consultation.reason or "")] += 1

    def add_scored(self, case: Case) -> None:
        """Take a question once its answers are scored: then it is known which of them could not be compared in time."""
        self._late += case.type.comparisons is not None and bool(case.type.comparisons.late)

    def sentences(self) -> list[str]:
        """Return the remarks, a sentence or two each; empty if there is nothing to remark."""
        return [
            *self._on_candidates(),
            *self._on_evidence(),
            *self._on_roles(),
            *self._on_parts(),
            *self._on_counts(),
            *self._on_comparisons(),
        ]

    def _on_candidates(self) -> Iterator[str]:
        if self._is_most(self._unanswered, self._n):
            repaired = "a repair" if self._by_evidence else "a derivation"
            yield (
                f"No candidate has an answer on {_of(self._unanswered, self._n)}, so that nothing but {repaired} can "
                "ship there. The field `answer` of a candidate holds it; `eldgr pool check` says what a pool holds."
            )

    def _on_evidence(self) -> Iterator[str]:
        if self._by_evidence and self._is_most(self._bare, self._n):
            yield (
                f"There is no evidence on {_of(self._bare, self._n)}: nothing can be certified there, so that eldgr is "
                "majority. The field `evidence` of a question holds it."
            )

    def _on_roles(self) -> Iterator[str]:
        for role in asked_in_order(self._kinds):
            kinds = self._kinds[role]
            if self._is_most(kinds.total(), self._asked[role]):
                listed = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
                doctor = f" `eldgr doctor --judge MODEL` looks into the {role}'s model." if self._called[role] else ""
                asked = f"{_of(kinds.total(), self._asked[role])} that it was asked"
                yield f"The {role} gave no usable reply on {asked} ({listed}): {_INSTEAD[role_of(role)]}.{doctor}"

    def _on_counts(self) -> Iterator[str]:
        for role in asked_in_order(self._implausible):
            if n := self._implausible[role]:
                yield (
                    f"The server of the {role} reported counts that cannot be true on {_of(n, self._asked[role])} "
                    f"({self._example}); they count as unknown."
                )

    def _on_comparisons(self) -> Iterator[str]:
        if self._late:
            yield (
                f"Some answers could not be compared in time on {_of(self._late, self._n)}; there they count as "
                "different, and as wrong unless they are spelled as a gold answer is. The journal names them."
            )

    def _on_parts(self) -> Iterator[str]:
        for role in asked_in_order(self._unusable):
            if n := self._unusable[role]:
                part = "scores" if role_of(role) == "judge" else "number of a passage"
                yield (
                    f"The {part} of the {role} could not be used on {_of(n, self._asked[role])} ({self._fault}); the "
                    "rest of the reply counts."
                )

    def _is_most(self, count: int, of: int) -> bool:
        return bool(of) and 2 * count >= of


def _counts(consultation: Consultation) -> bool:
    """Whether an abstention is an unusable reply; finding no span or no derivation is a usable one.

    A judge to which a pool does not apply has a sentence of its own.
    """
    kind = kind_of(consultation.reason or "")
    return kind != "not applicable" and (consultation.role == "judge" or kind != KINDS[-1])


def _fault_of(case: Case, consultation: Consultation) -> str:
    """Why a part of a reply could not be used, although the rest counts; empty if all of it could."""
    if consultation.outcome != "ok" or not is_role(consultation.role):
        return ""
    return getattr(journaled_reply(case.question, consultation), "remark", "")


def never_asked(why: Mapping[Consulted, int]) -> str:
    """Return in words on how many questions which role was never asked where a rule needs it."""
    asked = " and ".join(f"the {role} was never asked on {questions(n)}" for role, n in why.items())
    return f"{asked} where this rule needs it"


def _of(count: int, n: int) -> str:
    return f"{count:,} of {questions(n)}"
