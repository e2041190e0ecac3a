"""A run under way, and a row through it: every rule on identical consultations.

Each consultation is looked up, replayed or asked once. Nothing here loops over rows, and only the journal is written;
see `eldgr_dspy.programs.run.evaluation` for the run around it.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from eldgr_dspy.answer_types.comparing import Comparisons, recorded_in
from eldgr_dspy.errors import ArgumentError, NotAskedError
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.run.role_calls import RoleCall
from eldgr_dspy.programs.run.role_queries import Books, RoleQuery
from eldgr_dspy.programs.run.settling import Settled, choices
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import inputs_of, naming_question
from eldgr_dspy.rule.consultations import Consultation, Heard, Key
from eldgr_dspy.rule.named_judges import Asked, judge_in, role_of
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.words import is_role


@dataclass(slots=True)
class Watcher:
    """Callbacks for a caller that watches a run. The default ones do nothing. Called from the run's own threads.

    Attributes:
        on_start: The number of questions. on_row: One of them is decided. on_consultation: One was made or looked up.
        on_interrupt: The run was interrupted, and now waits for the calls under way.
    """

    on_start: Callable[[int], None] = field(default=lambda total: None)
    on_row: Callable[[], None] = field(default=lambda: None)
    on_consultation: Callable[[Consultation], None] = field(default=lambda consultation: None)
    on_interrupt: Callable[[], None] = field(default=lambda: None)


@dataclass
class Run:
    """A run under way."""

    plan: Plan
    pools: Sequence[Pool]
    settings: Settings
    roles: Mapping[Asked, RoleCall]
    recordings: Recordings
    books: Books
    watcher: Watcher

    def __post_init__(self) -> None:
        self._decided = set[int]()
        self._comparisons = recorded_in(self.books.journal.heads)
        self._late = {key: {*Comparisons(of).late} for key, of in self._comparisons.items()}

    def settle(self, pool: str, row: Row) -> Generator[RoleQuery, Consultation, Settled]:
        """Decide one row by every rule; yields each question to a role that must be asked, and is sent the answer."""
        # What is recorded of comparing its answers is not compared again.
        recorded = [*self._comparisons.get((pool, row.id), ()), *self.recordings.comparisons(pool, row.id)]
        case = Case(row.to_question(Comparisons(recorded) if recorded else None), self.settings)
        self._record_comparisons(pool, case, row.id)
        consultations = dict[Asked, Consultation]()
        steps, replies = choices(case, self.plan.rules), dict[Asked, Heard]()
        reply: Heard | NotAskedError | None = None
        while True:
            try:
                with naming_question(pool, row.id):
                    label = steps.send(reply)
            except StopIteration as stop:
                return Settled(row, case, stop.value, consultations)
            consultation = self._find((pool, row.id, label))
            if isinstance(consultation, NotAskedError):
                reply = consultation
                continue
            if consultation is None:
                call = self._call(label)
                inputs = inputs_of(case, role_of(label), replies, call.module)
                query = RoleQuery((pool, row.id, label), case, call, self.books, inputs)
                consultation = query.keep(query.make()) if query.call.heuristic else (yield query)
                self.books.journal.flush(query.upto)  # before anything is decided from it
                reply = query.reply
            else:
                reply = journaled_reply(case.question, consultation)
            consultations[label], replies[label] = consultation, reply
            self.watcher.on_consultation(consultation)
            self.books.budget.hear(consultation)

    def _record_comparisons(self, pool: str, case: Case, id: str) -> None:
        """Journal which answers to a question could not be compared in time, unless that is there already."""
        comparisons, key = case.type.comparisons, (pool, id)
        if comparisons is not None and comparisons.is_close and self._late.get(key) != {*comparisons.late}:
            self.books.journal.append_head({"kind": "comparisons", "name": pool, "details": comparisons.record(id)})
            self._late[key] = {*comparisons.late}

    def _find(self, key: Key) -> Consultation | NotAskedError | None:
        """Return what is journaled or recorded, or None if the role must be asked."""
        if (consultation := self.books.journal.find(key)) is not None:
            return consultation
        self.books.budget.check()
        recorded = self.recordings.find(key)
        if isinstance(recorded, Consultation):
            self.books.journal.append(recorded)
        return recorded

    def _call(self, label: Asked) -> RoleCall:
        """The role about to be called."""
        call, role, judge = self.roles[label], role_of(label), judge_in(label)
        if call.without_lm:
            remedy = f"--{role} MODEL or --lm MODEL" if judge is None else f"--judges {judge}=MODEL"
            if not is_role(role):
                label, remedy = f"certificate {self.settings.own}", "it one by set_lm in its module, give --lm MODEL"
            raise ArgumentError(f"The {label} has no LM: give {remedy}, or configure one by dspy.configure(lm=...).")
        return call

    def end(self, pool: Pool, settled: Settled) -> None:
        """Note that a row is decided and counted: only then it is known which answers were compared too late."""
        if self.plan.limit:
            self._decided.add(hash((pool.name, settled.row.id)))
        self._record_comparisons(pool.name, settled.case, settled.row.id)
        self.watcher.on_row()

    def has_decided(self, pool: str, question: str) -> bool:
        """Return whether a question, by its id, was decided: without a limit every question of the pools was."""
        if self.plan.limit:
            return hash((pool, question)) in self._decided
        return any(pool == one.name for one in self.pools)

    def stop(self, error: BaseException) -> None:
        """Make sure that no further call is started."""
        self.books.budget.stop("The run was stopped.")
        if isinstance(error, KeyboardInterrupt):
            self.watcher.on_interrupt()
