"""The candidates of a question as reasoning to be scored, and the scores as plain JSON values."""

import asyncio
import json
from collections.abc import Sequence
from copy import deepcopy
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import dspy

from eldgr_dspy.answer_types.extraction import before_answer
from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.rule.questions import Question

if TYPE_CHECKING:
    from eldgr_dspy.channels.protocols import Reasoning, Scorer

# The channels need numpy, which a selector without scorers does not: they are imported where they are needed.


def reasonings_of(question: Question, *, corpus: bool) -> "list[Reasoning]":
    """Return the text of each candidate, in pool order, with question, answer and passages."""
    from eldgr_dspy.channels.protocols import Reasoning

    answers = tuple(answer or "" for answer in question.answers)
    pairs = zip(question.texts or answers, answers, strict=True)
    # With `corpus` the passages are what was found in a corpus, even if nothing was.
    passages = question.passages if corpus else None
    # A last line that holds only the answer is left out of the text: an answer is not a step.
    return [Reasoning(before_answer(answer, text), question.text, passages, answer) for text, answer in pairs]


Tables = list[dict[str, Any]]
"""What one scorer says of a question: the JSON of each candidate's table, in pool order; see `StepTable.to_json`."""


def undefined_tables(error: Exception, n: int) -> Tables:
    """Return the tables of n candidates if the scorer raised: why there is none."""
    message = f"{type(error).__name__}: {error}".partition("\n")[0]
    return [{"reward": None, "undefined": f"the scorer failed: {brief(message)}", "steps": []} for _ in range(n)]


def score_candidates(scorer: "Scorer", reasonings: "Sequence[Reasoning]") -> Tables:
    """Score all candidates of a question in one call; without candidates, the scorer is not called."""
    return _scores(scorer.score(reasonings) if reasonings else [], len(reasonings), scorer)


async def ascore_candidates(scorer: "Scorer", reasonings: "Sequence[Reasoning]") -> Tables:
    """Do the same as `score_candidates` without blocking: `ascore` is awaited; a scorer without it runs in a thread."""
    if not reasonings:
        return []
    ascore = getattr(scorer, "ascore", None)
    tables = await (ascore(reasonings) if ascore else asyncio.to_thread(scorer.score, reasonings))
    return _scores(tables, len(reasonings), scorer)


def _scores(tables: object, n: int, scorer: "Scorer") -> Tables:
    from eldgr_dspy.channels.step_table import checked_tables

    name = type(scorer).__name__
    valid = checked_tables(tables, n, f"{name}.score")
    try:
        plain: Tables = json.loads(json.dumps([table.to_json() for table in valid], allow_nan=False))
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{name}.score returned a table with a value that is not a score: {error}") from error
    return plain


class Scorers(list["Scorer"]):
    """The scorers of a selector, one, several or none. A copy shares those that are not modules: they may hold a model.

    Attributes:
        several: Whether they were given as a sequence, so that their results are told apart by name.
    """

    def __init__(self, scorers: "Scorer | Sequence[Scorer] | None") -> None:
        self.several = isinstance(scorers, Sequence)
        super().__init__(() if scorers is None else scorers if isinstance(scorers, Sequence) else (scorers,))
        for at, scorer in enumerate(self):
            if isinstance(scorer, type) or not callable(getattr(scorer, "score", None)):
                name = f"scorers[{at}]" if self.several else "scorers"
                raise ArgumentError(
                    f"{name}={scorer!r:.80} is not a scorer; give an object with score(reasonings), or a list of such."
                )

    def by_name(self, scores: Sequence[Tables]) -> Tables | dict[str, Tables]:
        """Return the tables of the candidates; for several scorers by name, else class, numbered if it is repeated."""
        if not self.several:
            return scores[0]
        result = dict[str, Tables]()
        for scorer, tables in zip(self, scores, strict=True):
            own = getattr(scorer, "name", None)
            name = own if isinstance(own, str) else type(scorer).__name__
            labels = (f"{name} {number}" for number in count(2))
            result[next(label for label in chain([name], labels) if label not in result)] = tables
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> "Scorers":
        copies = [deepcopy(scorer, memo) if isinstance(scorer, dspy.Module) else scorer for scorer in self]
        return Scorers(copies if self.several else next(iter(copies), None))
