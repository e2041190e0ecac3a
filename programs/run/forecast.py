"""Forecast what a run would ask, before anything is asked. It is exact, because a rule says itself whom it asks.

Each rule is driven over the replies that can change its course: the judge's abstention and a preference for each class
of answers, the repairer's abstention and each answer of the pool as a span. A deriver is assumed to abstain, and a
consulted certificate to give consensus any value, and the other answers any value. Replies that a run has journaled, or
that a recording holds, are used as they are. No role is asked and nothing is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypedDict

from eldgr_dspy.certificates import Certificate
from eldgr_dspy.decision import Rule, relay
from eldgr_dspy.errors import NotAskedError
from eldgr_dspy.figures.bounds import outcomes
from eldgr_dspy.figures.record import total_of
from eldgr_dspy.journal import read_journal
from eldgr_dspy.pools import Pool
from eldgr_dspy.programs.lms.one_call import calls_of
from eldgr_dspy.programs.run.evaluation import Preparation
from eldgr_dspy.programs.run.plan import Plan, out_of
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.run.role_calls import calls_of_roles, metered_settings, modules_of
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certifying
from eldgr_dspy.rule.consultations import Abstention, Certificates, Consultation, Heard, Key, Repair, Verdict
from eldgr_dspy.rule.named_judges import Label, asked_by, name_in, role_of
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.words import CONSULTED, Consulted, Task, is_role

_SILENT = Abstention("silent")
_NEW_ANSWER = "\ufffdan answer of no candidate"


class RoleForecast(TypedDict):
    """How many questions may be put to a role: in all, answered in the journal or a recording, and now."""

    at_most: int
    journaled: int
    recorded: int
    to_ask: int
    calls: int | None
    """How many LM calls those asked now take at most, repeated calls aside; None where the role does not say."""


class PoolForecast(TypedDict):
    """What a run would ask on a pool."""

    n: int
    task: Task
    roles: dict[Label, RoleForecast]


class Forecast(TypedDict):
    """What a run would ask; `models` is None for a role without an LM."""

    pools: dict[str, PoolForecast]
    models: dict[Label, str | None]


def possible_roles(rule: Rule, case: Case, replies: Mapping[Consulted, Heard]) -> frozenset[Consulted]:
    """Return the roles and certificates that a rule may ask about a question, whatever those without a reply say."""
    possible = _possible(case)
    tries: dict[Any, Any] = {**possible, **{role: [reply] for role, reply in replies.items()}}
    roles: set[Consulted] = set()

    def noting(one: Case) -> Any:
        afresh = Case(one.question, one.settings) if one.to_certify() else one  # a case keeps its certificates
        steps: Any = certifying(rule)(afresh)
        return relay(steps, lambda role, _: roles.add(role))

    for _ in outcomes(noting, case, tries):
        if roles >= possible.keys():
            break
    return frozenset(roles)


def _possible(case: Case) -> dict[Consulted, Sequence[Heard]]:
    one_a_class = {key: index for index, key in enumerate(case.vote.classes) if key is not None}
    answers = [case.question.answers[index] for index in one_a_class.values()]
    possible: dict[Consulted, Sequence[Heard]] = {
        "judge": [_SILENT, *map(Verdict, one_a_class.values())],
        "repairer": [_SILENT, *(Repair(answer) for answer in answers if answer)],
        "deriver": [_SILENT],
    }
    if pending := case.to_certify():
        # With consensus open and another answer certified most is asked; a repair may be a new answer.
        possible["certificate"] = [*_certificates(case, pending)]
        possible["repairer"] = [_SILENT, Repair(_NEW_ANSWER), *possible["repairer"][1:]]
        possible["repair_certificate"] = [_SILENT]
    return possible


def _certificates(case: Case, answers: Sequence[str]) -> Iterator[Certificates]:
    """Certificates of every value for consensus, and of every value for all other answers."""
    winner, marks = case.vote.winner, (False, True, None)
    of_consensus = [one for one, key in zip(case.question.answers, case.vote.classes, strict=True) if key == winner]
    first = next((one for one in of_consensus[:1] if one in answers), answers[0])
    for own, others in product(marks, marks):
        yield Certificates({one: Certificate(own if one == first else others, "possible") for one in answers})


def forecast(selector: Selector, plan: Plan) -> Forecast:
    """Return what a plan would ask. It raises what the run itself would."""
    inputs = Preparation(selector, plan)
    with metered_settings(), selector.reading():
        roles = calls_of_roles(selector, plan.judges)
    heads: list[dict[str, Any]] = []
    journal = out_of(plan) / "journal.jsonl"
    lines = () if plan.fresh or not journal.exists() else read_journal(journal, heads, on_tear=lambda error: None)
    entries = {entry.key: entry for entry in lines if entry.settled}
    inputs.require_same_as(out_of(plan), heads, entries.values(), roles)
    return {
        "pools": {pool.name: _pool(selector, plan, pool, entries, inputs.recordings) for pool in inputs.pools},
        "models": {label: call.model for label, call in roles.items()},
    }


def _pool(
    selector: Selector, plan: Plan, pool: Pool, journal: Mapping[Key, Consultation], recordings: Recordings
) -> PoolForecast:
    everyone = [*modules_of(selector, plan.judges), "certificate", "repair_certificate"]
    counts: dict[Label, RoleForecast] = {
        label: {"at_most": 0, "journaled": 0, "recorded": 0, "to_ask": 0, "calls": 0} for label in everyone
    }
    for row in pool.rows(plan.limit):
        case = Case(row.to_question(), selector.settings)
        keys = {label: (pool.name, row.id, label) for label in everyone}
        sources = {label: journal.get(key) or recordings.find(key) for label, key in keys.items()}
        gaps = {label for label, entry in sources.items() if isinstance(entry, NotAskedError)}
        entries = {label: entry for label, entry in sources.items() if isinstance(entry, Consultation)}
        replies: dict[Label, Heard] = {label: journaled_reply(case.question, entry) for label, entry in entries.items()}
        for label in _any(plan, case, {}):
            counts[label]["at_most"] += 1
            if label in entries:
                counts[label]["recorded" if entries[label].recorded else "journaled"] += 1
        for label in _any(plan, case, replies) - replies.keys() - gaps:
            counts[label]["to_ask"] += 1
            counts[label]["calls"] = total_of([counts[label]["calls"], _calls(selector, plan, label, case)])
    roles = {label: of for label, of in counts.items() if of["at_most"]}
    return {"n": min(pool.n, plan.limit or pool.n), "task": pool.task, "roles": roles}


def _calls(selector: Selector, plan: Plan, label: Label, case: Case) -> int | None:
    role = role_of(label)
    if not is_role(role):
        certifier: Any = selector.certifier
        return calls_of(certifier, case.to_certify() if role == "certificate" else [_NEW_ANSWER])
    candidates: Any = case.question.role_inputs(role).get("candidates", [])
    return calls_of(modules_of(selector, plan.judges)[label], candidates)


def _any(plan: Plan, case: Case, replies: Mapping[Label, Heard]) -> frozenset[Label]:
    """Whom the rules may ask, given the replies of some. A rule is tried once for judges that say the same."""
    labels, memo = set[Label](), dict[tuple[str, Heard | None], frozenset[Consulted]]()
    for name in plan.rules:
        by_role: dict[Consulted, Heard] = {
            role: reply for role in CONSULTED if (reply := replies.get(asked_by(name, role))) is not None
        }
        alike = (name_in(name), by_role.get("judge"))
        if alike not in memo:
            memo[alike] = possible_roles(case.rule(name), case, by_role)
        labels |= {asked_by(name, role) for role in memo[alike]}
    return frozenset(labels)
