"""What a run would ask, before anything is asked: exact, because a rule says itself whom it asks.

Each rule is driven over the replies that can lead it elsewhere: the judge's silence and a preference for each class of
answers, the repairer's silence and each answer of the pool as a span; a deriver is taken to be silent. What a run has
journaled, or a recording holds, is taken as it is. Nobody is asked and nothing is written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Abstention, Consultation, Key, Repair, Reply, Verdict
from eldgr_dspy.decision import Rule, drive
from eldgr_dspy.errors import NotAskedError
from eldgr_dspy.figures.planning import Forecast, PoolForecast, RoleForecast
from eldgr_dspy.figures.record import total_of
from eldgr_dspy.journal import read_journal
from eldgr_dspy.pools import Pool, open_pools
from eldgr_dspy.programs.judges.repeated_calls import calls_of
from eldgr_dspy.programs.run.confirmation import confirmation_of
from eldgr_dspy.programs.run.evaluation import statements
from eldgr_dspy.programs.run.plan import Plan, out_of, rows_of
from eldgr_dspy.programs.run.role_calls import RoleCall, metered_settings, role_call
from eldgr_dspy.programs.run.run_directory import require_same
from eldgr_dspy.programs.run.runner import Recordings
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.replies import journaled_reply
from eldgr_dspy.words import ROLES, Role

_SILENT = Abstention("silent")
_Ask = Callable[[Role], Reply]


def roles_asked(rule: Rule, case: Case, known: Mapping[Role, Reply]) -> frozenset[Role]:
    """Return the roles that a rule may ask about a question.

    Args:
        known: The replies that are given already; the other roles may say anything.
    """
    possible = _possible(case)
    asked: set[Role] = set()
    for roles in _every_way(partial(_roles_on, rule, case), known, possible):
        asked |= roles
        if asked >= possible.keys():
            break
    return frozenset(asked)


def _roles_on(rule: Rule, case: Case, ask: _Ask) -> set[Role]:
    """The roles that a rule asks, given what they reply."""
    asked: set[Role] = set()

    def noting(role: Role) -> Reply:
        asked.add(role)
        return ask(role)

    drive(rule(case), noting)
    return asked


class _AskedError(Exception):
    """A role is asked whose reply is open."""


def _every_way(
    run: Callable[[_Ask], set[Role]], given: Mapping[Role, Reply], possible: Mapping[Role, Sequence[Reply]]
) -> Iterator[set[Role]]:
    """Yield the result of `run` for each way through it: begun anew for each reply that a role may give."""

    def ask(role: Role) -> Reply:
        if role not in given:
            raise _AskedError(role)
        return given[role]

    try:
        found = run(ask)
    except _AskedError as error:
        (role,) = error.args
        for reply in possible[role]:
            yield from _every_way(run, {**given, role: reply}, possible)
    else:
        yield found


def _possible(case: Case) -> dict[Role, Sequence[Reply]]:
    one_a_class = {key: index for index, key in enumerate(case.vote.classes) if key is not None}
    answers = [case.question.answers[index] for index in one_a_class.values()]
    return {
        "judge": [_SILENT, *map(Verdict, one_a_class.values())],
        "repairer": [_SILENT, *(Repair(answer) for answer in answers if answer)],
        "deriver": [_SILENT],
    }


def forecast(selector: Selector, plan: Plan) -> Forecast:
    """Return what a plan would ask.

    Raises:
        PoolError, ArgumentError, JournalError, RunChangedError: as the run itself would.
    """
    pools, recordings = open_pools(plan.pools), Recordings(plan.replay)
    recordings.require_made_for(pools)
    confirmation_of(plan, out_of(plan), pools, selector)
    with metered_settings():
        calls: list[tuple[Role, RoleCall, Mapping[str, Any]]] = [
            (role, *role_call(getattr(selector, role))) for role in ROLES
        ]
    heads: list[dict[str, Any]] = []
    known = {} if plan.fresh else {one.key: one for one in _journaled(out_of(plan), heads) if one.settled}
    recordings.require_unchanged(known.values(), pools)
    roles_stated = [("role", role, details) for role, _, details in calls]
    require_same(out_of(plan), heads, [*statements(selector, pools), *roles_stated])
    models: dict[Role, str | None] = {role: call.model for role, call, _ in calls}
    return {"pools": {pool.name: _pool(selector, plan, pool, known, recordings) for pool in pools}, "models": models}


def _journaled(out: Path, heads: list[dict[str, Any]]) -> Iterator[Consultation]:
    """What a run has journaled so far; a last line that a crash has torn, or that is being written, is passed over."""
    path = out / "journal.jsonl"
    if path.exists():
        yield from read_journal(path, heads, on_torn=lambda error: None)


def _pool(
    selector: Selector, plan: Plan, pool: Pool, journaled: Mapping[Key, Consultation], recordings: Recordings
) -> PoolForecast:
    counts: dict[Role, RoleForecast] = {
        role: {"at_most": 0, "journaled": 0, "recorded": 0, "to_ask": 0, "calls": 0} for role in ROLES
    }
    calls: dict[Role, list[int | None]] = {role: [] for role in ROLES}
    n = 0
    for row in rows_of(pool, plan):
        n += 1
        case = Case(row.to_question(), selector.settings)
        found: dict[Role, Consultation | None] = {
            role: _found((pool.name, row.id, role), journaled, recordings) for role in ROLES
        }
        replies: dict[Role, Reply] = {
            role: journaled_reply(case.question, one) for role, one in found.items() if one is not None
        }
        withheld = {role for role in ROLES if found[role] is None and recordings.governs(pool.name, role)}
        for role in _any(plan, case, {}):
            one = found[role]
            counts[role]["at_most"] += 1
            counts[role]["recorded"] += one is not None and one.recorded
            counts[role]["journaled"] += one is not None and not one.recorded
        for role in _any(plan, case, replies) - replies.keys() - withheld:
            counts[role]["to_ask"] += 1
            calls[role].append(_calls(selector, role, case))
    for role in ROLES:
        counts[role]["calls"] = total_of(calls[role])
    return {"n": n, "task": pool.task, "roles": {role: of for role, of in counts.items() if of["at_most"]}}


def _calls(selector: Selector, role: Role, case: Case) -> int | None:
    candidates: Any = case.question.role_inputs(role).get("candidates", [])
    return calls_of(getattr(selector, role), candidates)


def _any(plan: Plan, case: Case, known: Mapping[Role, Reply]) -> frozenset[Role]:
    return frozenset().union(*(roles_asked(case.rule(name), case, known) for name in plan.rules))


def _found(key: Key, journaled: Mapping[Key, Consultation], recordings: Recordings) -> Consultation | None:
    if key in journaled or not recordings.governs(key[0], key[2]):
        return journaled.get(key)
    try:
        return recordings.find(key)
    except NotAskedError:
        return None
