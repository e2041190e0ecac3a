"""The results of a run, each file's content defined once: `summary.json`, `record.json`, a line of `decisions.jsonl`.

They are plain values with types: what a run writes, what `evaluate` returns and what is read back. Percentages are
numbers from 0 to 100, differences are percentage points, and what is undefined is None. `SCHEMAS` publishes them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter
from typing_extensions import TypedDict

from eldgr_dspy.journal import Outcome
from eldgr_dspy.words import ROLES, Branch, Role, Task

Count = Annotated[int, Field(ge=0, le=10**15)]
"""A number of things; one that a float has exactly."""

_Of = TypeVar("_Of")


def _of_every_role(found: dict[Role, _Of]) -> dict[Role, _Of]:
    missing = [role for role in ROLES if role not in found]
    if missing:
        raise ValueError(f"nothing is said of {' and '.join(missing)}")
    return found


Counts = Annotated[dict[Role, Count], AfterValidator(_of_every_role)]
"""A number for each role."""

Became = Literal["lost", "won", "wrong", "right", "unscored"]
"""What became of an answer: right before and wrong after, the reverse, wrong or right both times; without gold answers
nobody knows."""


class Share(TypedDict):
    """How many of how many, and that in percent."""

    count: Count
    of: Count
    rate: float | None


# -- summary.json: the figures of a rule ------------------------------------------------------------------------------


class Scores(TypedDict):
    """Exact match, or accuracy in arithmetic, and token F1 in retrieval, in percent."""

    em: float | None
    f1: float | None


class RuleFigures(Scores):
    """What a rule scored, and what it alone would ask."""

    official: Annotated[Scores | None, Field(description="Of the raw texts; null where they are the same.")]
    calls: Counts
    asked: Counts
    tokens: Annotated[dict[Role, Count | None], AfterValidator(_of_every_role)]
    seconds: float


class Delta(TypedDict):
    """A paired difference with its percentile interval, in percentage points."""

    delta: float
    ci: list[float]


class Difference(Delta):
    """The same with its BCa interval."""

    bca: list[float] | None


class WinsLosses(TypedDict):
    """Questions that one of two rules or runs alone has right."""

    wins: Count
    losses: Count


class Paired(Difference, WinsLosses):
    """A contrast of two rules or runs: right and wrong with the exact McNemar p, and F1 where there is one."""

    p: float
    notes: list[str]
    f1: Difference | None


class Adjusted(Paired):
    """A contrast in a family of several."""

    p_holm: Annotated[float, Field(description="Adjusted by Holm's method for all contrasts of the pool.")]


class RuleContrast(Adjusted):
    """One rule against another."""

    rule: str
    against: str


# -- summary.json: the audit ------------------------------------------------------------------------------------------


class Flips(TypedDict):
    """How many answers of a rule were lost and mended, against another rule."""

    correct_to_incorrect: Count | None
    incorrect_to_correct: Count | None


class AuditCounts(Flips):
    """The audit of `eldgr` in short, in questions; flips are against majority."""

    preserved: Count
    judge_overrides: Count
    repair_overrides: Count
    abstentions: Count
    homogeneous: Count
    certified_consensus: Count


class Decisions(TypedDict):
    """Questions by what decided, what vouches for what shipped, and what became of the answer."""

    branch: Branch
    level: str
    outcome: Became
    questions: Count


class Stage(TypedDict):
    """A stage on the way to an override."""

    stage: str
    questions: Count


class RoleSilences(TypedDict):
    """On how many questions a role abstained or its call failed, and by what kinds of reasons."""

    abstained: Count
    failed: Count
    kinds: dict[str, Count]


class Saved(TypedDict):
    """On how many questions each role was asked and always would have been, and what that would cost more."""

    asked: Counts
    always: Counts
    calls_saved: Count | None
    seconds_saved: float | None


class Laziness(Saved):
    """The same, with what `eldgr` alone would take."""

    calls: Count
    seconds: float


class AuditInFull(TypedDict):
    """The audit of `eldgr` in full; `flips` by the rule that they are against."""

    outcomes: list[Decisions]
    flips: dict[str, Flips]
    funnel: list[Stage]
    silences: dict[Role, RoleSilences]
    laziness: Laziness


# -- summary.json -----------------------------------------------------------------------------------------------------


class Candidates(TypedDict):
    """The least and the most candidates of a question, and the candidates without an answer."""

    fewest: Count | None
    most: Count
    without_answer: Count


class Bounds(TypedDict):
    """The ends of each rule's accuracy in percent, see `eldgr_dspy.figures.authority.PoolBounds`."""

    bounds: dict[str, list[float] | None]
    bounds_any_span: dict[str, list[float] | None]


class PoolFigures(Bounds):
    """The figures of a pool."""

    n: Count
    n_scored: Count
    n_distinct: Annotated[int, Field(ge=0, description="Different texts among the scored questions.")]
    n_failed: Count
    task: Task
    ties: Count
    candidates: Candidates
    rules: dict[str, RuleFigures]
    withheld: dict[str, dict[Role, Count]]
    contrasts: list[RuleContrast]
    can_change: Annotated[
        dict[str, dict[Role, float]] | None,
        Field(description="Questions in percent; null with gold answers, and without questions."),
    ]
    audit: AuditCounts | None
    decided: AuditInFull | None
    risk_coverage: Annotated[
        dict[str, list[list[float]]], Field(description="Points of coverage and risk, the most trusted first.")
    ]
    remarks: list[str]


class RoleSums(TypedDict):
    """What a role was asked in all: how it ended, calls, tokens and dollars, null where unknown for any call."""

    ok: Count
    abstained: Count
    failed: Count
    recorded: Count
    calls: Count
    cached: Count
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None


class EarlierLook(TypedDict):
    """A run that saw a pool before."""

    pool: str
    questions: Count
    time: str
    out: str


class Confirmed(TypedDict):
    """What the lock's ledger says of a run: how many other runs have seen each pool before."""

    lock: str
    seen_before: dict[str, Count]
    earlier: list[EarlierLook]


def _adds_up(pool: PoolFigures) -> PoolFigures:
    most = max((one["wins"] + one["losses"] for one in pool["contrasts"]), default=0)
    if pool["contrasts"] and pool["n_scored"] < max(1, most):
        raise ValueError(f"{most} discordant questions of {pool['n_scored']} in a contrast")
    return pool


class Summary(TypedDict):
    """The content of `summary.json`."""

    pools: dict[str, Annotated[PoolFigures, AfterValidator(_adds_up)]]
    consultations: dict[Role, RoleSums]
    remarks: list[str]
    confirmation: Confirmed | None


# -- record.json ------------------------------------------------------------------------------------------------------


class ExpectedShare(Share):
    """A share, beside what it is where the habit plays no part."""

    expected: Annotated[float | None, Field(description="The rate, in percent, where the habit plays no part.")]


class Effects(TypedDict):
    """What else a judge's verdicts went by, see `eldgr_dspy.figures.effects`."""

    verdicts: Count
    position_flips: Share
    first_shown_wins: ExpectedShare
    longer_wins: Share
    rationale_names_another: Share


class OverrideRates(TypedDict):
    """How often `eldgr` overrode consensus on a pool, and what that did."""

    questions: Annotated[int, Field(ge=0, description="Questions that were decided.")]
    by_judge: Annotated[float, Field(description="Overrides by the judge, in percent of the questions.")]
    by_repair: Annotated[float, Field(description="Overrides by a repair or a derivation, likewise.")]
    overrides: Count
    incorrect_to_correct: Count | None
    correct_to_incorrect: Count | None
    neither: Count | None
    by_outcome: Annotated[dict[Branch, dict[Became, float]], Field(description="Percent of the questions.")]
    by_certificate: Annotated[dict[Branch, dict[str, float]], Field(description="Percent of the questions.")]


class Model(TypedDict):
    """A model that was asked, and the one that answered."""

    role: Role
    asked: str | None
    served: str | None
    same: Annotated[bool | None, Field(description="Whether that is the model that was asked; null where unknown.")]
    calls: Count


class Fingerprints(TypedDict):
    """What stands for a role."""

    role: Annotated[str, Field(description="Of all details of the role, as in the journal.")]
    prompts: str
    settings: Annotated[str, Field(description="Of the LM with its settings, and of the adapter.")]


class Cost(TypedDict):
    """What all roles took together."""

    calls: Count
    prompt_tokens: Count | None
    completion_tokens: Count | None
    cost: Annotated[float | None, Field(description="In dollars; null where unknown for any call.")]


class Silence(TypedDict):
    """A reason for which a role said nothing."""

    role: Role
    outcome: Outcome
    kind: Annotated[str, Field(description="One of eldgr_dspy.figures.silences.KINDS, or the error of a failed call.")]
    reason: str
    consultations: Count


class PoolStated(TypedDict):
    """A pool, as the journal states it."""

    sha256: str
    rows: Count
    task: Task


class Record(TypedDict):
    """What a deployment should state about a judge that decides: the content of `record.json`."""

    default: Annotated[str, Field(description="What it must beat.")]
    certificate: Annotated[dict[Task, str | None], Field(description="What it needs for that.")]
    settings: Annotated[dict[str, Any], Field(description="Of the rule.")]
    override_rates: Annotated[
        dict[str, OverrideRates | None], Field(description="A pool; null where eldgr has no result.")
    ]
    judge_effects: Annotated[dict[str, Effects | None], Field(description="A pool; what else verdicts went by.")]
    models: Annotated[list[Model], Field(description="Over all that the run directory has seen.")]
    fingerprints: dict[Role, Fingerprints]
    parse_failures: Annotated[
        dict[Role, Share], Field(description="Replies that could not be read, on the questions that were decided.")
    ]
    cost: Annotated[Cost, Field(description="Of all roles together, over all that the run directory has seen.")]
    consultations: Annotated[
        dict[Role, RoleSums], Field(description="Likewise over all that the run directory has seen.")
    ]
    remarks: list[str]
    silences: Annotated[list[Silence], Field(description="On the questions that were decided.")]
    pools: dict[str, PoolStated]
    roles: Annotated[dict[Role, dict[str, Any]], Field(description="What shapes each role's calls, as journaled.")]
    confirmation: Confirmed | None


# -- decisions.jsonl --------------------------------------------------------------------------------------------------


class Witnessed(TypedDict):
    """Where in the evidence the answer stands that shipped: its slice of a passage, and what is around it."""

    passage: int
    field: Literal["title", "text"]
    start: int
    end: int
    text: str
    level: str
    flags: list[str]
    sha256: str
    title: str
    before: str
    after: str


class Decided(TypedDict):
    """A line of `decisions.jsonl`: what a rule decided on a question."""

    pool: str
    id: str
    question: str
    gold: list[str]
    rule: str
    answer: str | None
    branch: Branch
    reason: str
    certified: bool | None
    witness: Witnessed | None
    consensus: str | None
    tie: bool
    preference: int | None
    repair: str | None
    consulted: list[Role]
    abstentions: dict[Role, str]
    ranking: list[int]
    notes: list[str]
    em: bool | None
    f1: float | None
    majority_em: bool | None


SUMMARY = TypeAdapter[Summary](Summary)
RECORD = TypeAdapter[Record](Record)
DECIDED = TypeAdapter[Decided](Decided)

SCHEMAS: Mapping[str, TypeAdapter[Any]] = {"summary": SUMMARY, "record": RECORD, "decision": DECIDED}
"""What is published as `artifacts/NAME.schema.json`."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON schema of a file's content, by its name in `SCHEMAS`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name].json_schema()}
