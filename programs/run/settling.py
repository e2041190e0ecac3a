"""Every rule on a question, on identical replies: those of a run under way, or those that a run's journal holds.

So any rule, even one written later, is decided from the journal and the pools without an LM. The pools are opened where
they were, or at the files given now, and only with the content that they had.
"""

from collections.abc import Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from eldgr_dspy.answer_types.answers import Score
from eldgr_dspy.decision import Choice, Decision, drive
from eldgr_dspy.errors import ArgumentError, NotAskedError, RunChangedError
from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.record import judge_facts
from eldgr_dspy.figures.results.summary_fields import PoolFigures
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.pools import Pool, Row, open_pools, pool_name
from eldgr_dspy.programs.run.recordings import ConsultationStore
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certifying, naming_question, replies_in
from eldgr_dspy.rule.consultations import Consultation, Heard
from eldgr_dspy.rule.named_judges import Label, asked_by, for_judges, judge_in
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.rule.rules import is_own, rule_named
from eldgr_dspy.words import Consulted


class RuleChoice(NamedTuple):
    """A rule's choice, and the replies that it asked for, those of certificates included."""

    choice: Choice
    replies: Mapping[Consulted, Heard]


def choices(case: Case, rules: Sequence[str]) -> Generator[Label, Any, dict[str, RuleChoice | Consulted]]:
    """Drive all rules on the same replies, yield a role or judge when a rule first needs it, and return the choices."""
    # Each yield is sent the reply, or `NotAskedError` if there will be none; then the role stands in place of a choice.
    replies: dict[Label, Any] = {}
    by_rule: dict[str, RuleChoice | Consulted] = {}
    for name in rules:
        steps, own, reply, role = certifying(case.rule(name))(case), dict[Consulted, Heard](), None, None
        while True:
            try:
                role = steps.send(reply)
            except StopIteration as stop:
                by_rule[name] = RuleChoice(stop.value, own)
                break
            except NotAskedError:  # a recorded certificate is of other answers
                by_rule[name] = role or "certificate"
                break
            label = asked_by(name, role)
            if label not in replies:
                replies[label] = yield label
            if isinstance(replies[label], NotAskedError):
                by_rule[name] = role
                break
            own[role] = reply = replies[label]
    return by_rule


@dataclass(slots=True)
class Settlement:
    """A row with each rule's choice on it, or the role that the rule lacks."""

    row: Row
    case: Case
    by_rule: Mapping[str, RuleChoice | Consulted]
    consultations: Mapping[Label, Consultation]

    def outcomes(self) -> dict[str, Outcome]:
        """Write down every rule's decision; asking can continue without it."""
        records: dict[Hashable, Decision] = {}  # rules that choose the same on the same replies decide the same
        return {name: self._outcome(name, choice, records) for name, choice in self.by_rule.items()}

    def _outcome(self, rule: str, rule_choice: RuleChoice | Consulted, records: dict[Hashable, Decision]) -> Outcome:
        if not isinstance(rule_choice, RuleChoice):
            return Outcome(None, missing=rule_choice)
        choice, replies = rule_choice.choice, replies_in(rule_choice.replies)
        same = type(choice), choice.branch, *replies, *map(id, (choice.answer, *replies.values()))
        if same not in records:
            records[same] = self.case.record(choice, replies)
        consultations = [self.consultations[asked_by(rule, role)] for role in rule_choice.replies]
        return Outcome(records[same], None, consultations)

    def score(self, rows: DecidedRows) -> tuple[dict[str, Outcome], dict[str, Score | None]]:
        """Add the row to the decided rows of its pool, and return what each rule decided and its score."""
        outcomes, sources = self.outcomes(), [candidate.source for candidate in self.row.candidates]
        failures = [label for label, consultation in self.consultations.items() if consultation.outcome == "failed"]
        return outcomes, rows.add(self.case, self.row.gold, outcomes, failures, sources)


@dataclass(frozen=True, slots=True)
class Redecisions:
    """The results of rules on the consultations of a run, on `limit` questions of each pool, or on all."""

    rules: tuple[str, ...]
    pools: tuple[Pool, ...]
    limit: int | None
    figures: dict[str, PoolFigures]


def decide_again(run: RunRead, rules: Sequence[str], files: Sequence[Path] = ()) -> Redecisions:
    """Decide the questions of a run by rules, from its journal; a rule that needs a role never asked is withheld."""
    for rule in rules:
        rule_named(rule)
    by_pool = run.summary()["pools"] if run.is_finished() else {}
    # The package's own rules that a finished run compared are added.
    before = [rule for pool in by_pool.values() for rule in (*pool["rules"], *pool["withheld"]) if not is_own(rule)]
    judges = dict.fromkeys(filter(None, map(judge_in, (*before, *run.totals.roles))))
    names = for_judges([*dict.fromkeys([*before, *rules])], judges)
    pools = reopen(run, [*by_pool] or [*run.heads_of("pool")], files, "eldgr decide RUN FILE --rule NAME")
    # A finished run is decided on the questions that it decided, any other on all of its pools.
    sizes = {pool.name: by_pool[pool.name]["n"] if by_pool else pool.n for pool in pools}
    rows = {pool.name: DecidedRows(pool.task, names) for pool in pools}
    for pool, settlement in settle_again(run, names, pools, sizes):
        with naming_question(pool.name, settlement.row.id):
            settlement.score(rows[pool.name])
    figures = {name: pool_figures(of, judge_facts(run.heads)) for name, of in rows.items()}
    cut = [n for pool in pools if (n := sizes[pool.name]) < pool.n]
    return Redecisions(names, tuple(pools), cut[0] if cut else None, figures)


def settle_again(
    run: RunRead, rules: Sequence[str], pools: Sequence[Pool], sizes: Mapping[str, int]
) -> Iterator[tuple[Pool, Settlement]]:
    """Yield the first rows of each pool, as many as `sizes` says, with what each rule chooses on the run's replies."""
    settings, store = run.settings, ConsultationStore(run.consultations())

    def settle(pool: str, row: Row) -> Settlement:
        case, consultations = Case(run.question(pool, row), settings), dict[Label, Consultation]()

        def reply_of(label: Label) -> Heard | NotAskedError:
            if (entry := store.find((pool, row.id, label))) is None:
                return NotAskedError(f"The run never asked the {label}.")
            consultations[label] = entry
            return journaled_reply(case.question, entry)

        with naming_question(pool, row.id):
            return Settlement(row, case, drive(choices(case, rules), reply_of), consultations)

    for pool in pools:
        yield from ((pool, settle(pool.name, row)) for row in pool.rows(sizes[pool.name]))


def reopen(run: RunRead, names: Sequence[str], files: Sequence[Path], command: str) -> list[Pool]:
    """Return the pools of a run, at `files` if they were moved; `command` is the one in which to give such a file."""
    places = {pool_name(path): path for path in files}
    for name, path in places.items():
        if name not in names:
            names_there = ", ".join(map(repr, names))
            raise ArgumentError(f"{path}: {run.path} was not made on a pool {name!r}; it was made on {names_there}.")
    statements = run.heads_of("pool")
    paths = [places.get(name) or _where(run, name, statements[name], command) for name in names]
    pools = open_pools(paths, None if run.ungiven else run.settings.type)
    for pool in pools:
        made_on = statements[pool.name]["details"]["sha256"]
        if pool.sha256 != made_on:
            raise RunChangedError(
                f"{pool.path}: {run.path} was made on another pool {pool.name!r} (sha256 {made_on!r:.80}) than this "
                f"one ({pool.sha256!r}); give the file that it was made on."
            )
    return pools


def _where(run: RunRead, name: str, head: Mapping[str, Any], command: str) -> Path:
    path = head.get("path")
    if isinstance(path, str) and Path(path).exists():
        return Path(path)
    was = f"which was {path!r} and is not there" if isinstance(path, str) else "and does not say where it was"
    raise ArgumentError(
        f"{run.path} was made on a pool {name!r}, {was}; give its file: {command} "
        f"(sha256 {head['details']['sha256']:.16}..., {head['details']['rows']:,} questions)."
    )
