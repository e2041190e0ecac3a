"""The shapes of a run's results as they are read back, so that a file of another version is told from one of this."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from eldgr_dspy.figures.audit import Became
from eldgr_dspy.journal import Outcome
from eldgr_dspy.words import Branch, Role, Task

Count = Annotated[int, Field(ge=0, le=10**15)]
"""A number of things; one that a float has exactly."""


class Shape(BaseModel):
    """What a result holds: fields of exact types; further ones, of a later version, are passed over."""

    model_config = ConfigDict(frozen=True, strict=True)


class _Official(Shape):
    em: float | None
    f1: float | None


class _Rule(Shape):
    em: float | None
    f1: float | None
    official: _Official | None = None
    calls: dict[Role, Count]
    asked: dict[Role, Count]
    tokens: dict[Role, Count | None] | None = None
    seconds: float


class _Difference(Shape):
    delta: float
    ci: list[float]
    bca: list[float] | None = None


class _Contrast(_Difference):
    rule: str
    against: str
    p: float
    wins: Count
    losses: Count
    f1: _Difference | None
    p_holm: float | None = None
    notes: list[str] = []


class _Decisions(Shape):
    branch: Branch
    level: str
    outcome: Became
    questions: Count


class _Flips(Shape):
    correct_to_incorrect: Count | None
    incorrect_to_correct: Count | None


class _Stage(Shape):
    stage: str
    questions: Count


class _Silences(Shape):
    abstained: Count
    failed: Count
    kinds: dict[str, Count]


class _Laziness(Shape):
    asked: dict[Role, Count]
    always: dict[Role, Count]
    calls: Count
    calls_saved: Count | None
    seconds: float
    seconds_saved: float | None


class _Decided(Shape):
    outcomes: list[_Decisions]
    flips: dict[str, _Flips]
    funnel: list[_Stage]
    silences: dict[Role, _Silences]
    laziness: _Laziness


class _Pool(Shape):
    n: Count
    n_scored: Count
    n_failed: Count
    n_distinct: Count | None = None
    task: Task
    rules: dict[str, _Rule]
    withheld: dict[str, dict[Role, Count]]
    contrasts: list[_Contrast]
    bounds: dict[str, list[float] | None]
    bounds_any_span: dict[str, list[float] | None]
    can_change: dict[str, dict[Role, float]] | None = None
    audit: dict[str, int | None] | None
    decided: _Decided | None = None
    risk_coverage: dict[str, list[list[float]]] | None = None
    remarks: list[str] = []

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        most = max((one.wins + one.losses for one in self.contrasts), default=0)
        if self.contrasts and self.n_scored < max(1, most):
            raise ValueError(f"{most} discordant questions of {self.n_scored} in a contrast")
        return self


class _Role(Shape):
    ok: Count
    abstained: Count
    failed: Count
    recorded: Count
    calls: Count
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None


class _Confirmation(Shape):
    lock: str
    seen_before: dict[str, Count]


class Summary(Shape):
    """What is needed of `summary.json`."""

    pools: dict[str, _Pool]
    consultations: dict[Role, _Role]
    remarks: list[str]
    confirmation: _Confirmation | None = None


class _Share(Shape):
    count: Count
    of: Count
    rate: float | None


class _ByChance(_Share):
    expected: float | None = Field(None, description="The rate, in percent, where the habit plays no part.")


class _Effects(Shape):
    verdicts: Count
    position_flips: _Share
    first_shown_wins: _ByChance
    longer_wins: _Share
    rationale_names_another: _Share


class _Rates(Shape):
    questions: Count = Field(description="Questions that were decided.")
    by_judge: float = Field(description="Overrides by the judge, in percent of the questions.")
    by_repair: float = Field(description="Overrides by a repair or a derivation, likewise.")
    overrides: Count
    incorrect_to_correct: Count | None
    correct_to_incorrect: Count | None
    neither: Count | None
    by_outcome: dict[Branch, dict[Became, float]] | None = Field(None, description="Percent of the questions.")
    by_certificate: dict[Branch, dict[str, float]] | None = Field(None, description="Percent of the questions.")


class _Model(Shape):
    role: Role
    asked: str | None
    served: str | None
    same: bool | None = Field(description="Whether that is the model that was asked; null where unknown.")
    calls: Count


class _Fingerprints(Shape):
    role: str = Field(description="Of all details of the role, as in the journal.")
    prompts: str
    settings: str = Field(description="Of the LM with its settings, and of the adapter.")


class _Cost(Shape):
    calls: Count
    prompt_tokens: Count | None
    completion_tokens: Count | None
    cost: float | None = Field(description="In dollars; null where unknown for any call.")


class _Silence(Shape):
    role: Role
    outcome: Outcome
    kind: str | None = Field(
        None, description="One of eldgr_dspy.figures.silences.KINDS, or the error of a failed call."
    )
    reason: str
    consultations: Count


class Record(Shape):
    """What a deployment should state about a judge that decides: `record.json`."""

    default: str = Field(description="What it must beat.")
    certificate: dict[Task, str | None] = Field(description="What it needs for that.")
    settings: dict[str, Any] = Field(description="Of the rule.")
    override_rates: dict[str, _Rates | None] = Field(description="A pool; null where eldgr has no result.")
    judge_effects: dict[str, _Effects | None] = Field(description="A pool; what else verdicts went by.")
    models: list[_Model] = Field(description="Over all that the run directory has seen.")
    fingerprints: dict[Role, _Fingerprints] | None = None
    parse_failures: dict[Role, _Share] | None = Field(
        None, description="Replies that could not be read, on the questions that were decided."
    )
    cost: _Cost | None = Field(None, description="Of all roles together, over all that the run directory has seen.")
    consultations: dict[Role, _Role] = Field(description="Likewise over all that the run directory has seen.")
    remarks: list[str]
    silences: list[_Silence] = Field(description="On the questions that were decided.")
    pools: dict[str, dict[str, Any]]
    roles: dict[Role, dict[str, Any]]
    confirmation: _Confirmation | None = None


def record_schema() -> dict[str, Any]:
    """Return the JSON schema of a record, as published in `artifacts/record.schema.json`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Record.model_json_schema()}


class Witnessed(Shape):
    """The witness of a decision, as `decisions.jsonl` has it."""

    passage: int
    field: str
    start: int
    end: int
    text: str
    level: str
    flags: list[str]
    sha256: str
    title: str
    before: str
    after: str


class Decided(Shape):
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
