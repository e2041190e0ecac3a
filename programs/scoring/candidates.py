"""The candidates of a question as reasoning to be scored, and what came of it as plain JSON values.

What a scorer says of candidates ranks them inside a stratum (`eldgr_dspy.ranking`); it certifies and decides nothing.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import dspy

from eldgr_dspy.errors import ArgumentError, brief, settled
from eldgr_dspy.questions import Question

if TYPE_CHECKING:
    from eldgr_dspy.channels.protocols import Reasoning, Scorer

# The channels stand on numpy, which a selector without scorers has no use for: they are imported where they are needed.


def reasonings_of(question: Question, *, corpus: bool) -> "list[Reasoning]":
    """Return the text of each candidate, in pool order, with question, answer and passages.

    A text whose end is nothing but the answer, on a line of its own, is given without it: an answer is no step.

    Args:
        question: Whose candidates are meant.
        corpus: Whether the passages are what was found in a corpus, be it nothing; without one there are none.
    """
    from eldgr_dspy.channels.protocols import Reasoning

    texts = question.texts or tuple(answer or "" for answer in question.answers)
    passages = question.passages if corpus else None
    pairs = zip(texts, question.answers, strict=True)
    return [Reasoning(_before(answer or "", text), question.text, passages, answer or "") for text, answer in pairs]


def _before(answer: str, text: str) -> str:
    """What stands in a text before its answer; the whole where nothing does, or where it does not end with it."""
    kept, line = text, f"\n{answer.strip()}"
    while answer and kept.rstrip().endswith(line):  # once by the text itself, and once more where it was put behind it
        kept = kept.rstrip().removesuffix(line)
    return kept if kept.strip() else text


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """What one scorer said of the candidates of a question.

    Attributes:
        tables: The JSON of the table of each candidate, in pool order; see `StepTable.to_json`.
    """

    tables: list[dict[str, Any]]

    @property
    def rewards(self) -> list[float | None]:
        """The reward of each candidate, higher is better; None where undefined."""
        return [table["reward"] for table in self.tables]

    @classmethod
    def undefined(cls, error: Exception, n: int) -> "CandidateScores":
        """Return what is known of n candidates where the scorer raised: why there is no table."""
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        return cls([{"reward": None, "undefined": f"the scorer failed: {brief(said)}", "steps": []} for _ in range(n)])


def score_candidates(scorer: "Scorer", reasonings: "Sequence[Reasoning]") -> CandidateScores:
    """Score all candidates of a question in one call; where there is none, nobody is called.

    Raises:
        ArgumentError: The scorer did not return one table of finite numbers a candidate.
        Exception: What the scorer itself raises.
    """
    return _read(scorer.score(reasonings) if reasonings else [], len(reasonings), scorer)


async def ascore_candidates(scorer: "Scorer", reasonings: "Sequence[Reasoning]") -> CandidateScores:
    """Score as `score_candidates` does without blocking: a scorer with `ascore` is awaited, another is given a thread.

    In a thread it finds the settings of DSPy as they are here.
    """
    if not reasonings:
        return CandidateScores([])
    ascore = getattr(scorer, "ascore", None)
    tables = await (ascore(reasonings) if ascore else asyncio.to_thread(scorer.score, reasonings))
    return _read(tables, len(reasonings), scorer)


def _read(tables: object, n: int, scorer: "Scorer") -> CandidateScores:
    from eldgr_dspy.channels.table import StepTable

    name = type(scorer).__name__
    tables = settled(tables, f"{name}.score", "name an async method ascore, and await the selector")
    if not isinstance(tables, list | tuple) or not all(isinstance(one, StepTable) for one in tables):
        raise ArgumentError(f"{name}.score returned {tables!r:.80}; expected a list of StepTable, one for each text.")
    if len(tables) != n:
        raise ArgumentError(f"{name}.score returned {len(tables)} tables for {n} texts; expected one for each.")
    try:
        return CandidateScores(json.loads(json.dumps([table.to_json() for table in tables], allow_nan=False)))
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{name}.score returned a table with a value that is no score: {error}") from error


class Scorers(list["Scorer"]):
    """The scorers of a selector. A copy shares those that are no modules: they may hold a model, and have no prompts.

    Attributes:
        several: Whether they were given as a sequence, so that what they say is told apart by name.
    """

    def __init__(self, given: "Scorer | Sequence[Scorer] | None") -> None:
        """Take one scorer, several or none.

        Raises:
            ArgumentError: Something has no method `score`.
        """
        self.several = isinstance(given, Sequence)
        super().__init__(() if given is None else given if isinstance(given, Sequence) else (given,))
        for at, one in enumerate(self):
            if isinstance(one, type) or not callable(getattr(one, "score", None)):
                name = f"scorers[{at}]" if self.several else "scorers"
                raise ArgumentError(
                    f"{name}={one!r:.80} is not a scorer; give an object with score(reasonings), or a list of such."
                )

    def shown(self, found: Sequence[CandidateScores]) -> list[dict[str, Any]] | dict[str, list[dict[str, Any]]]:
        """Return the tables of the candidates, or several scorers' by name: its `name`, else that of its class."""
        if not self.several:
            return found[0].tables
        return dict(zip(self._names(), (one.tables for one in found), strict=True))

    def _names(self) -> Iterator[str]:
        """The names in order; where one occurs again it is numbered."""
        seen = set[str]()
        for one in self:
            own = getattr(one, "name", None)
            name = own if isinstance(own, str) else type(one).__name__
            numbered = (f"{name} {number}" for number in count(2))
            yield (free := next(one for one in chain([name], numbered) if one not in seen))
            seen.add(free)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Scorers":
        copied = [deepcopy(one, memo) if isinstance(one, dspy.Module) else one for one in self]
        return Scorers(copied if self.several else next(iter(copied), None))
