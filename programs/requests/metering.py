"""The cost of a consultation: requests, tokens, money and the model that answered, from DSPy's own call records."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import dspy

from eldgr_dspy.errors import RunStoppedError, brief, describe_failure
from eldgr_dspy.formats.journal_lines import is_plausible
from eldgr_dspy.programs.engines.usage import ANY_USAGE, is_count, reported_usage
from eldgr_dspy.programs.requests.limits import Spending
from eldgr_dspy.redaction import redact_message
from eldgr_dspy.showing import encodable

Number = TypeVar("Number", int, float)

_LONGEST_NAME = 1_000  # characters of a server's name for its model

_METER = "eldgr_meter"
"""Holds the meter: a setting of DSPy's, because `dspy.Parallel` passes only those to its threads."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The cost of a request that was answered, in dollars, and what its server reported; None if unknown.

    `implausible` has reported values that cannot be true, as text.
    """

    served: str | None = None
    prompt_characters: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    implausible: str | None = None


@dataclass(slots=True)
class Request:
    """A request under way: DSPy's record of it, once there is one, and whether a server was asked, not the cache."""

    record: Mapping[str, Any] | None = None
    fresh: bool = False


REQUEST: ContextVar[Request | None] = ContextVar("eldgr_request", default=None)  # under way in this thread or task


@dataclass(slots=True)
class Meter:
    """The requests of one consultation. Several threads may add to it.

    Attributes:
        entries: One for each reply that a request was sent for.
        failures: One item for each request that was sent and got no reply.
        cache_hits: One item for each reply from DSPy's cache, for which no request was sent.
        under_way: One item for each request under way.
        over: Whether the consultation has ended: later requests are not counted, and nothing more may be sent.
        wait: Seconds that it waited for a request to be admitted while no other request was under way.
        failure: Why the last request that failed did.
        refusal: Why a request was not admitted, even if the module caught that error.
        tracker: DSPy's usage tracker that the meter replaces.
    """

    entries: list[Entry] = field(default_factory=list)
    failures: list[None] = field(default_factory=list)
    cache_hits: list[None] = field(default_factory=list)
    under_way: list[None] = field(default_factory=list)
    over: bool = False
    wait: float = 0.0
    is_stopped: Callable[[], bool] = field(default=lambda: False)
    spending: Spending = field(default_factory=Spending)
    failure: str | None = None
    refusal: RunStoppedError | None = None
    tracker: Any = None
    _held_until: float = 0.0

    def hold(self, since: float) -> None:
        """Count the time since then (monotonic clock) as waiting.

        While another request is under way it is not counted: then the consultation waits for itself.
        """
        now = time.monotonic()
        if not self.under_way:
            self.wait += max(0.0, now - max(since, self._held_until))
            self._held_until = now

    def admit(self) -> bool:
        """Ask for a request to be admitted. Return False if it must wait. Raise as `Spending.admit`, and note it."""
        try:
            return self.spending.admit()
        except RunStoppedError as error:
            self.refusal = error
            raise

    def begin(self) -> bool:
        """Record that an admitted request is about to be sent. Return False if the consultation has ended."""
        self.under_way.append(None)
        if self.over:
            self.withdraw()
        return not self.over

    def withdraw(self) -> None:
        """Record that it was not sent."""
        if self._end():
            self.spending.withdraw()

    def fail(self, error: BaseException) -> None:
        """Record that it was sent, and not answered with a reply."""
        if self._lose():
            self.failure = describe_failure(error) if isinstance(error, Exception) else self.failure

    def answer(self, entry: Entry) -> None:
        """Record that it was answered, even if the consultation had already ended."""
        if self._end():
            self.spending.count_reply(entry.cost)
            self.entries.append(entry)
        else:
            self.spending.count_late_reply(entry.cost)

    def answer_from_cache(self) -> None:
        """Record that DSPy's cache answered instead."""
        if self._end():
            self.spending.withdraw()
            self.cache_hits.append(None)

    def take(self, entries: Sequence[Entry], n_failures: int, n_cache_hits: int, failure: str | None) -> None:
        """Record what another process has sent, for a request that was admitted and begun here."""
        further = len(entries) + n_failures + n_cache_hits - 1
        self.spending.send(further)
        self.under_way.extend([None] * max(0, further))
        self.failure = failure or self.failure
        for entry in entries:
            self.answer(entry)
        for _ in range(n_cache_hits):
            self.answer_from_cache()
        for _ in range(n_failures):
            self._lose()
        if further < 0:
            self.withdraw()

    def _lose(self) -> bool:
        """Count a request under way as one that was not answered, unless `close` has already."""
        is_under_way = self._end()
        if is_under_way:
            self.spending.count_failure()
            self.failures.append(None)
        return is_under_way

    def _end(self) -> bool:
        """Remove a request from those under way. Return False if `close` has already removed and counted it."""
        with suppress(IndexError):
            self.under_way.pop()
            return True
        return False

    def add_usage(self, lm: str, usage: dict[str, Any]) -> None:
        """Record that a reply was not cached: DSPy reports usage only for those, just before a call's record."""
        request = REQUEST.get()
        if request is not None:
            request.fresh = True
        if self.tracker is not None:
            self.tracker.add_usage(lm, usage)

    def close(self) -> None:
        """Record that the consultation has ended: a request that is still under way was not answered in time."""
        self.over = True
        while self._lose():
            pass

    def __deepcopy__(self, memo: object) -> "Meter":
        return self  # `dspy.Parallel` copies usage trackers for its threads

    @property
    def n_failures(self) -> int:
        return len(self.failures)

    @property
    def calls(self) -> int:
        return len(self.entries) + self.n_failures

    def sums(self) -> dict[str, Any]:
        """Return the fields of a journaled consultation that say what was sent for it.

        Tokens and dollars are None, for unknown, if one reply did not report them. `dearest` is of several requests.
        """
        entries, cost = self.entries, _total([entry.cost for entry in self.entries], math.fsum)
        return {
            "served": entries[-1].served if entries else None,
            "calls": self.calls,
            "cached": len(self.cache_hits),
            "prompt_characters": sum(entry.prompt_characters for entry in entries) if entries else None,
            "prompt_tokens": _total([entry.prompt_tokens for entry in entries]),
            "completion_tokens": _total([entry.completion_tokens for entry in entries]),
            "cost": cost,
            "dearest": None if self.calls < 2 or cost is None else max(entry.cost or 0.0 for entry in entries),
            "implausible": next((entry.implausible for entry in entries if entry.implausible), None),
        }


def _total(counts: list[Number | None], add: Callable[[list[Number]], Number] = sum) -> Number | None:
    numbers = [count for count in counts if count is not None]
    total = add(numbers)
    return total if numbers and len(numbers) == len(counts) and is_plausible(total) else None


@contextmanager
def metering(meter: Meter | None = None) -> Iterator[Meter]:
    """Collect what the metered LMs send inside the block; after it they send nothing more for it."""
    meter = meter or Meter()
    meter.tracker = dspy.settings.usage_tracker
    with dspy.context(**{_METER: meter, "usage_tracker": meter}, **ANY_USAGE):
        try:
            yield meter
        finally:
            meter.close()


def current_meter() -> Meter | None:
    meter: Meter | None = dspy.settings.get(_METER)
    return meter


def entry_of(record: Mapping[str, Any]) -> Entry:
    """Read DSPy's record of a call. A prompt always has tokens, so LiteLLM's zero means unknown."""
    usage = {**reported_usage(record.get("response")), **(record.get("usage") or {})}
    report = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")} | {"cost": record.get("cost")}
    prompt_tokens, reply_tokens = _count(report["prompt_tokens"]) or None, _count(report["completion_tokens"])
    cost, model = report["cost"], record.get("response_model")
    figures = {name: value for name, value in report.items() if value is not None}
    odd = [one for one in figures if not (is_plausible(figures[one]) and (one == "cost" or is_count(figures[one])))]
    return Entry(
        served=encodable(redact_message(model[:_LONGEST_NAME])) if isinstance(model, str) and model else None,
        prompt_characters=_characters(record),
        prompt_tokens=prompt_tokens,
        completion_tokens=None if prompt_tokens is None else reply_tokens,
        cost=float(cost) if prompt_tokens is not None and cost is not None and is_plausible(cost) else None,
        implausible=", ".join(f"{name} {_implausible(figures[name])}" for name in odd) or None,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and is_plausible(value) else None


def _implausible(value: Any) -> str:
    if type(value) not in (int, float) or value != value:
        return brief(str(value), 20)
    return "below 0" if value < 0 else "over 10^15" if value > 10**15 else f"{value:g}"


def _characters(record: Mapping[str, Any]) -> int:
    contents = [message.get("content") for message in record.get("messages") or ()]
    parts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    texts = [part.get("text") if isinstance(part, dict) else part for part in [*parts, record.get("prompt")]]
    return sum(len(text) for text in texts if isinstance(text, str))
