"""What `summary.json` says of the baselines that a judge must beat, and of whether it does."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

BaselineName = Literal[
    "first",
    "best_source",
    "best_source_in_hindsight",
    "majority",
    "majority_uniform_ties",
    "certified",
    "random_candidate",
    "random_class",
    "random_candidate_locked",
    "random_class_locked",
]
"""`random_candidate` draws a candidate that votes, `random_class` a class of answers; each has full authority, or is
`locked`: under `eldgr`, with repairer and deriver silent."""


class Baseline(TypedDict):
    """What a baseline scores in percent: exactly, or its exact expectation."""

    em: float | None
    f1: Annotated[float | None, Field(description="Of majority_uniform_ties in retrieval; null elsewhere.")]
    sources: Annotated[list[str], Field(description="Of a best source: which; one a half, or one in hindsight.")]
    reason: Annotated[str | None, Field(description="Why `em` is null; null if it is not.")]


class Lead(TypedDict):
    """A judge minus a baseline: a paired difference with its percentile interval, in percentage points."""

    delta: float
    ci: list[float]
    notes: list[str]


class JudgeUse(TypedDict):
    """Whether a judge beats certified majority and the better of the two random judges with the same authority."""

    em: float | None
    over_certified: Lead | None
    over_random: Lead | None
    random: Annotated[BaselineName | None, Field(description="Which random judge is the better one.")]
    useful: Annotated[
        bool | None, Field(description="Whether both intervals are above 0, with enough discordant questions to tell.")
    ]
    reason: Annotated[str | None, Field(description="Why the others are null; null if they are not.")]


class Usefulness(TypedDict):
    """The use of a judge with full authority, and inside the lock; repairer and deriver are silent."""

    alone: JudgeUse
    locked: JudgeUse


class BaselineFigures(TypedDict):
    """The baselines of a pool, and the use of each judge that was asked, by name."""

    scores: dict[BaselineName, Baseline]
    judges: dict[str, Usefulness]
