"""Rows through rules: every rule on identical consultations, each of which is looked up, replayed or asked once.

The runner turns a row into decisions. It owns no loop over rows and writes nothing but the journal; see
`eldgr_dspy.programs.run.evaluation` for the run around it.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Abstention, Reply
from eldgr_dspy.decision import Decision, adrive, drive
from eldgr_dspy.errors import ArgumentError, JournalError, NotAskedError, RunChangedError, RunStoppedError
from eldgr_dspy.journal import Consultation, Journal, Key, read_journal
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.consulting import FAILURES, Said, aask, ask, is_fatal, knows_async
from eldgr_dspy.programs.run.deadlines import awithin, in_thread, thread_within, within
from eldgr_dspy.programs.run.fingerprints import redacted
from eldgr_dspy.programs.run.metering import Meter, metering
from eldgr_dspy.programs.run.rolecalls import RoleCall
from eldgr_dspy.programs.run.spending import Spending
from eldgr_dspy.questions import Settings
from eldgr_dspy.replies import read_reply
from eldgr_dspy.summary import Outcome
from eldgr_dspy.words import Role


class Recordings:
    """Recorded consultations, supplied instead of calls. A role recorded for a pool is never asked of that pool."""

    def __init__(self, path: Path | None = None) -> None:
        """Read a journal, or none. Entries without a pool stand for any; failed ones are passed over.

        Raises:
            JournalError: if there is nothing in it to use.
        """
        self.path = path
        self._found: dict[Key, Consultation] = {}
        self._heads: list[dict[str, Any]] = []
        for one in read_journal(path, self._heads) if path else ():
            if one.settled:
                self._found[one.key] = one
        self._governed = {(pool, role) for pool, _, role in self._found}
        if path is not None and not self._found:
            raise JournalError(f"{path}: holds no consultation; a recording is a journal, one consultation a line.")

    def governs(self, pool: str, role: Role) -> bool:
        """Whether `role` is recorded for `pool`, so that it is not asked."""
        return (pool, role) in self._governed or ("", role) in self._governed

    def require_made_on(self, pool: Pool) -> None:
        """Refuse a pool other than the one of its name that the recording says it was made on.

        Raises:
            RunChangedError: naming the recording, the pool and both contents.
        """
        for head in self._heads:
            if (head["kind"], head["name"]) == ("pool", pool.name):
                made_on = head["details"].get("sha256", pool.sha256)
                if made_on != pool.sha256:
                    raise RunChangedError(
                        f"{self.path}: recorded on another pool {pool.name!r} (sha256 {made_on!r:.80}) than the one "
                        f"given ({pool.sha256!r}); give that pool, or a recording of this one."
                    )

    def require_unchanged(self, replayed: Consultation) -> None:
        """Refuse to go on from a recorded consultation that the recording now has otherwise; one it lacks stands.

        Raises:
            RunChangedError: naming the consultation.
        """
        pool, question, role = replayed.key
        now = self._get(replayed.key)
        if now and (now.outcome, now.content, now.reason) != (replayed.outcome, replayed.content, replayed.reason):
            raise RunChangedError(
                f"{self.path}: the {role} of question {question!r} of pool {pool!r} is another than this run used; "
                "undo the change, give another --out, or start anew with --fresh (the old journal is kept)."
            )

    def _get(self, key: Key) -> Consultation | None:
        return self._found.get(key) or self._found.get(("", *key[1:]))

    def find(self, key: Key) -> Consultation:
        """Return the recorded consultation. Raises `NotAskedError` where there is none: absence is not abstention."""
        pool, question, role = key
        found = self._get(key)
        if found is None:
            raise NotAskedError(f"The recording holds no {role} for question {question!r} of pool {pool!r}.")
        return replace(found, pool=pool, recorded=True, calls=0)


class FailureBudget:
    """How many questions may fail before a run stops, however many of their calls do. Counts from any thread.

    Whatever is allowed, a run stops when `patience` consultations in a row have failed: the server is away.
    """

    def __init__(self, allowed: int, patience: int = 16) -> None:
        self.allowed, self.patience = allowed, patience
        self.failed: set[tuple[str, str]] = set()
        self.stopped: str | None = None
        self._in_a_row = 0
        self._lock = threading.Lock()

    def spend(self, key: Key, error: Exception) -> None:
        """Count the question of a call that failed; beyond the budget, or for a fatal failure, stop the run."""
        with self._lock:
            self.failed.add(key[:2])
            self._in_a_row += 1
            if is_fatal(error):
                self.stopped = f"The call can only fail again: {describe_failure(error)}."
            elif not self.stopped:
                self.stopped = self._too_many(error)

    def _too_many(self, error: Exception) -> str | None:
        n, last = len(self.failed), f"; the last: {describe_failure(error)}."
        if n > self.allowed:
            return f"{n} question{'s' * (n > 1)} failed, more than the {self.allowed} that --max-failures allows{last}"
        if self._in_a_row >= self.patience:
            return f"{self._in_a_row} calls in a row failed, so that the server seems to be away{last}"
        return None

    def earn(self) -> None:
        """Take note that a call came through."""
        with self._lock:
            self._in_a_row = 0

    def check(self) -> None:
        """Raise `RunStoppedError` if the run is to stop."""
        if self.stopped:
            raise RunStoppedError(self.stopped)

    def stop(self, reason: str) -> None:
        """Stop the run: no call is begun after this."""
        self.stopped = self.stopped or reason


@dataclass(slots=True)
class Settled:
    """A row with what every rule decided on it."""

    row: Row
    case: Case
    outcomes: Mapping[str, Outcome]
    consultations: Mapping[Role, Consultation]

    @property
    def failed(self) -> frozenset[Role]:
        """The roles whose call did not come through."""
        return frozenset(role for role, one in self.consultations.items() if one.outcome == "failed")


@dataclass(frozen=True)
class Runner:
    """Settles rows, in any number of threads or tasks at once."""

    roles: Mapping[Role, RoleCall]
    settings: Settings
    rules: Sequence[str]
    journal: Journal
    recordings: Recordings
    budget: FailureBudget
    spending: Spending = field(default_factory=Spending)
    timeout: float = 600.0
    on_first_call: Callable[[Role], None] = field(default=lambda _: None)
    on_consultation: Callable[[Consultation], None] = field(default=lambda _: None)
    _flushes: "_Flushes" = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_flushes", _Flushes(self.journal))

    def settle(self, pool: str, row: Row) -> Settled:
        """Decide one row by every rule, asking what has not been asked."""
        case, said = Case(row.to_question(), self.settings), dict[Role, Consultation]()

        def consult(role: Role) -> Reply | NotAskedError:
            return self._take(self._known((pool, row.id, role)) or self._ask((pool, row.id, role), case), case, said)

        return Settled(row, case, drive(self._plan(case, said), consult), said)

    async def asettle(self, pool: str, row: Row) -> Settled:
        """Decide one row as `settle` does, awaiting the roles."""
        case, said = Case(row.to_question(), self.settings), dict[Role, Consultation]()

        async def consult(role: Role) -> Reply | NotAskedError:
            known = self._known((pool, row.id, role))
            return self._take(known or await self._aask((pool, row.id, role), case), case, said)

        return Settled(row, case, await adrive(self._plan(case, said), consult), said)

    def _plan(self, case: Case, said: Mapping[Role, Consultation]) -> Generator[Role, Any, dict[str, Outcome]]:
        """All rules on the same replies: yields a role the first time that any rule needs it."""
        replies: dict[Role, Any] = {}
        outcomes = {}
        for name in self.rules:
            steps, asked, reply = case.rule(name)(case), dict[Role, Reply](), None
            while True:
                try:
                    role = steps.send(reply)
                except StopIteration as stop:
                    outcomes[name] = _outcome(case.record(stop.value, asked), said)
                    break
                if role not in replies:
                    replies[role] = yield role
                if isinstance(replies[role], NotAskedError):
                    outcomes[name] = Outcome(None, missing=role)
                    break
                asked[role] = reply = replies[role]
        return outcomes

    def _known(self, key: Key) -> Consultation | NotAskedError | None:
        """What is journaled or recorded; None where the role has to be asked."""
        found = self.journal.find(key)
        if found is not None:
            return found
        self.budget.check()
        if not self.recordings.governs(key[0], key[2]):
            return None
        try:
            recorded = self.recordings.find(key)
        except NotAskedError as absent:
            return absent
        self.journal.append(recorded)
        return recorded

    def _call(self, role: Role) -> RoleCall:
        """The role about to be called; stated in the journal before its first call."""
        call = self.roles[role]
        if call.without_lm:
            raise ArgumentError(
                f"The {role} has no LM: give --{role} MODEL or --lm MODEL, or configure one by dspy.configure(lm=...)."
            )
        self.on_first_call(role)
        return call

    def _ask(self, key: Key, case: Case) -> Consultation:
        call, inputs = self._call(key[2]), case.question.role_inputs(key[2])
        began = time.monotonic()
        with metering(self._meter()) as meter:
            try:
                said: Said | Exception = (
                    ask(call.module, inputs)
                    if call.embedded
                    else within(self.timeout, lambda: ask(call.module, inputs))
                )
            except (*FAILURES, RunStoppedError) as error:
                said = error
        outcome = self._outcome(key, case, said, meter, time.monotonic() - began)
        self.journal.flush(self._write(outcome, said))
        self._count(key, said)
        return outcome

    async def _aask(self, key: Key, case: Case) -> Consultation:
        call, inputs = self._call(key[2]), case.question.role_inputs(key[2])
        began = time.monotonic()
        with metering(self._meter()) as meter:
            try:
                said: Said | Exception = await (
                    awithin(self.timeout, aask(call.module, inputs))
                    if knows_async(call.module)
                    else thread_within(self.timeout, lambda: ask(call.module, inputs))
                )
            except (*FAILURES, RunStoppedError) as error:
                said = error
        outcome = self._outcome(key, case, said, meter, time.monotonic() - began)
        await self._flushes.flush(self._write(outcome, said))
        self._count(key, said)
        return outcome

    def _meter(self) -> Meter:
        return Meter(stopped=lambda: self.budget.stopped is not None, spending=self.spending)

    def _outcome(self, key: Key, case: Case, said: Said | Exception, meter: Meter, seconds: float) -> Consultation:
        """What came of a call, as it is journaled."""
        pool, question, role = key
        call = self.roles[role]
        outcome = Consultation(
            pool,
            question,
            role,
            "failed" if isinstance(said, Exception) else "ok",
            fingerprint=call.fingerprint,
            asked=call.model,
            served=meter.served,
            attempt=self.journal.attempts(key) + 1,
            calls=meter.calls,
            cached=len(meter.cached),
            prompt_characters=meter.prompt_characters,
            prompt_tokens=meter.prompt_tokens,
            completion_tokens=meter.completion_tokens,
            cost=meter.cost,
            seconds=round(seconds, 6),
        )
        if isinstance(said, Exception):
            return replace(outcome, reason=describe_failure(said))
        return _read(outcome, said, case)

    def _write(self, outcome: Consultation, said: Said | Exception) -> int:
        """Write what came of a call to the journal; return up to where to flush it, and only then does it count."""
        if isinstance(said, RunStoppedError):
            self.budget.stop(str(said))
            if not outcome.calls:
                raise said
        # What else a role paid for cannot be known.
        return self.journal.write(outcome, flush=not self.roles[outcome.role].embedded)

    def _count(self, key: Key, said: Said | Exception) -> None:
        """Count a call that is in the journal."""
        if isinstance(said, Exception):
            self.budget.spend(key, said)
            self.budget.check()
        elif not self.roles[key[2]].embedded:
            self.budget.earn()

    def _take(
        self, found: Consultation | NotAskedError, case: Case, said: dict[Role, Consultation]
    ) -> Reply | NotAskedError:
        if isinstance(found, NotAskedError):
            return found
        said[found.role] = found
        self.on_consultation(found)
        if found.outcome == "ok":
            return read_reply(found.role, found.content or {}, case.question.answers, len(case.question.passages))
        return Abstention(f"failed: {found.reason}" if found.outcome == "failed" else found.reason or "no reason given")


class _Flushes:
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


def _read(outcome: Consultation, said: Said, case: Case) -> Consultation:
    """What a role said, as an answer or as the abstention that it is."""
    reply = read_reply(outcome.role, said.content, case.question.answers, len(case.question.passages))
    content = {name: value for name, value in said.content.items() if name != "abstained"} or None
    if isinstance(reply, Abstention):
        return replace(outcome, outcome="abstained", reason=reply.reason, content=content)
    return replace(outcome, content=content)


def _outcome(decision: Decision, said: Mapping[Role, Consultation]) -> Outcome:
    used = [said[role] for role in decision.consulted]
    return Outcome(decision, None, {one.role: one.calls for one in used}, sum(one.seconds or 0.0 for one in used))


def describe_failure(error: Exception) -> str:
    """Return a failure in one line, without its traceback."""
    return f"{type(error).__name__}: {redacted(' '.join(str(error).split())):.300}"
