"""Answers that are uncertified for their spelling only: how many candidates of a pool, with examples."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

from eldgr_dspy.figures.distinct import Column
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.spellings import other_spelling

_EXAMPLES = 5

Spellings = tuple[tuple[str, str, int], ...]
"""Answers of a question that the evidence has in another spelling alone: each, that spelling, and its candidates."""


def spellings_of(case: Case) -> Spellings:
    """Return such answers. A certificate of the user's own may refuse for any reason, so there are none under it."""
    if case.type.way != "evidence" or case.settings.own is not None:
        return ()
    answers = Counter(filter(None, case.question.answers))
    others = ((answer, other_spelling(answer, case.question.passages), n) for answer, n in answers.items())
    return tuple((answer, other, n) for answer, other, n in others if other and case.certified(answer) is False)


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
