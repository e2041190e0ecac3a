"""A run under way, and a row through it: every rule on identical consultations.

Each consultation is looked up, replayed or asked once. Nothing here loops over rows, and only the journal is written;
see `eldgr_dspy.programs.run.evaluation` for the run around it.
"""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eldgr_dspy.answer_types.comparing import Comparisons, recorded_in
from eldgr_dspy.decision import Choice, Decision
from eldgr_dspy.errors import ArgumentError, NotAskedError
from eldgr_dspy.figures.decided_rows import Outcome
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.requests.limits import FailureBudget, Spending
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.run.role_calls import RoleCall
from eldgr_dspy.programs.run.role_queries import Books, RoleQuery
from eldgr_dspy.programs.run.run_directory import RoleStatements, RunDirectory
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certifying, inputs_of, naming_question, replies_in
from eldgr_dspy.rule.consultations import Consultation, Heard, Key
from eldgr_dspy.rule.named_judges import Asked, asked_by, judge_in, role_of
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.words import Consulted, is_role


class _Chosen(NamedTuple):
    """A rule's choice, and the replies that it asked for, those of certificates included."""

    choice: Choice
    replies: Mapping[Consulted, Heard]


@dataclass(slots=True)
class Settled:
    """A row with each rule's choice on it, or the role that the rule lacks."""

    row: Row
    case: Case
    chosen: Mapping[str, "_Chosen | Consulted"]
    consultations: Mapping[Asked, Consultation]

    def outcomes(self) -> dict[str, Outcome]:
        """Write down every rule's decision; asking can continue without it."""
        recorded: dict[Hashable, Decision] = {}  # rules that choose the same on the same replies decide the same
        return {name: self._outcome(name, chosen, recorded) for name, chosen in self.chosen.items()}

    def _outcome(self, rule: str, chosen: "_Chosen | Consulted", recorded: dict[Hashable, Decision]) -> Outcome:
        if not isinstance(chosen, _Chosen):
            return Outcome(None, missing=chosen)
        choice, replies = chosen.choice, replies_in(chosen.replies)
        same = type(choice), choice.branch, *replies, *map(id, (choice.answer, *replies.values()))
        if same not in recorded:
            recorded[same] = self.case.record(choice, replies)
        used = [self.consultations[asked_by(rule, role)] for role in chosen.replies]
        return Outcome(recorded[same], None, used)

    @property
    def failed(self) -> frozenset[Asked]:
        """Who had a call that did not come through."""
        return frozenset(
            label for label, consultation in self.consultations.items() if consultation.outcome == "failed"
        )


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
    """A run under way: its plan, its directory with the journal, whom it asks, and what is counted of it.

    Attributes:
        plan: What to do. pools: those of the plan. settings: of the rules.
        directory: The run directory, with the journal. roles: whom the run asks, as it calls them.
        recordings: Used instead of calls. budget, spending: the limits, and what counts for them.
        state: States a role in the journal before it is asked. watcher: callbacks.
        comparisons: What is journaled of comparing answers, by pool and question.
    """

    plan: Plan
    pools: Sequence[Pool]
    settings: Settings
    directory: RunDirectory
    roles: Mapping[Asked, RoleCall]
    recordings: Recordings
    budget: FailureBudget
    spending: Spending
    state: RoleStatements
    watcher: Watcher
    comparisons: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]] = field(init=False)

    def __post_init__(self) -> None:
        self.comparisons = recorded_in(self.directory.journal.heads)
        self._decided = set[int]()
        self._books = Books(self.directory.journal, self.budget, self.spending, self.state.claim)
        self._late = {key: {*Comparisons(of).late} for key, of in self.comparisons.items()}

    def settle(self, pool: str, row: Row) -> Generator[RoleQuery, Consultation, Settled]:
        """Decide one row by every rule; yields each question to a role that must be asked, and is sent the answer."""
        case, consultations, journal = self._case(pool, row), dict[Asked, Consultation](), self.directory.journal
        steps, replies = self._plan(case), dict[Asked, Heard]()
        reply: Heard | NotAskedError | None = None
        while True:
            try:
                with naming_question(pool, row.id):
                    label = steps.send(reply)
            except StopIteration as stop:
                return Settled(row, case, stop.value, consultations)
            consultation = self._recorded((pool, row.id, label))
            if isinstance(consultation, NotAskedError):
                reply = consultation
                continue
            if consultation is None:
                call = self._call(label)
                inputs = inputs_of(case, role_of(label), replies, call.module)
                query = RoleQuery((pool, row.id, label), case, call, self._books, inputs)
                consultation = query.keep(query.make()) if query.call.heuristic else (yield query)
                journal.flush(query.upto)  # before anything is decided from it
                reply = query.reply
            else:
                reply = journaled_reply(case.question, consultation)
            consultations[label], replies[label] = consultation, reply
            self.watcher.on_consultation(consultation)
            self.budget.hear(consultation)

    def record_comparisons(self, pool: str, case: Case, id: str) -> None:
        """Journal which answers to a question could not be compared in time, unless that is there already."""
        comparisons, key = case.type.comparisons, (pool, id)
        if comparisons is not None and comparisons.is_close and self._late.get(key) != {*comparisons.late}:
            self.directory.journal.append_head({"kind": "comparisons", "name": pool, "details": comparisons.record(id)})
            self._late[key] = {*comparisons.late}

    def _case(self, pool: str, row: Row) -> Case:
        """Return a row as a case. What is recorded of comparing its answers is not compared again."""
        recorded = [*self.comparisons.get((pool, row.id), ()), *self.recordings.comparisons(pool, row.id)]
        case = Case(row.to_question(Comparisons(recorded) if recorded else None), self.settings)
        self.record_comparisons(pool, case, row.id)
        return case

    def _plan(self, case: Case) -> Generator[Asked, Any, dict[str, "_Chosen | Consulted"]]:
        """Drive all rules on the same replies: yields whom to ask the first time that any rule needs it."""
        replies: dict[Asked, Any] = {}
        chosen: dict[str, _Chosen | Consulted] = {}
        for name in self.plan.rules:
            steps, replies_used, reply, role = certifying(case.rule(name))(case), dict[Consulted, Heard](), None, None
            while True:
                try:
                    role = steps.send(reply)
                except StopIteration as stop:
                    chosen[name] = _Chosen(stop.value, replies_used)
                    break
                except NotAskedError:  # a recorded certificate is of other answers
                    chosen[name] = role or "certificate"
                    break
                label = asked_by(name, role)
                if label not in replies:
                    replies[label] = yield label
                if isinstance(replies[label], NotAskedError):
                    chosen[name] = role
                    break
                replies_used[role] = reply = replies[label]
        return chosen

    def _recorded(self, key: Key) -> Consultation | NotAskedError | None:
        """Return what is journaled or recorded, or None if the role must be asked."""
        consultation = self.directory.journal.find(key)
        if consultation is not None:
            return consultation
        self.budget.check()
        if not self.recordings.governs(key[0], key[2]):
            return None
        try:
            recorded = self.recordings.find(key)
        except NotAskedError as absent:
            return absent
        self.directory.journal.append(recorded)
        return recorded

    def _call(self, label: Asked) -> RoleCall:
        """The role about to be called."""
        call, role, judge = self.roles[label], role_of(label), judge_in(label)
        if call.without_lm and not is_role(role):
            raise ArgumentError(
                f"The certificate {self.settings.own} has no LM: give it one by set_lm in its module, give --lm MODEL, "
                "or configure one by dspy.configure(lm=...)."
            )
        if call.without_lm:
            remedy = f"--{role} MODEL or --lm MODEL" if judge is None else f"--judges {judge}=MODEL"
            raise ArgumentError(f"The {label} has no LM: give {remedy}, or configure one by dspy.configure(lm=...).")
        return call

    def end(self, pool: Pool, settled: Settled) -> None:
        """Note that a row is decided and counted: only then it is known which answers were compared too late."""
        if self.plan.limit:
            self._decided.add(hash((pool.name, settled.row.id)))
        self.record_comparisons(pool.name, settled.case, settled.row.id)
        self.watcher.on_row()

    def has_decided(self, pool: str, question: str) -> bool:
        """Return whether a question, by its id, was decided: without a limit every question of the pools was."""
        if self.plan.limit:
            return hash((pool, question)) in self._decided
        return any(pool == one.name for one in self.pools)

    def stop(self, error: BaseException) -> None:
        """Make sure that no further call is started."""
        self.budget.stop("The run was stopped.")
        if isinstance(error, KeyboardInterrupt):
            self.watcher.on_interrupt()
