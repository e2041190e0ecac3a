"""Warnings to read before a pool's results, where they concern half of the questions or more."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from eldgr_dspy.base.formatting import questions
from eldgr_dspy.figures.decided_rows import DecidedRows, Facts, ReplyMarks, Spellings
from eldgr_dspy.figures.distinct import Column, counts_by
from eldgr_dspy.rule.named_judges import Label, in_order, role_of
from eldgr_dspy.words import Consulted

_EXAMPLES = 5
_INSTEAD: Mapping[Consulted, str] = {
    "judge": "rules went on without it there",
    "deriver": "nothing was derived there",
    "repairer": "nothing was repaired there",
    "certificate": "no certificate applied there, so that consensus shipped",
    "repair_certificate": "no repair was certified there",
}


def remarks_of(rows: DecidedRows) -> list[str]:
    roles = {label: rows.roles[label].marks.counts() for label in in_order(rows.roles) if label in rows.roles}
    part = "The {part} of the {role} could not be used on {of} ({first}); the rest of the reply counts."
    server = "The server of the {role} reported counts that cannot be true on {of} ({first}); they count as unknown."
    return [
        *_on_questions(rows),
        *(sentence for role, marks in roles.items() for sentence in _on_kinds(role, marks)),
        *_on_parts(roles, lambda mark: mark.fault, part),
        *_on_parts(roles, lambda mark: mark.implausible, server),
        *_on_comparisons(rows),
        *spelling_notes(*spelling_only(rows.spellings)),
    ]


def _on_questions(rows: DecidedRows) -> Iterator[str]:
    n, by_evidence = len(rows), rows.type.way == "evidence"
    if _is_most(blank := _count(rows, lambda of: not of.classes), n):
        other = "a repair" if by_evidence else "a derivation"
        yield (
            f"No candidate has an answer on {_of(blank, n)}, so that nothing but {other} can ship there. The "
            "field `answer` of a candidate holds it; `eldgr pool check` says what a pool holds."
        )
    if by_evidence and _is_most(bare := _count(rows, lambda of: of.bare), n):
        yield (
            f"There is no evidence on {_of(bare, n)}: nothing can be certified there, so that eldgr is majority. The "
            "field `evidence` of a question holds it."
        )


def _count(rows: DecidedRows, holds: Callable[[Facts], bool]) -> int:
    return counts_by(rows.facts.counts(), holds)[True]


def _on_kinds(role: Label, marks: Counter[ReplyMarks]) -> Iterator[str]:
    kinds = counts_by(marks, lambda mark: mark.kind)
    del kinds[""]
    if _is_most(kinds.total(), marks.total()):
        listing = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
        has_calls = any(mark.has_calls for mark in marks)
        doctor = f" `eldgr doctor --judge MODEL` looks into the {role}'s model." if has_calls else ""
        share = f"{_of(kinds.total(), marks.total())} that it was asked"
        yield f"The {role} gave no usable reply on {share} ({listing}): {_INSTEAD[role_of(role)]}.{doctor}"


def _on_parts(
    roles: Mapping[Label, Counter[ReplyMarks]], fault: Callable[[ReplyMarks], str], sentence: str
) -> Iterator[str]:
    """Yield a sentence for each role with a fault; the first fault in the alphabet is the example."""
    faults = [fault(mark) for marks in roles.values() for mark in marks if fault(mark)]
    for role, marks in roles.items():
        if count := sum(n for mark, n in marks.items() if fault(mark)):
            part = "scores" if role_of(role) == "judge" else "number of a passage"
            yield sentence.format(part=part, role=role, of=_of(count, marks.total()), first=min(faults))


def _on_comparisons(rows: DecidedRows) -> Iterator[str]:
    if late := _count(rows, lambda of: of.late):
        yield (
            f"Some answers could not be compared in time on {_of(late, len(rows))}; there they count as "
            "different, and as wrong unless they are spelled as a gold answer is. The journal names them."
        )


def _is_most(count: int, of: int) -> bool:
    return bool(of) and 2 * count >= of


def _of(count: int, n: int) -> str:
    return f"{count:,} of {questions(n)}"


def missing_roles(why: Mapping[Consulted, int]) -> str:
    clauses = " and ".join(f"the {role} was never asked on {questions(n)}" for role, n in why.items())
    return f"{clauses} where this rule needs it"


def spelling_only(spellings: Column[Spellings]) -> tuple[int, dict[str, str]]:
    """Return how many candidates of a pool there are, and a few answers, each with the spelling of the evidence."""
    count = sum(n * times for of, times in spellings.counts().items() for _, _, n in of)
    examples = dict[str, str]()
    for answer, other, _ in (one for of in spellings for one in of):
        examples.setdefault(answer, other)
    return count, dict(islice(examples.items(), _EXAMPLES))


def spelling_notes(count: int, examples: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence that says how many candidates are uncertified for their spelling only, if any are."""
    if count:
        pairs = (f"{answer!r} for {spelling!r} of the evidence" for answer, spelling in examples.items())
        yield f"Candidates that are uncertified for their spelling only: {count:,}, such as {'; '.join(pairs)}."
