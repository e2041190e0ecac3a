"""Rows through rules: every rule on identical consultations, each of which is looked up, replayed or asked once.

The runner turns a row into decisions. It has no loop over rows and writes only the journal; see
`eldgr_dspy.programs.run.evaluation` for the run around it.
"""

import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from eldgr_dspy.cases import Case
from eldgr_dspy.certifying import certifying, inputs_of, naming_question, replies_in
from eldgr_dspy.consultations import Consultation, Heard, Key
from eldgr_dspy.decision import Choice
from eldgr_dspy.errors import ArgumentError, JournalError, NotAskedError, RunChangedError, brief
from eldgr_dspy.figures.summary import Outcome
from eldgr_dspy.journal import Journal, TornLineWarning, read_journal
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.run.failures import FailureBudget
from eldgr_dspy.programs.run.role_calls import RoleCall
from eldgr_dspy.programs.run.role_queries import Books, Flushes, RoleQuery
from eldgr_dspy.programs.run.spending import Spending
from eldgr_dspy.questions import Settings
from eldgr_dspy.redaction import redacted_value
from eldgr_dspy.replies import journaled_reply
from eldgr_dspy.showing import shown
from eldgr_dspy.words import Consulted, is_role


class Recordings:
    """Recorded consultations, used instead of calls. A role recorded for a pool is never asked of that pool."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Read a journal, or none. Entries without a pool match any; a failed one does not answer its question.

        A torn last line is skipped with a `TornLineWarning`.

        Raises:
            JournalError: if it holds nothing that can be used.
        """
        self.path = path = None if path is None else Path(path)
        self._found: dict[Key, Consultation] = {}
        self._heads: list[dict[str, Any]] = []
        self._governed: set[tuple[str, Consulted]] = set()
        torn = list[JournalError]()
        for entry in read_journal(path, self._heads, torn.append) if path else ():
            self._governed.add((entry.pool, entry.role))
            if entry.settled:
                clean = {name: redacted_value(getattr(entry, name)) for name in ("content", "reason", "served")}
                self._found[entry.key] = replace(entry, **clean)
        if torn and self._found:
            message = f"{path}: the last line is torn and skipped; its record is missing."
            warnings.warn(shown(message), TornLineWarning, stacklevel=4)
        elif torn:
            raise torn[0]
        elif path is not None and not self._found:
            what = "no consultation that came through" if self._governed else "no consultation"
            raise JournalError(f"{path}: holds {what}; a recording is a journal, one consultation a line.")

    def governs(self, pool: str, role: Consulted) -> bool:
        """Whether `role` is recorded for `pool`, so that it is not asked."""
        return (pool, role) in self._governed or ("", role) in self._governed

    def require_made_for(self, pools: Sequence[Pool]) -> None:
        """Refuse pools if nothing is recorded for any of them, since every role would be asked, and a changed pool.

        Raises:
            ArgumentError: naming the pools that it was recorded for.
            RunChangedError: naming a pool that is not the one of its name that it was made on.
        """
        recorded = {pool for pool, _ in self._governed}
        if self.path is not None and recorded.isdisjoint({"", *(pool.name for pool in pools)}):
            names, given = (", ".join(map(repr, sorted(some))) for some in (recorded, {pool.name for pool in pools}))
            raise ArgumentError(
                f"{self.path}: recorded for {brief(names, 200)}, not for {brief(given, 200)}, so it would answer "
                "nothing; give a pool that it was recorded for, or no --replay."
            )
        for pool in pools:
            self._require_made_on(pool)

    def _require_made_on(self, pool: Pool) -> None:
        for head in self._heads:
            if (head["kind"], head["name"]) == ("pool", pool.name):
                made_on = head["details"].get("sha256", pool.sha256)
                if made_on != pool.sha256:
                    raise RunChangedError(
                        f"{self.path}: recorded on another pool {pool.name!r} (sha256 {made_on!r:.80}) than the one "
                        f"given ({pool.sha256!r}); give that pool, or a recording of this one."
                    )

    def require_unchanged(self, journaled: Iterable[Consultation], pools: Collection[Pool]) -> None:
        """Refuse to resume if the recording now has another consultation of these pools; one it lacks is kept.

        Raises:
            RunChangedError: naming the consultation.
        """
        names = {pool.name for pool in pools}
        for entry in journaled if self.path is not None else ():
            if entry.recorded and entry.pool in names:
                self._require_same(entry)

    def _require_same(self, replayed: Consultation) -> None:
        pool, question, role = replayed.key
        now = self._get(replayed.key)
        if now and (now.outcome, now.content, now.reason) != (replayed.outcome, replayed.content, replayed.reason):
            raise RunChangedError(
                f"{self.path}: the {role} of question {question!r} of pool {pool!r} is not the one this run used; "
                "undo the change, give another --out, or start anew with --fresh (the old journal is kept)."
            )

    def _get(self, key: Key) -> Consultation | None:
        return self._found.get(key) or self._found.get(("", *key[1:]))

    def find(self, key: Key) -> Consultation:
        """Return the recorded consultation. Raises `NotAskedError` without one: a gap does not count as abstention."""
        pool, question, role = key
        entry = self._get(key)
        if entry is None:
            raise NotAskedError(f"The recording holds no {role} for question {question!r} of pool {pool!r}.")
        return replace(entry, pool=pool, recorded=True, calls=0)


class _Chosen(NamedTuple):
    """A rule's choice, and the replies that it asked for, those of certificates included."""

    choice: Choice
    heard: Mapping[Consulted, Heard]


@dataclass(slots=True)
class Settled:
    """A row with each rule's choice on it, or the role that the rule lacks."""

    row: Row
    case: Case
    chosen: Mapping[str, "_Chosen | Consulted"]
    consultations: Mapping[Consulted, Consultation]

    def outcomes(self) -> dict[str, Outcome]:
        """Write down every rule's decision; asking can continue without it."""
        return {name: self._outcome(chosen) for name, chosen in self.chosen.items()}

    def _outcome(self, chosen: "_Chosen | Consulted") -> Outcome:
        if not isinstance(chosen, _Chosen):
            return Outcome(None, missing=chosen)
        used = [self.consultations[role] for role in chosen.heard]
        return Outcome(self.case.record(chosen.choice, replies_in(chosen.heard)), None, used)

    @property
    def failed(self) -> frozenset[Consulted]:
        """The roles whose call did not come through."""
        return frozenset(role for role, consultation in self.consultations.items() if consultation.outcome == "failed")


@dataclass(frozen=True)
class Runner:
    """Settles rows, any number at once, in steps."""

    roles: Mapping[Consulted, RoleCall]
    settings: Settings
    rules: Sequence[str]
    journal: Journal
    recordings: Recordings
    budget: FailureBudget
    spending: Spending = field(default_factory=Spending)
    on_first_call: Callable[[Consulted], None] = field(default=lambda _: None)
    on_consultation: Callable[[Consultation], None] = field(default=lambda _: None)
    _books: Books = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_books", Books(self.journal, self.budget, self.spending, self.on_first_call, Flushes(self.journal))
        )

    def settle(self, pool: str, row: Row) -> Generator[RoleQuery, Consultation, Settled]:
        """Decide one row by every rule; yields each question to a role that must be asked, and is sent the answer."""
        case, said = Case(row.to_question(), self.settings), dict[Consulted, Consultation]()
        steps, heard = self._plan(case), dict[Consulted, Heard]()
        reply: Heard | NotAskedError | None = None
        while True:
            try:
                with naming_question(pool, row.id):
                    role = steps.send(reply)
            except StopIteration as stop:
                return Settled(row, case, stop.value, said)
            consultation = self._known((pool, row.id, role))
            if isinstance(consultation, NotAskedError):
                reply = consultation
                continue
            if consultation is None:
                inputs = inputs_of(case, role, heard)
                query = RoleQuery((pool, row.id, role), case, self._call(role), self._books, inputs)
                consultation = query.keep(query.make()) if query.call.heuristic else (yield query)
                self.journal.flush(query.upto)  # before anything is decided from it
                reply = query.reply
            else:
                reply = journaled_reply(case.question, consultation)
            said[role], heard[role] = consultation, reply
            self.on_consultation(consultation)
            self.budget.hear(consultation)

    def _plan(self, case: Case) -> Generator[Consulted, Any, dict[str, "_Chosen | Consulted"]]:
        """Drive all rules on the same replies: yields a role the first time that any rule needs it."""
        replies: dict[Consulted, Any] = {}
        chosen: dict[str, _Chosen | Consulted] = {}
        for name in self.rules:
            steps, asked, reply, role = certifying(case.rule(name))(case), dict[Consulted, Heard](), None, None
            while True:
                try:
                    role = steps.send(reply)
                except StopIteration as stop:
                    chosen[name] = _Chosen(stop.value, asked)
                    break
                except NotAskedError:  # a recorded certificate is of other answers
                    chosen[name] = role or "certificate"
                    break
                if role not in replies:
                    replies[role] = yield role
                if isinstance(replies[role], NotAskedError):
                    chosen[name] = role
                    break
                asked[role] = reply = replies[role]
        return chosen

    def _known(self, key: Key) -> Consultation | NotAskedError | None:
        """Return what is journaled or recorded; None if the role must be asked."""
        consultation = self.journal.find(key)
        if consultation is not None:
            return consultation
        self.budget.check()
        if not self.recordings.governs(key[0], key[2]):
            return None
        try:
            recorded = self.recordings.find(key)
        except NotAskedError as absent:
            return absent
        self.journal.append(recorded)
        return recorded

    def _call(self, role: Consulted) -> RoleCall:
        """The role about to be called."""
        call = self.roles[role]
        if call.without_lm and not is_role(role):
            raise ArgumentError(
                f"The certificate {self.settings.own} has no LM: give it one by set_lm in its module, give --lm MODEL, "
                "or configure one by dspy.configure(lm=...)."
            )
        if call.without_lm:
            raise ArgumentError(
                f"The {role} has no LM: give --{role} MODEL or --lm MODEL, or configure one by dspy.configure(lm=...)."
            )
        return call
