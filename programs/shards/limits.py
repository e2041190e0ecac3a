"""Limits that hold over all workers: one ledger counts what they report, before a request and after a failure.

The limit on requests needs none of this: each process reserves its requests in `requests.json`. The ledger is a plain
object in one process, and workers reach it by a function that they are given.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.figures.results import SUMMARY
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.run.failures import FailureBudget
from eldgr_dspy.programs.run.reservations import Reserved
from eldgr_dspy.programs.run.spending import Spending
from eldgr_dspy.programs.shards.manifest import read_sharded

Ask: TypeAlias = Callable[..., Any]
"""Calls a method of the ledger, by its name, in the ledger's process."""

Event: TypeAlias = Literal["withdraw", "failed", "answered", "answered_late"]
"""What became of a request; the name of the method of `Spending` that counts it."""


class Ledger:
    """Counts the questions that failed and the dollars spent, over all workers. From one thread."""

    def __init__(self, directory: Path, max_cost: float | None) -> None:
        """Start from what the shards state: how many questions failed in those that are done, and what all have cost.

        Args:
            directory: Of shards. max_cost: in dollars; None for no limit.
        """
        sharded, self._failed = read_sharded(directory), dict[str, int]()
        shards = sharded.manifest.shards
        for shard in shards:
            if sharded.marker(shard).exists():
                summary = SUMMARY.validate_json((sharded.run(shard) / "summary.json").read_bytes())
                self._failed[shard.name] = summary["pools"][shard.pool]["n_failed"]
        self._under_way = Counter[str]()
        self._spending: Spending | None = None
        if max_cost is not None:
            journals = [path for shard in shards if (path := sharded.run(shard) / "journal.jsonl").exists()]
            paid = _Paid(journals)
            self._spending = Spending(None, max_cost, paid.entries(), paid)

    def failed(self, shard: str, n: int) -> int:
        """Take how many questions of a shard failed, and return how many of all shards did."""
        self._failed[shard] = n
        return sum(self._failed.values())

    def admit(self, worker: str) -> bool | str:
        """Admit a request of a worker: True, False if it must wait, or why no further one may be sent."""
        if self._spending is None:
            return True
        try:
            admitted = self._spending.admit()
        except RunStoppedError as error:
            return str(error)
        self._under_way[worker] += admitted
        return admitted

    def count(self, worker: str, event: Event, *cost: float | None) -> None:
        """Count what became of a request of a worker."""
        if self._spending is not None:
            getattr(self._spending, event)(*cost)
            self._under_way[worker] -= event != "answered_late"

    def lose(self, worker: str) -> None:
        """Count the requests under way of a worker that died."""
        if self._spending is not None:
            self._spending.lose(self._under_way.pop(worker, 0))


class _Paid(Reserved):
    """What the journals of several shards hold: consultations, and requests that kills have lost."""

    def __init__(self, journals: Iterable[Path]) -> None:
        super().__init__()
        self._journals, self._lost = journals, 0

    @property
    def is_settled(self) -> bool:
        """Say that something is to be settled, so that the entries are read."""
        return False

    def entries(self) -> Iterator[Consultation]:
        """Yield the consultations of all journals, and add up what was lost."""
        for journal in self._journals:
            heads, calls = list[dict[str, Any]](), 0
            for entry in read_journal(journal, heads, on_torn=lambda _: None):
                calls += entry.calls
                yield entry
            stated: dict[str, int] = {"lost": 0}
            for head in heads:
                stated = head["details"] if head["kind"] == "reserved" else stated
            self._lost += max(0, stated["sent"] - calls) if "sent" in stated else stated["lost"]

    def settle(self, journaled: int) -> int:
        """Return how many requests were lost."""
        return self._lost


class SharedBudget(FailureBudget):
    """The budget of failures of a shard, whose limit is on the failed questions of all shards."""

    def __init__(self, ask: Ask, shard: str, allowed: int, patience: int, abstentions: int | None) -> None:
        """Start with no failures in this shard: those of an attempt before are asked again."""
        super().__init__(allowed, patience, abstentions)
        self._ask, self._shard = ask, shard
        ask("failed", shard, 0)

    def count_failed(self) -> int:
        """Return how many questions of all shards failed."""
        return int(self._ask("failed", self._shard, len(self.failed)))


class SharedSpending(Spending):
    """What a shard may still send, whose limit in dollars is on all shards."""

    def __init__(
        self,
        ask: Ask,
        worker: str,
        max_calls: int | None,
        max_cost: float | None,
        before: Iterable[Consultation],
        reserved: Reserved,
    ) -> None:
        """Take the limits, what the shard's journal holds, and its reservations."""
        super().__init__(max_calls, max_cost, before, reserved)
        self._ask, self._worker = ask, worker

    def admit(self) -> bool:
        """Admit one request, of this shard and of all; False if it must wait."""
        said = self._ask("admit", self._worker)
        if isinstance(said, str):
            raise RunStoppedError(said)
        if not said:
            return False
        try:
            admitted = super().admit()
        except RunStoppedError:
            self._tell("withdraw")
            raise
        if not admitted:
            self._tell("withdraw")
        return admitted

    def withdraw(self) -> None:
        """Take back a request that was admitted and not sent."""
        super().withdraw()
        self._tell("withdraw")

    def failed(self) -> None:
        """Count a request that was not answered with a reply."""
        super().failed()
        self._tell("failed")

    def answered(self, cost: float | None) -> None:
        """Count a request that was answered, with its cost in dollars, None if unknown."""
        super().answered(cost)
        self._tell("answered", cost)

    def answered_late(self, cost: float | None) -> None:
        """Count the cost in dollars of a request that has been counted as not answered."""
        super().answered_late(cost)
        self._tell("answered_late", cost)

    def _tell(self, event: Event, *cost: float | None) -> None:
        self._ask("count", self._worker, event, *cost)
