"""What `summary.json` says of the baselines that a judge must beat, and of whether it does."""

from typing import Annotated, Literal, get_args

from typing_extensions import TypedDict

from eldgr_dspy.figures.results.audit_fields import of_every

BaselineName = Literal[
    "first",
    "best_source",
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
    """Exact match or numeric accuracy, in percent."""
    sources: list[str]
    """For `best_source` the best source of each half; empty elsewhere."""
    reason: str | None
    """Why `em` is null, such as a candidate without a source; else null."""


class Lead(TypedDict):
    """A judge minus a baseline: a paired difference with its percentile interval, in percentage points."""

    delta: float
    """The judge minus the baseline, in percentage points."""
    ci: list[float]
    """Its 95 % percentile interval."""
    notes: list[str]
    """Why it says little, each a sentence."""


class JudgeUse(TypedDict):
    """Whether a judge beats certified majority and the better of the two random judges with the same authority."""

    em: float | None
    """Exact match or numeric accuracy, in percent."""
    over_certified: Lead | None
    """The judge minus certified majority: `delta`, `ci` and `notes` as in a contrast."""
    over_random: Lead | None
    """The judge minus the better of the two random judges with the same authority."""
    random: BaselineName | None
    """Which one that is."""
    useful: bool | None
    """Whether both intervals are above 0, and no note says that the questions are too few."""
    reason: str | None
    """Why the other fields are null, such as questions on which the judge was not asked; else null."""


class Usefulness(TypedDict):
    """The use of a judge with full authority, and inside the lock; repairer and deriver are silent."""

    alone: JudgeUse
    """With full authority."""
    locked: JudgeUse
    """Under `eldgr`."""


class BaselineFigures(TypedDict):
    """The baselines of a pool, and the use of each judge that was asked, by name."""

    scores: Annotated[dict[BaselineName, Baseline], of_every(get_args(BaselineName))]
    """Each baseline; none of them asks an LM."""
    judges: dict[str, Usefulness]
    """Whether each judge that was asked beats them."""
