"""What judges share that count a ballot instead of asking an LM."""

from collections.abc import Sequence
from typing import Any

import dspy

from eldgr_dspy.ballots import Ballot


class CountingJudge(dspy.Module):
    """A judge that counts a ballot; a subclass says how in `count`.

    Attributes:
        takes_ballot: Makes selector and run give a judge the candidates as a `Ballot`.
    """

    takes_ballot = True

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Return `preferred` and `judge_rationale`, or `abstained` with the reason."""
        raise NotImplementedError

    def forward(self, *, ballot: Ballot, **_: object) -> dspy.Prediction:
        """Return what `count` says; the other inputs of a judge are not read."""
        return self.count(ballot)

    async def aforward(self, *, ballot: Ballot, **_: object) -> dspy.Prediction:
        """Do the same as `forward`; it waits for nothing."""
        return self.count(ballot)

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return 0: it has no LM."""
        return 0


class CallingJudge(CountingJudge):
    """A judge that counts a ballot by code of the user's, which may take long or ask an LM."""

    async def aforward(self, *, ballot: Ballot, **_: object) -> dspy.Prediction:
        """Do the same as `forward`, in a thread."""
        count: Any = self.count  # DSPy's types admit modules alone
        threaded: Any = dspy.asyncify(count)
        counted: dspy.Prediction = await threaded(ballot)
        return counted

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return None: it is not known whether the code asks an LM, and how often."""
        return None
