"""Answers that are uncertified for their spelling only: how many candidates of a pool, with examples."""

from collections import Counter
from collections.abc import Iterator, Mapping

from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.spellings import other_spelling

_EXAMPLES = 5


class SpellingCount:
    """Counts candidates whose answer the evidence has in another spelling alone, which certifies nothing.

    Attributes:
        count: How many there are.
        examples: A few of their answers, each with the spelling of the evidence.
    """

    def __init__(self) -> None:
        self.count, self.examples = 0, dict[str, str]()

    def add(self, case: Case) -> None:
        """Take one question. A certificate of the user's own may refuse for any reason, so it is left out."""
        if case.type.way != "evidence" or case.settings.own is not None:
            return
        for answer, candidates in Counter(filter(None, case.question.answers)).items():
            spelling = other_spelling(answer, case.question.passages)
            if spelling and case.certified(answer) is False:
                self.count += candidates
                if len(self.examples) < _EXAMPLES:
                    self.examples.setdefault(answer, spelling)


def spelling_notes(count: int, examples: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence that says how many candidates are uncertified for their spelling only, if any are."""
    if count:
        pairs = (f"{answer!r} for {spelling!r} of the evidence" for answer, spelling in examples.items())
        yield f"Candidates that are uncertified for their spelling only: {count:,}, such as {'; '.join(pairs)}."
