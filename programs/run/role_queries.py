"""One question put to one role: bounded, metered, journaled and counted."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Abstention, Consultation, Key, Reply
from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.journal import Journal
from eldgr_dspy.programs.consulting import FAILURES, Said, aask, ask, knows_async
from eldgr_dspy.programs.run.failures import FailureBudget, describe_failure
from eldgr_dspy.programs.run.metering import Meter, metering
from eldgr_dspy.programs.run.role_calls import RoleCall
from eldgr_dspy.programs.run.scheduling import in_thread
from eldgr_dspy.programs.run.spending import Spending
from eldgr_dspy.redaction import redacted_value
from eldgr_dspy.replies import reply_to
from eldgr_dspy.words import Role


class Flushes:
    """Flushes of a journal that are not waited for in the event loop; the tasks that wait at once share one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._under_way: asyncio.Future[None] | None = None

    async def flush(self, upto: int) -> None:
        """Flush up to a byte."""
        while self._journal.synced < upto:
            if self._under_way is None or self._under_way.done():
                self._under_way = in_thread(self._journal.flush)
            one = self._under_way
            await asyncio.wait([one])  # unlike awaiting it, being cancelled here does not cancel it for the others
            one.result()


@dataclass(frozen=True, slots=True)
class Books:
    """Where a run writes down what it asks: a role before its first call, what was said, what failed, what it cost."""

    journal: Journal
    budget: FailureBudget
    spending: Spending
    on_first_call: Callable[[Role], None]
    flushes: Flushes


class Asking:
    """A question about to be put to a role: a call, as `eldgr_dspy.programs.run.scheduling` makes it.

    Attributes:
        call: The role.
        reply: What it said, as rules see it; an abstention until then.
        upto: Up to which byte the journal has to be flushed before anything is decided from what was said; 0 where it
            need not be.
    """

    def __init__(self, key: Key, case: Case, call: RoleCall, books: Books) -> None:
        self._key, self._case, self.call, self._books = key, case, call, books
        self._meter = Meter(stopped=lambda: books.budget.stopped is not None, spending=books.spending)
        self._began = time.monotonic()
        self.reply: Reply = Abstention("not asked")
        self.upto = 0

    @property
    def held(self) -> float:
        """For how many seconds it was kept from asking by a limit of the run; its deadline is that much later."""
        return self._meter.held

    def make(self) -> Said | Exception:
        """Ask; a failure is returned."""
        self._began = time.monotonic()
        with metering(self._meter):
            try:
                self._books.budget.check()  # the run may have been stopped since this was ready
                self._books.on_first_call(self._key[2])
                return ask(self.call.module, self._inputs())
            except (*FAILURES, RunStoppedError) as error:
                return error

    async def amake(self) -> Said | Exception:
        """Ask as `make` does, without blocking."""
        module, inputs = self.call.module, self._inputs()
        self._began = time.monotonic()
        with metering(self._meter):
            try:
                self._books.budget.check()
                self._books.on_first_call(self._key[2])
                return await (aask(module, inputs) if knows_async(module) else in_thread(lambda: ask(module, inputs)))
            except (*FAILURES, RunStoppedError) as error:
                return error

    def keep(self, said: Said | Exception) -> Consultation:
        """Write to the journal what was said, or that it is late, and count it; whoever decides from it flushes."""
        outcome = self._outcome(said)
        self._write(outcome, said)
        self._count(said)
        return outcome

    async def akept(self) -> None:
        """Wait until what was kept is on the disk, before anything is decided from it."""
        await self._books.flushes.flush(self.upto)

    def _outcome(self, said: Said | Exception) -> Consultation:
        """What came of it, as it is journaled; after this, nothing more is sent on its account."""
        seconds, meter = max(0.0, time.monotonic() - self._began - self.held), self._meter
        meter.close()
        read, self.reply = _failed(said) if isinstance(said, Exception) else _read(self._key[2], said, self._case)
        return Consultation(
            *self._key,
            **read,
            fingerprint=self.call.fingerprint,
            asked=self.call.model,
            served=meter.served,
            attempt=self._books.journal.attempts(self._key) + 1,
            calls=meter.calls,
            cached=len(meter.cached),
            prompt_characters=meter.prompt_characters,
            prompt_tokens=meter.prompt_tokens,
            completion_tokens=meter.completion_tokens,
            cost=meter.cost,
            dearest=meter.dearest,
            seconds=round(seconds, 6),
            implausible=meter.implausible,
        )

    def _write(self, outcome: Consultation, said: Said | Exception) -> None:
        if isinstance(said, RunStoppedError):
            self._books.budget.stop(str(said))
            if not outcome.calls:
                raise said
        # What else a role paid for cannot be known.
        self.upto = self._books.journal.write(outcome, flush=not self.call.embedded)

    def _count(self, said: Said | Exception) -> None:
        if isinstance(said, Exception):
            self._books.budget.spend(self._key, said)
            self._books.budget.check()
        elif not self.call.embedded:
            self._books.budget.earn()

    def _inputs(self) -> dict[str, object]:
        return self._case.question.role_inputs(self._key[2])


def _failed(error: Exception) -> tuple[dict[str, Any], Abstention]:
    reason = describe_failure(error)
    return {"outcome": "failed", "reason": reason}, Abstention(f"failed: {reason}")


def _read(role: Role, said: Said, case: Case) -> tuple[dict[str, Any], Reply]:
    """What a role said, as it is journaled and as rules see it: an answer, or the abstention that it is."""
    fields = redacted_value(said.content)
    reply = reply_to(case.question, role, fields)
    content = {name: value for name, value in fields.items() if name != "abstained"} or None
    if isinstance(reply, Abstention):
        return {"outcome": "abstained", "reason": reply.reason, "content": content}, reply
    return {"outcome": "ok", "content": content}, reply
