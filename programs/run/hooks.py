"""What an engine of several processes may replace in a run: how it counts and settles."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeAlias

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.pools import Row
from eldgr_dspy.programs.run.failures import FailureBudget
from eldgr_dspy.programs.run.reservations import Reserved
from eldgr_dspy.programs.run.role_queries import RoleQuery
from eldgr_dspy.programs.run.runner import Runner, Settled
from eldgr_dspy.programs.run.spending import Spending

Settle: TypeAlias = Callable[[str, Row], Generator[RoleQuery, Consultation, Settled]]
"""Settles a row of the named pool, in steps."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a run is made with; the defaults are those of a run by itself.

    Attributes:
        budget: Makes the budget of failures from the questions that may fail, the failures in a row that stop the run,
            and the questions that may have an unusable reply.
        spending: Makes the count of requests and dollars from both limits, the journal's entries and the reservations.
        settle: Makes from a runner what settles each row.
    """

    budget: Callable[[int, int, int | None], FailureBudget] = FailureBudget
    spending: Callable[[int | None, float | None, Iterable[Consultation], Reserved], Spending] = Spending
    settle: Callable[[Runner], Settle] = attrgetter("settle")
