"""Warnings to read before a pool's results: roles without usable replies, and questions without an answer.

A table looks the same whether a judge decided or its replies could not be read. These sentences appear when that
concerns half of the questions or more.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from eldgr_dspy.base.formatting import questions
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.rule.named_judges import Asked, in_order, role_of
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.words import NOTHING_TO_SAY, Consulted, is_role

_INSTEAD: Mapping[Consulted, str] = {
    "judge": "rules went on without it there",
    "deriver": "nothing was derived there",
    "repairer": "nothing was repaired there",
    "certificate": "no certificate applied there, so that consensus shipped",
    "repair_certificate": "no repair was certified there",
}


class ReplyMarks(NamedTuple):
    """What the remarks need of a consultation.

    Attributes:
        label: Who was asked. called: whether an LM was.
        kind: That of an abstention without a usable reply; empty for others.
        implausible: Counts that the server reported and that cannot be true.
        fault: Why a part of the reply could not be used, although the rest counts.
    """

    label: Asked
    called: bool
    kind: str
    implausible: str
    fault: str


Replied = tuple[ReplyMarks, ...]
"""The marks of all consultations of a question."""


def reply_marks(case: Case, consultations: Iterable[Consultation]) -> Replied:
    """Return the marks of a question's consultations by any rule."""
    each = {consultation.label: consultation for consultation in consultations}
    return tuple(
        ReplyMarks(label, bool(one.calls), _kind(one), one.implausible or "", _fault(case, one))
        for label, one in each.items()
    )


def _kind(one: Consultation) -> str:
    """The kind of an unusable reply; finding no span or no derivation is a usable one.

    A judge to which a pool does not apply has a sentence of its own.
    """
    kind = one.abstention.kind if one.abstention and one.outcome == "abstained" else ""
    return "" if kind == "not applicable" or (one.role != "judge" and kind == NOTHING_TO_SAY) else kind


def _fault(case: Case, one: Consultation) -> str:
    if one.outcome != "ok" or not is_role(one.role):
        return ""
    return getattr(journaled_reply(case.question, one), "remark", "")


# -- figures ----------------------------------------------------------------------------------------------------------


class Lacks(NamedTuple):
    """Of how many questions something is lacking: an answer, evidence, or time to compare their answers."""

    questions: int
    unanswered: int
    bare: int
    late: int


def remarks_on(lacks: Lacks, replies: Mapping[Replied, int], *, by_evidence: bool) -> list[str]:
    """Return the remarks on a pool, a sentence or two each; empty if there is nothing to remark.

    Args:
        lacks: What its questions lack. replies: how many questions have which marks.
        by_evidence: Whether the evidence certifies its answers.
    """
    counts = Counter[ReplyMarks]()
    for of, n in replies.items():
        for mark in of:
            counts[mark] += n
    roles = {
        label: Counter({mark: n for mark, n in counts.items() if mark.label == label}) for label in _labels(counts)
    }
    return [
        *_on_questions(lacks, by_evidence=by_evidence),
        *(sentence for role, marks in roles.items() for sentence in _on_kinds(role, marks)),
        *_on_parts(roles, lambda mark: mark.fault, _PART),
        *_on_parts(roles, lambda mark: mark.implausible, _IMPLAUSIBLE),
        *_on_comparisons(lacks),
    ]


def _labels(counts: Iterable[ReplyMarks]) -> tuple[Asked, ...]:
    labels = {mark.label for mark in counts}
    return tuple(label for label in in_order(labels) if label in labels)


def _on_questions(lacks: Lacks, *, by_evidence: bool) -> Iterator[str]:
    if _is_most(lacks.unanswered, lacks.questions):
        repaired = "a repair" if by_evidence else "a derivation"
        yield (
            f"No candidate has an answer on {_of(lacks.unanswered, lacks.questions)}, so that nothing but {repaired} "
            "can ship there. The field `answer` of a candidate holds it; `eldgr pool check` says what a pool holds."
        )
    if by_evidence and _is_most(lacks.bare, lacks.questions):
        yield (
            f"There is no evidence on {_of(lacks.bare, lacks.questions)}: nothing can be certified there, so that "
            "eldgr is majority. The field `evidence` of a question holds it."
        )


def _on_kinds(role: Asked, marks: Counter[ReplyMarks]) -> Iterator[str]:
    kinds = Counter[str]()
    for mark, n in marks.items():
        kinds[mark.kind] += n
    del kinds[""]
    if _is_most(kinds.total(), marks.total()):
        listed = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
        called = any(mark.called for mark in marks)
        doctor = f" `eldgr doctor --judge MODEL` looks into the {role}'s model." if called else ""
        share = f"{_of(kinds.total(), marks.total())} that it was asked"
        yield f"The {role} gave no usable reply on {share} ({listed}): {_INSTEAD[role_of(role)]}.{doctor}"


_PART = "The {part} of the {role} could not be used on {of} ({first}); the rest of the reply counts."
_IMPLAUSIBLE = "The server of the {role} reported counts that cannot be true on {of} ({first}); they count as unknown."


def _on_parts(
    roles: Mapping[Asked, Counter[ReplyMarks]], fault: Callable[[ReplyMarks], str], sentence: str
) -> Iterator[str]:
    """Yield a sentence for each role with a fault; the first fault in the alphabet is the example."""
    faults = [fault(mark) for marks in roles.values() for mark in marks if fault(mark)]
    for role, marks in roles.items():
        if count := sum(n for mark, n in marks.items() if fault(mark)):
            part = "scores" if role_of(role) == "judge" else "number of a passage"
            yield sentence.format(part=part, role=role, of=_of(count, marks.total()), first=min(faults))


def _on_comparisons(lacks: Lacks) -> Iterator[str]:
    if lacks.late:
        yield (
            f"Some answers could not be compared in time on {_of(lacks.late, lacks.questions)}; there they count as "
            "different, and as wrong unless they are spelled as a gold answer is. The journal names them."
        )


def _is_most(count: int, of: int) -> bool:
    return bool(of) and 2 * count >= of


def _of(count: int, n: int) -> str:
    return f"{count:,} of {questions(n)}"


def never_asked(why: Mapping[Consulted, int]) -> str:
    """Return in words on how many questions which role was never asked where a rule needs it."""
    clauses = " and ".join(f"the {role} was never asked on {questions(n)}" for role, n in why.items())
    return f"{clauses} where this rule needs it"
