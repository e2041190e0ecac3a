"""What `record.json` holds."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from eldgr_dspy.consultations import Outcome
from eldgr_dspy.figures.results.summary import AskedName, Became, Confirmed, Count, RoleSums
from eldgr_dspy.words import Branch, Task


class Share(TypedDict):
    """How many of how many, and that in percent."""

    count: Count
    of: Count
    rate: float | None


class ExpectedShare(Share):
    """A rate, and the rate that is expected without the bias."""

    expected: Annotated[float | None, Field(description="The rate, in percent, where the habit plays no part.")]


class Effects(TypedDict):
    """A judge's biases, see `eldgr_dspy.figures.effects`."""

    verdicts: Count
    position_flips: Share
    first_shown_wins: ExpectedShare
    longer_wins: Share
    rationale_names_another: Share


class OverrideRates(TypedDict):
    """How often `eldgr` overrode consensus on a pool, and what that did."""

    questions: Annotated[int, Field(ge=0, description="Questions that were decided.")]
    by_judge: Annotated[float, Field(description="Overrides by the judge, in percent of the questions.")]
    by_repair: Annotated[
        float, Field(description="Overrides by a repair or a derivation, in percent of the questions.")
    ]
    overrides: Count
    incorrect_to_correct: Count | None
    correct_to_incorrect: Count | None
    neither: Count | None
    by_outcome: Annotated[dict[Branch, dict[Became, float]], Field(description="Percent of the questions.")]
    by_certificate: Annotated[dict[Branch, dict[str, float]], Field(description="Percent of the questions.")]


class Model(TypedDict):
    """A model that was asked, and the one that answered."""

    role: AskedName
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
    """A reason why a role abstained or its call failed."""

    role: AskedName
    outcome: Outcome
    kind: Annotated[
        str, Field(description="One of eldgr_dspy.figures.abstention_kinds.KINDS, or the error of a failed call.")
    ]
    reason: str
    consultations: Count


class PoolStated(TypedDict):
    """A pool, as the journal states it."""

    sha256: str
    rows: Count
    task: Task


class OwnCertificateStated(TypedDict):
    """A certificate of the user's own: its name, `module:function`, and a hash of its source, null without one."""

    name: str
    source: str | None


class Record(TypedDict):
    """What a deployment should state about a judge that decides: the content of `record.json`."""

    default: Annotated[str, Field(description="What it must beat.")]
    certificate: Annotated[dict[Task, str | OwnCertificateStated | None], Field(description="What it needs for that.")]
    settings: Annotated[dict[str, Any], Field(description="Of the rule.")]
    override_rates: Annotated[
        dict[str, OverrideRates | None], Field(description="A pool; null where eldgr has no result.")
    ]
    judge_effects: Annotated[
        dict[str, Effects | None],
        Field(description="A pool, or POOL[NAME] for a judge with a name; biases of the verdicts."),
    ]
    models: Annotated[list[Model], Field(description="Over all that the run directory has seen.")]
    fingerprints: dict[AskedName, Fingerprints]
    parse_failures: Annotated[
        dict[AskedName, Share], Field(description="Replies that could not be read, on the questions that were decided.")
    ]
    cost: Annotated[Cost, Field(description="Of all roles together, over all that the run directory has seen.")]
    consultations: Annotated[dict[AskedName, RoleSums], Field(description="Over all that the run directory has seen.")]
    remarks: list[str]
    silences: Annotated[list[Silence], Field(description="On the questions that were decided.")]
    pools: dict[str, PoolStated]
    roles: Annotated[dict[AskedName, dict[str, Any]], Field(description="What shapes each role's calls, as journaled.")]
    confirmation: Confirmed | None
