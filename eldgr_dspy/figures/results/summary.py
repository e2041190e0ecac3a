"""What `summary.json` holds."""

from typing import Annotated, Literal, NotRequired, TypeVar

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from eldgr_dspy.answer_types.base import Way
from eldgr_dspy.figures.results.baselines import BaselineFigures
from eldgr_dspy.words import CONSULTED, ROLES, Branch, Consulted, Role, Task

Count = Annotated[int, Field(ge=0, le=10**15)]
"""A number of things; one that a float has exactly."""

AskedName = Annotated[str, Field(pattern=rf"^(?:{'|'.join(CONSULTED)}|judge\[[A-Za-z0-9._-]+\])$")]
"""Whom a run asked: a role, a certificate, or a judge by its name."""

_Of = TypeVar("_Of")


def _of_every_role(by_role: dict[Consulted, _Of]) -> dict[Consulted, _Of]:
    missing = [role for role in ROLES if role not in by_role]
    if missing:
        raise ValueError(f"nothing is said of {' and '.join(missing)}")
    return by_role


Counts = Annotated[dict[Consulted, Count], AfterValidator(_of_every_role)]
"""A number for each role, and for a certificate that was asked."""

Became = Literal["lost", "won", "wrong", "right", "unscored"]
"""What became of an answer: right before and wrong after, the reverse, wrong or right both times; without gold answers
nobody knows."""


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
    tokens: Annotated[dict[Consulted, Count | None], AfterValidator(_of_every_role)]
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

    p_holm: Annotated[float, Field(description="Adjusted by Holm's method for all contrasts of the family.")]


class RuleContrast(Paired):
    """One rule against another."""

    rule: str
    against: str
    p_holm: Annotated[
        float | None,
        Field(description="Adjusted by Holm's method for the tested contrasts of the pool; null for descriptive ones."),
    ]


# -- summary.json: the audit ------------------------------------------------------------------------------------------


class Flips(TypedDict):
    """How many answers of a rule were lost and fixed, against another rule."""

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
    """Questions by the branch that decided, the support of the answer, and its outcome."""

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
    silences: dict[Consulted, RoleSilences]
    laziness: Laziness


# -- summary.json -----------------------------------------------------------------------------------------------------


class Shipped(TypedDict):
    """On how many questions an answer ships, and how often it is wrong there; shares in percent."""

    questions: Count
    coverage: float | None
    scored: Annotated[int, Field(ge=0, description="Those that ship and have a gold answer; risks are over these.")]
    wrong: Count | None
    risk: float | None
    risk_at_most: Annotated[
        float | None, Field(description="Exact one-sided 95 % upper bound (Clopper-Pearson); a text counts once.")
    ]


class Shipping(TypedDict):
    """What a rule ships if uncertified answers abstain, and if consensus ships without a certificate."""

    abstain: Shipped
    consensus: Shipped


class Candidates(TypedDict):
    """The least and the most candidates of a question, and the candidates without an answer."""

    fewest: Count | None
    most: Count
    without_answer: Count


class Price(TypedDict):
    """What any judge at all can cost under a rule: answers of majority's that are right, see `figures.authority.price_of`."""

    lost: Annotated[int, Field(ge=0, description="Distinct questions that majority has right and some judge loses.")]
    of: Annotated[int, Field(ge=1, description="Distinct questions with a gold answer.")]
    at_most: Annotated[
        float, Field(description="Of new questions, in percent: exact one-sided 95 % upper bound (Clopper-Pearson).")
    ]


class Measured(TypedDict):
    """A figure with its interval of 95 %, and over how many it is."""

    value: float
    ci: list[float]
    of: Count


class JudgeFigures(TypedDict):
    """A judge that has a name, alone (`judge[NAME]`) and under the lock (`eldgr[NAME]`); null where undefined."""

    alone: float | None
    locked: float | None
    delta: Annotated[Delta | None, Field(description="Locked minus alone; tested in `contrasts`.")]
    locked_against_alone: Flips | None
    alone_against_majority: Flips | None
    worst_alone: Annotated[float | None, Field(description="The least that any judge can score.")]
    worst_locked: float | None
    asked: Count
    abstained: Count
    failed: Count
    calls: Count
    tokens: Count | None
    recovery: Annotated[
        Measured | None,
        Field(description="How often it prefers a right answer where consensus is wrong and one is right, in percent."),
    ]
    discrimination: Annotated[
        Measured | None, Field(description="Within a question: how often a right candidate scores above a wrong one.")
    ]
    score_ties: Annotated[Measured | None, Field(description="Several classes share the highest score, in percent.")]
    order_effect: Annotated[Measured | None, Field(description="Another class in another order, in percent.")]
    gold_in_training: bool | None
    logprobs: bool | None
    positioned: Annotated[
        NotRequired[bool | None],
        Field(description="Whether it imitates a published system; such a judge is not tested."),
    ]
    lacks: Annotated[
        NotRequired[str | None], Field(description="Why it applies to no question of the pool; null if it does.")
    ]
    audit: Annotated[
        NotRequired[AuditCounts | None], Field(description="Of `eldgr[NAME]`; absent in earlier versions.")
    ]
    decided: NotRequired[AuditInFull | None]


class Bounds(TypedDict):
    """The ends of each rule's accuracy in percent, see `eldgr_dspy.figures.authority.bounds_of`."""

    task: Task
    bounds: dict[str, list[float] | None]
    bounds_any_span: dict[str, list[float] | None]
    bounds_any_deriver: Annotated[
        NotRequired[dict[str, list[float] | None]],
        Field(description="Absent in earlier versions, and where no derivation certifies."),
    ]


class Priced(Bounds):
    """The same with each rule's price, None where its bounds are."""

    price: dict[str, Price | None]


class ShownType(TypedDict):
    """What is stated of an answer type of the user's own, so that figures are shown where its code is not known."""

    way: Way
    scores: list[str]


class PoolFigures(Bounds):
    """The figures of a pool."""

    price: Annotated[
        NotRequired[dict[str, Price | None]], Field(description="Absent in runs by earlier versions; null as bounds.")
    ]
    n: Count
    n_scored: Count
    n_distinct: Annotated[int, Field(ge=0, description="Different texts among the scored questions.")]
    n_failed: Count
    answer_type: Annotated[NotRequired[ShownType], Field(description="Of an answer type of the user's own.")]
    ties: Count
    candidates: Candidates
    conflicts: Annotated[
        int | None, Field(ge=0, description="Questions with several certified classes; null in arithmetic.")
    ]
    rules: dict[str, RuleFigures]
    withheld: dict[str, dict[Consulted, Count]]
    contrasts: list[RuleContrast]
    baselines: Annotated[NotRequired[BaselineFigures], Field(description="Missing in a file of an earlier version.")]
    can_change: Annotated[
        dict[str, dict[Role, float]] | None,
        Field(description="Questions in percent; null with gold answers, and without questions."),
    ]
    audit: AuditCounts | None
    decided: AuditInFull | None
    risk_coverage: Annotated[
        dict[str, list[list[float]]], Field(description="Points of coverage and risk, the most trusted first.")
    ]
    shipping: dict[str, Shipping]
    remarks: list[str]
    judges: NotRequired[Annotated[dict[str, JudgeFigures], Field(description="By name; absent where none has one.")]]


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


class Confirmed(TypedDict):
    """The lock that a run was held to, by its hash."""

    lock: str


def _adds_up(pool: PoolFigures) -> PoolFigures:
    most = max((contrast["wins"] + contrast["losses"] for contrast in pool["contrasts"]), default=0)
    if pool["contrasts"] and pool["n_scored"] < max(1, most):
        raise ValueError(f"{most} discordant questions of {pool['n_scored']} in a contrast")
    return pool


class Summary(TypedDict):
    """The content of `summary.json`."""

    pools: dict[str, Annotated[PoolFigures, AfterValidator(_adds_up)]]
    consultations: dict[AskedName, RoleSums]
    remarks: list[str]
    confirmation: Confirmed | None
