"""Rows through rules: every rule on identical consultations, each of which is looked up, replayed or asked once.

The runner turns a row into decisions. It owns no loop over rows and writes nothing but the journal; see
`eldgr_dspy.programs.run.evaluation` for the run around it.
"""

import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation, Key, Reply
from eldgr_dspy.decision import Choice
from eldgr_dspy.errors import ArgumentError, JournalError, NotAskedError, RunChangedError, brief
from eldgr_dspy.figures.summary import Outcome
from eldgr_dspy.journal import Journal, TornLineWarning, read_journal
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.run.failures import FailureBudget
from eldgr_dspy.programs.run.role_calls import RoleCall
from eldgr_dspy.programs.run.role_queries import Asking, Books, Flushes
from eldgr_dspy.programs.run.spending import Spending
from eldgr_dspy.questions import Settings
from eldgr_dspy.redaction import redacted_value
from eldgr_dspy.replies import journaled_reply
from eldgr_dspy.showing import shown
from eldgr_dspy.words import Role


class Recordings:
    """Recorded consultations, supplied instead of calls. A role recorded for a pool is never asked of that pool."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Read a journal, or none. Entries without a pool stand for any; a failed one says nothing of its question.

        A torn last line is passed over with a `TornLineWarning`.

        Raises:
            JournalError: if there is nothing in it to use.
        """
        self.path = path = None if path is None else Path(path)
        self._found: dict[Key, Consultation] = {}
        self._heads: list[dict[str, Any]] = []
        self._governed: set[tuple[str, Role]] = set()
        torn = list[JournalError]()
        for one in read_journal(path, self._heads, torn.append) if path else ():
            self._governed.add((one.pool, one.role))
            if one.settled:
                clean = {name: redacted_value(getattr(one, name)) for name in ("content", "reason", "served")}
                self._found[one.key] = replace(one, **clean)
        if torn and self._found:
            message = f"{path}: the last line is torn and passed over; what it recorded is missing."
            warnings.warn(shown(message), TornLineWarning, stacklevel=4)
        elif torn:
            raise torn[0]
        elif path is not None and not self._found:
            what = "no consultation that came through" if self._governed else "no consultation"
            raise JournalError(f"{path}: holds {what}; a recording is a journal, one consultation a line.")

    def governs(self, pool: str, role: Role) -> bool:
        """Whether `role` is recorded for `pool`, so that it is not asked."""
        return (pool, role) in self._governed or ("", role) in self._governed

    def require_made_for(self, pools: Sequence[Pool]) -> None:
        """Refuse pools for none of which anything is recorded, since every role would be asked, and one that changed.

        Raises:
            ArgumentError: naming the pools that it was recorded for.
            RunChangedError: naming a pool that is not the one of its name that it was made on.
        """
        recorded = {pool for pool, _ in self._governed}
        if self.path is not None and recorded.isdisjoint({"", *(pool.name for pool in pools)}):
            names, given = (", ".join(map(repr, sorted(some))) for some in (recorded, {pool.name for pool in pools}))
            raise ArgumentError(
                f"{self.path}: recorded for {brief(names, 200)}, and not for {brief(given, 200)}, so that it would "
                "answer nothing; give a pool that it was recorded for, or no --replay."
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
        """Refuse to go on from a consultation of these pools that the recording now has otherwise; one it lacks stands.

        Raises:
            RunChangedError: naming the consultation.
        """
        names = {pool.name for pool in pools}
        for one in journaled if self.path is not None else ():
            if one.recorded and one.pool in names:
                self._require_same(one)

    def _require_same(self, replayed: Consultation) -> None:
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


class _Chosen(NamedTuple):
    """What a rule chose, and the replies that it asked for."""

    choice: Choice
    replies: Mapping[Role, Reply]


@dataclass(slots=True)
class Settled:
    """A row with what every rule chose on it, or the role without which it cannot."""

    row: Row
    case: Case
    chosen: Mapping[str, "_Chosen | Role"]
    consultations: Mapping[Role, Consultation]

    def outcomes(self) -> dict[str, Outcome]:
        """Write down what every rule decided; nothing of it has to be known to go on asking."""
        return {name: self._outcome(chosen) for name, chosen in self.chosen.items()}

    def _outcome(self, chosen: "_Chosen | Role") -> Outcome:
        if not isinstance(chosen, _Chosen):
            return Outcome(None, missing=chosen)
        used = [self.consultations[role] for role in chosen.replies]
        return Outcome(self.case.record(chosen.choice, chosen.replies), None, used)

    @property
    def failed(self) -> frozenset[Role]:
        """The roles whose call did not come through."""
        return frozenset(role for role, one in self.consultations.items() if one.outcome == "failed")


@dataclass(frozen=True)
class Runner:
    """Settles rows, any number at once, in steps."""

    roles: Mapping[Role, RoleCall]
    settings: Settings
    rules: Sequence[str]
    journal: Journal
    recordings: Recordings
    budget: FailureBudget
    spending: Spending = field(default_factory=Spending)
    on_first_call: Callable[[Role], None] = field(default=lambda _: None)
    on_consultation: Callable[[Consultation], None] = field(default=lambda _: None)
    _books: Books = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_books", Books(self.journal, self.budget, self.spending, self.on_first_call, Flushes(self.journal))
        )

    def settle(self, pool: str, row: Row) -> Generator[Asking, Consultation, Settled]:
        """Decide one row by every rule; yields each question to a role that has to be asked, and is sent the answer."""
        case, said = Case(row.to_question(), self.settings), dict[Role, Consultation]()
        steps = self._plan(case)
        reply: Reply | NotAskedError | None = None
        while True:
            try:
                role = steps.send(reply)
            except StopIteration as stop:
                return Settled(row, case, stop.value, said)
            found = self._known((pool, row.id, role))
            if isinstance(found, NotAskedError):
                reply = found
                continue
            if found is None:
                asking = Asking((pool, row.id, role), case, self._call(role), self._books)
                found = asking.keep(asking.make()) if asking.call.embedded else (yield asking)
                self.journal.flush(asking.upto)  # before anything is decided from it
                reply = asking.reply
            else:
                reply = journaled_reply(case.question, found)
            said[role] = found
            self.on_consultation(found)

    def _plan(self, case: Case) -> Generator[Role, Any, dict[str, "_Chosen | Role"]]:
        """All rules on the same replies: yields a role the first time that any rule needs it."""
        replies: dict[Role, Any] = {}
        chosen: dict[str, _Chosen | Role] = {}
        for name in self.rules:
            steps, asked, reply = case.rule(name)(case), dict[Role, Reply](), None
            while True:
                try:
                    role = steps.send(reply)
                except StopIteration as stop:
                    chosen[name] = _Chosen(stop.value, asked)
                    break
                if role not in replies:
                    replies[role] = yield role
                if isinstance(replies[role], NotAskedError):
                    chosen[name] = role
                    break
                asked[role] = reply = replies[role]
        return chosen

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
        """The role about to be called."""
        call = self.roles[role]
        if call.without_lm:
            raise ArgumentError(
                f"The {role} has no LM: give --{role} MODEL or --lm MODEL, or configure one by dspy.configure(lm=...)."
            )
        return call
