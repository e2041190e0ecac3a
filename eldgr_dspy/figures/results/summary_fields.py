"""What `summary.json` holds."""

from typing import Annotated, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from eldgr_dspy.answer_types.base import Way
from eldgr_dspy.figures.results.audit_fields import (
    AskedName,
    AuditCounts,
    AuditInFull,
    Count,
    Counts,
    Flips,
    RoleSums,
    Tokens,
)
from eldgr_dspy.figures.results.baseline_fields import BaselineFigures
from eldgr_dspy.words import Consulted, Task


class Scores(TypedDict):
    """Exact match, or accuracy in arithmetic, and token F1 in retrieval, in percent."""

    em: float | None
    """Exact match or numeric accuracy, in percent."""
    f1: float | None
    """Token F1 in percent; null where undefined."""


class RuleFigures(Scores):
    """What a rule scored, and what it alone would ask."""

    official: Scores | None
    """`em` and `f1` of the raw texts by the official script, nothing stripped; null if they are the same for every
    question."""
    calls: Counts
    """LM calls a role that this rule alone would need."""
    asked: Counts
    """Questions to each role, heuristic and recorded ones included."""
    tokens: Tokens
    """Tokens read and written in these calls, a role; null if a server did not report them."""
    seconds: float
    """The time that its consultations took, in total."""


class Delta(TypedDict):
    """A paired difference with its percentile interval, in percentage points."""

    delta: Annotated[float, Field(title="Δ")]
    """Mean difference in percentage points."""
    ci: Annotated[list[float], Field(title="95% CI")]
    """Its 95 % interval: percentile bootstrap over 20,000 paired resamples of questions."""


class WinsLosses(TypedDict):
    """Questions that one of two rules or runs alone has right."""

    wins: Count
    """Questions that only `rule` has right."""
    losses: Count
    """Questions that only `against` has right."""


class Paired(Delta, WinsLosses):
    """A contrast of two rules or runs: right and wrong with the exact McNemar p, and F1 where there is one."""

    p: Annotated[float, Field(title="exact p")]
    """Two-sided exact McNemar probability."""
    notes: list[str]
    """Why it says little, each a sentence: one question, nothing discordant, too few discordant questions."""
    f1: Delta | None
    """`delta` and `ci` of token F1 in percentage points; null where undefined."""


class Adjusted(Paired):
    """A contrast in a family of several."""

    p_holm: Annotated[float, Field(title="Holm p")]
    """`p`, adjusted by Holm's method for all contrasts of the family."""


class RuleContrast(Paired):
    """One rule against another."""

    rule: str
    """Which rule."""
    against: str
    """Which other: `eldgr` against each other rule, and each rule but `first` and `certified` against `majority`.
    With named judges, only `eldgr[NAME]` against `judge[NAME]`."""
    p_holm: Annotated[float | None, Field(title="Holm p")]
    """`p`, adjusted by Holm's method for the tested contrasts of the pool: those among `first`, `majority`, `judge`,
    `eldgr` and rules of your own. Null for contrasts with other rules, such as `certified`, which are descriptive."""


class Shipped(TypedDict):
    """On how many questions an answer ships, and how often it is wrong there; shares in percent."""

    questions: Annotated[Count, Field(title="ships")]
    """Questions on which an answer ships."""
    coverage: Annotated[float | None, Field(title="coverage %")]
    """Their share of all questions, in percent; null without questions."""
    scored: Annotated[int, Field(ge=0)]
    """How many of them have a gold answer."""
    wrong: Count | None
    """On how many of these the answer is wrong; null if there are none."""
    risk: Annotated[float | None, Field(title="risk %")]
    """The same in percent; null if there are none."""
    risk_at_most: Annotated[float | None, Field(title="at most %")]
    """An exact upper bound on the risk of new questions, in percent,
    [under its assumptions](../reference/statistics.md#a-bound-on-the-risk); null if there are none."""


class Shipping(TypedDict):
    """What a rule ships if uncertified answers abstain, and if consensus ships without a certificate."""

    abstain: Shipped
    """Under `Selector(uncertified="abstain")`."""
    consensus: Shipped
    """By default."""


class Candidates(TypedDict):
    """The least and the most candidates of a question, and the candidates without an answer."""

    fewest: Count | None
    """Of a question; null without questions."""
    most: Count
    """Of a question."""
    without_answer: Count
    """Candidates without an answer."""


class Price(TypedDict):
    """What any judge can cost under a rule, see `eldgr_dspy.figures.authority.price_of`."""

    lost: Annotated[int, Field(ge=0)]
    """Distinct questions that majority has right and some judge or deriver makes wrong."""
    of: Annotated[int, Field(ge=1)]
    """Distinct questions with a gold answer."""
    at_most: float
    """The most points of accuracy on new questions: exact one-sided 95 % upper bound (Clopper-Pearson)."""


class JudgeFigures(TypedDict):
    """A judge that has a name, alone (`judge[NAME]`) and under the lock (`eldgr[NAME]`); null where undefined."""

    alone: Annotated[float | None, Field(title="alone %")]
    """Accuracy of `judge[NAME]`, in percent."""
    locked: Annotated[float | None, Field(title="locked %")]
    """Accuracy of `eldgr[NAME]`."""
    delta: Annotated[Delta | None, Field(title="Δ [95% CI]")]
    """`delta` and `ci` of locked minus alone. Its p is in `contrasts`."""
    locked_against_alone: Annotated[Flips | None, Field(title="lock fixes–breaks")]
    """`correct_to_incorrect` and `incorrect_to_correct`: answers of the judge alone that the lock breaks and fixes."""
    alone_against_majority: Annotated[Flips | None, Field(title="judge fixes–breaks")]
    """Answers of majority that the judge alone breaks and fixes."""
    worst_alone: Annotated[float | None, Field(title="worst alone %")]
    """The lowest accuracy of `judge` over all judges."""
    worst_locked: Annotated[float | None, Field(title="worst locked %")]
    """The same for `eldgr`."""
    asked: Count
    """Questions on which it was asked."""
    abstained: Count
    """Those on which it abstained."""
    failed: Count
    """Those with a failed call."""
    calls: Count
    """Its LM calls."""
    tokens: Count | None
    """Tokens read and written; null if a server did not report them."""
    gold_in_training: bool | None
    """Whether it was made with right answers: trained on them, or shown them in demonstrations; null for a
    recording, or where your own judge does not say."""
    logprobs: bool | None
    """Whether it needs log-probabilities; null as above."""
    positioned: bool | None
    """Whether it is [in the style of a published
    system](../reference/selectors.md#selectors-in-the-style-of-published-systems), and so not tested; null as above."""
    lacks: str | None
    """Why it applies to no question of the pool; its figures are null then, and its rules are `withheld`. Null
    where it applies."""
    audit: AuditCounts | None
    """[The audit](#the-audit) of `eldgr[NAME]`, in short and in full; null if that rule has no result."""
    decided: AuditInFull | None
    """[The audit](#the-audit) of `eldgr[NAME]`, in short and in full; null if that rule has no result."""


class Bounds(TypedDict):
    """The ends of each rule's accuracy in percent, and its price, see `eldgr_dspy.figures.authority.bounds_of`."""

    task: Task
    """The pool's `task`."""
    bounds: dict[str, list[float] | None]
    """For each rule its lowest and highest accuracy over all judges; repairer and deriver abstain."""
    bounds_any_span: dict[str, list[float] | None]
    """The same with any span of the evidence as repair; null where not every span can repair, and
    for some rules and certificates of your own."""
    bounds_any_deriver: NotRequired[dict[str, list[float] | None]]
    """In arithmetic each rule's lowest and highest accuracy over all judges and any number as derivation that the level
    of strictness [cannot exclude](../reference/rules.md#authority-bounds). Absent elsewhere."""
    price: dict[str, Price | None]
    """For each rule [what any judge can cost](../reference/statistics.md#what-a-judge-can-cost) against majority:
    `lost`, out of `of` distinct questions, and `at_most`, the bound for new questions in percentage points. Null where
    the bounds are null."""


class ShownType(TypedDict):
    """What is stated of an answer type of the user's own, so that figures are shown where its code is not known."""

    way: Way
    """What certifies its answers: `evidence` or `derivation`."""
    scores: list[str]
    """The names of its scores."""


class PoolFigures(Bounds):
    """The figures of a pool."""

    n: Count
    """Questions that were decided."""
    n_scored: Count
    """Those with a gold answer. Scores, contrasts and bounds are over these."""
    n_distinct: Annotated[int, Field(ge=0)]
    """How many different texts those have. If there are fewer, a repeated text is
    [one unit](../reference/statistics.md#several-outcomes-of-one-question) in every contrast."""
    n_failed: Count
    """Those with a failed call. They were decided as if the role had abstained, and are in `n`."""
    answer_type: NotRequired[ShownType]
    """`way` and `scores` of an answer type of your own; absent for the package's."""
    ties: Count
    """Questions on which several classes had as many votes."""
    candidates: Candidates
    """The fewest and the most candidates of a question, and how many candidates have no answer."""
    conflicts: Annotated[int | None, Field(ge=0)]
    """Questions on which the evidence certifies several answers that do not vote together; each has a note in
    [`decisions.jsonl`](#decisionsjsonl). Null in arithmetic, where no passage certifies."""
    rules: dict[str, RuleFigures]
    """Results of each rule that has one."""
    withheld: dict[str, dict[Consulted, Count]]
    """For each rule without one, how many questions lack which role."""
    contrasts: list[RuleContrast]
    """Comparisons of rules."""
    baselines: BaselineFigures
    """[What a judge must beat](#baselines), and whether the judges of the run do."""
    audit: AuditCounts | None
    """What `eldgr` did; null if it has no result. With named judges, what `eldgr` of the first one did; [each
    judge](#named-judges) has its own."""
    decided: AuditInFull | None
    """The [audit in full](#the-audit-in-full); null as `audit`."""
    shipping: dict[str, Shipping]
    """For each rule [what ships](#what-ships), and what would ship if uncertified answers abstained."""
    remarks: list[str]
    """Warnings to read first, each a sentence or two, if half of the questions or more are affected: a role gave no
    usable reply, no candidate has an answer, or the evidence is missing."""
    judges: NotRequired[dict[str, JudgeFigures]]
    """[Named judges](#named-judges); absent if none has a name."""


class Confirmed(TypedDict):
    """The freeze that a run was held to, by its hash."""

    lock: str
    """Hash of the freeze."""


def _adds_up(pool: PoolFigures) -> PoolFigures:
    most = max((contrast["wins"] + contrast["losses"] for contrast in pool["contrasts"]), default=0)
    if pool["contrasts"] and pool["n_scored"] < max(1, most):
        raise ValueError(f"{most} discordant questions of {pool['n_scored']} in a contrast")
    return pool


@with_config(ConfigDict(allow_inf_nan=False))
class Summary(TypedDict):
    """The content of `summary.json`."""

    pools: dict[str, Annotated[PoolFigures, AfterValidator(_adds_up)]]
    """The [figures](#a-pool) of each pool."""
    consultations: dict[AskedName, RoleSums]
    """What each role was [asked](#consultations-of-a-role), over all that the run directory has seen."""
    remarks: list[str]
    """Sentences about the models."""
    confirmation: Confirmed | None
    """The [freeze](#confirmation) of the run; null without one."""
