"""What judges share that count a ballot instead of asking an LM."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import dspy

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.consultations import Abstention
from eldgr_dspy.errors import ArgumentError

NO_CANDIDATE = "there is no candidate to judge"


class CountingJudge(dspy.Module):
    """A judge that counts a ballot; a subclass says how in `count`.

    Attributes:
        takes_ballot: Makes selector and run give a judge the candidates as a `Ballot`.
        asks_lm: Whether it may ask an LM, or take long: it then counts in a thread under asyncio.
        sets_lm: Whether it may set the LM that it asks.
    """

    takes_ballot = True
    asks_lm = False
    sets_lm = False

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Return `preferred` and `judge_rationale`, or `abstained` with the reason; at least one candidate votes."""
        raise NotImplementedError

    def forward(self, *, ballot: Ballot | None = None, **_: object) -> dspy.Prediction:
        """Return what `count` says, or abstain if no candidate votes; the other inputs of a judge are not read.

        Raises:
            ArgumentError: There is no ballot, since a judge that shows texts asks it.
        """
        return self._counted(ballot)

    async def aforward(self, *, ballot: Ballot | None = None, **_: object) -> dspy.Prediction:
        """Do the same as `forward`."""
        threaded: Any = dspy.asyncify(cast(Any, self._counted))  # DSPy's types admit modules alone
        counted: dspy.Prediction = await threaded(ballot) if self.asks_lm else self._counted(ballot)
        return counted

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return 0 without an LM; None for code that may ask one, as often as it likes."""
        return None if self.asks_lm else 0

    def _counted(self, ballot: Ballot | None) -> dspy.Prediction:
        if ballot is None:
            raise ArgumentError(
                f"{type(self).__name__} must be given a ballot; got None. Make it the judge of a Selector, or a member "
                "of a Panel there: SwapConsistent and PairwiseJudge show texts alone."
            )
        return self.count(ballot) if ballot.voters else abstained(NO_CANDIDATE)


def preferring_by(ballot: Ballot, preferred: int, rationale: str, values: Mapping[int, float]) -> dspy.Prediction:
    """Return a verdict; with `assessments` if all values lie from 0 to 1, 0 for a candidate that does not vote."""
    scalars = [{"scalar": values.get(index, 0.0)} for index in range(len(ballot.classes))]
    assessments = scalars if all(0 <= value <= 1 for value in values.values()) else None
    return dspy.Prediction(preferred=preferred, judge_rationale=rationale, assessments=assessments, orders=[])


def abstained(why: str | Abstention, **more: Any) -> dspy.Prediction:
    """Return a judge's abstention, given its reason if the judge has nothing to say."""
    fields = why.fields if isinstance(why, Abstention) else {"abstained": why}
    return dspy.Prediction(**{**fields, "orders": [], **more})
