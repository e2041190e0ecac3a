"""What judges share that count a ballot instead of asking an LM."""

from collections.abc import Sequence
from typing import Any

import dspy

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.errors import ArgumentError


class CountingJudge(dspy.Module):
    """A judge that counts a ballot; a subclass says how in `count`.

    Attributes:
        takes_ballot: Makes selector and run give a judge the candidates as a `Ballot`.
        asks_lm: Whether it may ask an LM, or cost or wait for anything else.
    """

    takes_ballot = True
    asks_lm = False

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Return `preferred` and `judge_rationale`, or `abstained` with the reason."""
        raise NotImplementedError

    def forward(self, *, ballot: Ballot | None = None, **_: object) -> dspy.Prediction:
        """Return what `count` says; the other inputs of a judge are not read.

        Raises:
            ArgumentError: There is no ballot, since a judge that shows texts asks it.
        """
        return self.count(_required(self, ballot))

    async def aforward(self, *, ballot: Ballot | None = None, **_: object) -> dspy.Prediction:
        """Do the same as `forward`; it waits for nothing."""
        return self.count(_required(self, ballot))

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return 0: it has no LM."""
        return 0


class CallingJudge(CountingJudge):
    """A judge that counts a ballot by code of the user's, which may take long or ask an LM."""

    asks_lm = True

    async def aforward(self, *, ballot: Ballot | None = None, **_: object) -> dspy.Prediction:
        """Do the same as `forward`, in a thread."""
        count: Any = self.count  # DSPy's types admit modules alone
        threaded: Any = dspy.asyncify(count)
        counted: dspy.Prediction = await threaded(_required(self, ballot))
        return counted

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return None: it is not known whether the code asks an LM, and how often."""
        return None


def _required(judge: CountingJudge, ballot: Ballot | None) -> Ballot:
    if ballot is None:
        raise ArgumentError(
            f"{type(judge).__name__} must be given a ballot; got None. Make it the judge of a Selector, or a member of "
            "a Panel there: SwapConsistent and PairwiseJudge show texts alone."
        )
    return ballot


def assessments_of(values: Sequence[float | None]) -> list[dict[str, float]] | None:
    """Return values as a judge's assessments, 0 for a candidate that does not vote; None if one is not from 0 to 1."""
    if not all(value is None or 0 <= value <= 1 for value in values):
        return None
    return [{"scalar": value or 0.0} for value in values]


def abstained(reason: str, **more: Any) -> dspy.Prediction:
    """Return a judge's abstention."""
    return dspy.Prediction(abstained=reason, orders=[], **more)
