"""What an NLI model reads in pairs of texts, for one question: each pair once, many in a call.

A model is any object with a `name` and `probabilities`, such as what `eldgr_dspy.programs.scoring.nli.load_nli`
returns, or a function of pairs. Its readings are checked: shape, range, and that a sentence entails itself. This module
uses only the standard library.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from eldgr_dspy.errors import ArgumentError, settled
from eldgr_dspy.named_objects import name_of, source_of

Pair = tuple[str, str]
"""A premise and a hypothesis."""

TOKENS = 512
"""Tokens of a pair that a model reads, unless it has an attribute `tokens`."""


@runtime_checkable
class NLI(Protocol):
    """Judges whether a premise entails or contradicts a hypothesis."""

    @property
    def name(self) -> str:
        """Everything that can change its readings: model, revision, precision, truncation."""
        ...

    def probabilities(self, pairs: Sequence[Pair]) -> Iterable[Iterable[float]]:
        """Return contradiction, neutral and entailment of each pair; three NaN for a pair that it could not read."""
        ...


class Reading(NamedTuple):
    """The probabilities of a pair."""

    contradiction: float
    neutral: float
    entailment: float


UNREAD = Reading(0.0, 0.0, 0.0)
"""A pair that was not or could not be read: nothing follows from it."""


@dataclass(frozen=True, slots=True)
class NLIFunction:
    """A user's function of pairs as an NLI model; its name has the hash of its source."""

    name: str
    function: Callable[..., Any]

    def probabilities(self, pairs: Sequence[Pair]) -> Any:
        """Return what the function returns, which `Readings` checks."""
        return self.function(pairs)


def nli_of(given: Any) -> NLI:
    """Return an NLI model from one, or from a function of (premise, hypothesis) pairs.

    Raises:
        ArgumentError: It is neither.
    """
    if isinstance(given, NLI) and not isinstance(given, type):
        return given
    if callable(given) and not isinstance(given, type):
        return NLIFunction(f"{name_of(given)}@{source_of(given)}", given)
    raise ArgumentError(
        f"nli must be an NLI model, or a function of (premise, hypothesis) pairs; got {given!r:.80}. Give "
        "eldgr_dspy.programs.scoring.nli.load_nli(MODEL)."
    )


@dataclass(slots=True)
class Readings:
    """The readings of a model for one question; `calls` and `pairs` count what it was asked."""

    nli: NLI
    calls: int = 0
    pairs: int = 0
    _known: dict[Pair, Reading] = field(default_factory=dict)

    def ask(self, pairs: Iterable[Pair], probe: str | None = None) -> None:
        """Read the pairs that were not read before, in one call whose order does not depend on theirs.

        `probe` is a sentence that must entail itself; it is read along, if anything is.

        Raises:
            ArgumentError: The model returned something else than probabilities, or has its labels in another order.
        """
        fresh = set(pairs) - self._known.keys()
        if not fresh:
            return
        if probe is not None:
            fresh.add((probe, probe))
        asked = sorted(fresh)
        said = settled(self.nli.probabilities(asked), f"{self.nli.name}.probabilities", "give a model that is not")
        self._known |= zip(asked, _readings(self.nli.name, asked, said), strict=True)
        self.calls, self.pairs = self.calls + 1, self.pairs + len(asked)
        if probe is not None:
            self._refuse_wrong_labels(probe)

    def of(self, premise: str, hypothesis: str) -> Reading:
        """Return what was read; `UNREAD` for a pair that was not asked."""
        return self._known.get((premise, hypothesis), UNREAD)

    def _refuse_wrong_labels(self, probe: str) -> None:
        own = self._known[probe, probe]
        if own.entailment < max(own):
            raise ArgumentError(
                f"nli={self.nli.name!r} must return contradiction, neutral and entailment, in this order; got "
                f"{[round(share, 3) for share in own]} for {probe!r:.60} as premise and hypothesis, which entails "
                "itself. Put its labels in order."
            )


def _readings(name: str, pairs: Sequence[Pair], said: Any) -> list[Reading]:
    """What the model said, checked."""
    try:
        rows = [tuple(map(float, row)) for row in said]
    except (TypeError, ValueError):
        raise ArgumentError(f"nli={name!r} must return three probabilities a pair; got {said!r:.80}.") from None
    if len(rows) != len(pairs):
        raise ArgumentError(f"nli={name!r} must return a row for each of {len(pairs)} pairs; got {len(rows)} rows.")
    return [_reading(name, pair, row) for pair, row in zip(pairs, rows, strict=True)]


def _reading(name: str, pair: Pair, row: tuple[float, ...]) -> Reading:
    if len(row) == 3 and any(map(math.isnan, row)):
        return UNREAD
    if len(row) != 3 or not all(0 <= share <= 1 for share in row) or abs(sum(row) - 1) > 1e-3:
        raise ArgumentError(
            f"nli={name!r} must return three probabilities a pair that add up to 1, for contradiction, neutral and "
            f"entailment; got {list(row)} for {pair!r:.120}."
        )
    return Reading(*row)


def tokens_of_pair(nli: NLI) -> int:
    """Return how many tokens of a pair a model reads."""
    stated = getattr(nli, "tokens", TOKENS)
    return stated if isinstance(stated, int) and stated > 0 else TOKENS
