"""A role or a program as a run calls it, described by everything that shapes the call; and one question put to it."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import dspy

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.formats.journal_lines import TOO_LARGE, is_readable
from eldgr_dspy.programs.lms.consulting import FAILURES, RoleOutput, ask, ask_without_lm
from eldgr_dspy.programs.lms.lms import sub_modules
from eldgr_dspy.programs.requests.limits import FailureBudget, Spending, allowed_questions
from eldgr_dspy.programs.requests.metered_lms import metered_lm, with_meter
from eldgr_dspy.programs.requests.metering import Meter, metering
from eldgr_dspy.programs.run.fingerprints import asks_by_code, describe, fingerprint, predictors
from eldgr_dspy.programs.run.plan import Limits
from eldgr_dspy.programs.run.run_directory import RunDirectory
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.service_log import log_silence
from eldgr_dspy.redaction import redact_value
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import naming_question
from eldgr_dspy.rule.consultations import Abstention, Consultation, Heard, Key, kind_in_line
from eldgr_dspy.rule.named_judges import Label, judge_in, label_of, role_of
from eldgr_dspy.rule.replies import heard_from
from eldgr_dspy.words import ROLES, Consulted


@dataclass(frozen=True, slots=True)
class RoleCall:
    """A role as a run calls it, and the model that it asks, None for a heuristic role."""

    module: dspy.Module
    details: Mapping[str, Any]
    fingerprint: str
    model: str | None
    without_lm: bool = False
    """Whether it has a prompt but no LM to put it to."""
    elsewhere: Callable[[Mapping[str, object], Consulted], RoleOutput] | None = None
    """Asks it in another process; None to ask in this one."""

    @property
    def heuristic(self) -> bool:
        """Whether it says that it asks no LM: it costs nothing, and cannot hang."""
        return not getattr(self.module, "asks_lm", True)

    def ask(self, inputs: Mapping[str, object], role: Consulted) -> RoleOutput:
        if self.elsewhere is not None:
            return self.elsewhere(inputs, role)
        return (ask_without_lm if self.heuristic else ask)(self.module, inputs, role)


@contextmanager
def metered_settings() -> Iterator[None]:
    """Meter the LM of the surrounding context; make DSPy keep the records that the meter reads, but no trace."""
    lm = dspy.settings.lm
    with dspy.context(lm=None if lm is None else metered_lm(lm), disable_history=False, trace=None):
        yield


def role_call(module: dspy.Module) -> RoleCall:
    """Return a role module as a run calls it, in the settings that the run will have."""
    details = describe(module)
    lms = [predictor.lm or dspy.settings.lm for _, predictor in predictors(module)]
    own_lms = [lm for _, lm in sub_modules(module, dspy.BaseLM)]
    all_lms = [*lms, *own_lms, *([dspy.settings.lm] if asks_by_code(module) else [])]
    model = "+".join(sorted({lm.model for lm in all_lms if lm is not None})) or None
    parts = (part for _, part in sub_modules(module, dspy.Module) if not isinstance(part, dspy.Predict))
    # A part that does not say whether it sets an LM when it is called may do so.
    sets_lm = any(getattr(part, "asks_lm", True) and getattr(part, "sets_lm", True) for part in parts)
    without_lm = None in lms and not sets_lm
    return RoleCall(with_meter(module), details, fingerprint(details), model, without_lm)


def modules_of(selector: Selector, judges: Mapping[str, dspy.Module]) -> dict[Label, dspy.Module]:
    """Return the modules that a run asks: a selector's roles; named judges, if there are any, replace its own."""
    roles: dict[Label, dspy.Module] = {role: getattr(selector, role) for role in ROLES if role != "judge" or not judges}
    return {label_of("judge", name): module for name, module in judges.items()} | roles


def calls_of_roles(selector: Selector, judges: Mapping[str, dspy.Module]) -> dict[Label, RoleCall]:
    """Return the calls of the roles that a run asks, and of a certificate that is consulted."""
    calls = {label: role_call(module) for label, module in modules_of(selector, judges).items()}
    if selector.certifier is not None:
        calls["certificate"] = calls["repair_certificate"] = role_call(selector.certifier)
    return calls


class Books:
    """A run's records: its directory with the journal, the failures and their limits, what was sent and its limits."""

    def __init__(
        self, directory: RunDirectory, limits: Limits, n: int, max_abstentions: int | str | None = None
    ) -> None:
        """Open the books of a run of `n` questions."""
        failures = allowed_questions("max_failures", limits.max_failures, n)
        unusable = None if max_abstentions is None else allowed_questions("max_abstentions", max_abstentions, n)
        self.directory, self.journal = directory, directory.journal
        self.budget = FailureBudget(failures, max(16, 2 * limits.workers), unusable)
        self.spending = Spending(limits.max_calls, limits.max_cost, self.journal.consultations())

    def stop(self, what: str, on_interrupt: Callable[[], None], error: BaseException) -> None:
        """Make sure that no further call is started."""
        self.budget.stop(f"The {what} was stopped.")
        if isinstance(error, KeyboardInterrupt):
            on_interrupt()


class Query(ABC):
    """A question about to be put to a module: a call, as `eldgr_dspy.programs.run.scheduling` makes it."""

    failures: tuple[type[Exception], ...] = (*FAILURES, RunStoppedError)
    """What the module raises if the call did not come through; anything else it raises is a bug."""

    def __init__(self, key: Key, call: RoleCall, books: Books) -> None:
        self._key, self.call, self._books = key, call, books
        self._meter = Meter(is_stopped=lambda: books.budget.reason is not None, spending=books.spending)
        self._start = time.monotonic()
        self.upto = 0  # up to which byte the journal must be flushed before anything is decided from the reply

    @abstractmethod
    def _ask(self) -> Any:
        """Ask, and return the reply."""

    @abstractmethod
    def _read(self, result: Any) -> dict[str, Any]:
        """Return the fields in which a reply is journaled: outcome, reason and content."""

    @property
    def wait(self) -> float:
        return self._meter.wait

    @property
    def failure(self) -> str | None:
        return self._meter.failure

    def make(self) -> Any:
        """Ask. A failure is returned."""
        self._start = time.monotonic()
        with nullcontext() if self.call.heuristic else metering(self._meter):
            try:
                self._books.budget.check()  # the run may have been stopped meanwhile
                self._books.directory.claim_role(self._key[2], self.call.details)
                result = self._ask()
            except self.failures as error:
                result = error
        return self._meter.refusal or result

    def keep(self, result: Any) -> Consultation:
        """Write the reply to the journal, or that it is late, and count it. The caller that decides from it flushes."""
        seconds = max(0.0, time.monotonic() - self._start - self.wait)
        self._meter.close()  # nothing more is sent for it
        pool, id, label = self._key
        outcome = Consultation(
            pool,
            id,
            role_of(label),
            judge=judge_in(label),
            **self._read(result),
            fingerprint=self.call.fingerprint,
            asked=self.call.model,
            attempt=self._books.journal.attempts(self._key) + 1,
            **self._meter.sums(),
            seconds=round(seconds, 6),
        )
        if isinstance(result, RunStoppedError):
            self._books.budget.stop(str(result))
            if not outcome.calls:
                raise result
        # The run does not know of anything else that a role paid for.
        self.upto = self._books.journal.write(outcome, flush=not self.call.heuristic)
        self._count(result)
        return outcome

    def _count(self, result: Any) -> None:
        if isinstance(result, Exception):
            self._books.budget.spend(self._key, result)
            self._books.budget.check()
        elif not self.call.heuristic:
            self._books.budget.earn()


class RoleQuery(Query):
    """A question that is about to be put to a role."""

    def __init__(self, key: Key, case: Case, call: RoleCall, books: Books, inputs: Mapping[str, object]) -> None:
        super().__init__(key, call, books)
        self._case, self._inputs = case, inputs
        self.reply: Heard = Abstention("not asked")  # as rules see it

    def _ask(self) -> RoleOutput:
        pool, id, label = self._key
        with naming_question(pool, id):
            try:
                return self.call.ask(self._inputs, role_of(label))
            except Exception as error:
                if not isinstance(error, self.failures):
                    error.add_note(f"Raised by the {label} on question {id!r} of pool {pool!r}.")
                raise

    def _read(self, result: RoleOutput | Exception) -> dict[str, Any]:
        if isinstance(result, Exception):
            self.reply = Abstention.failure(result)
            fields: dict[str, Any] = {"outcome": "failed", "reason": self.reply.text}
        else:
            fields, self.reply = _reply(role_of(self._key[2]), result, self._case)
        if isinstance(self.reply, Abstention) and not isinstance(result, RunStoppedError):
            log_silence(self._key[2], self.reply)
        return fields


def _reply(role: Consulted, output: RoleOutput, case: Case) -> tuple[dict[str, Any], Heard]:
    """Return a role's reply, as it is journaled and as rules see it: an answer, or an abstention."""
    fields = redact_value(output.content)
    reply = heard_from(case.question, role, fields)
    if not is_readable(fields):
        fields, reply = {}, Abstention.of("unreadable", TOO_LARGE)
    if not isinstance(reply, Abstention):
        return {"outcome": "ok", "content": fields or None}, reply
    in_line = ("abstained", "kind") if "abstained" in fields else ()
    content = {name: value for name, value in fields.items() if name not in in_line}
    if kind_in_line(role, reply.reason, content) != reply.kind:
        content["kind"] = reply.kind
    return {"outcome": "abstained", "reason": reply.reason, "content": content or None}, reply
