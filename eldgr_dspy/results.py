"""The shapes of a run's results as they are read back, so that a file of another version is told from one of this."""

from typing import Self

from pydantic import BaseModel, ConfigDict, NonNegativeInt, model_validator

from eldgr_dspy.words import Branch, Role, Task


class Shape(BaseModel):
    """What a result holds: fields of exact types; further ones, of a later version, are passed over."""

    model_config = ConfigDict(frozen=True, strict=True)


class _Rule(Shape):
    em: float | None
    f1: float | None
    calls: dict[Role, NonNegativeInt]
    asked: dict[Role, NonNegativeInt]
    seconds: float


class _Difference(Shape):
    delta: float
    ci: list[float]


class _Contrast(_Difference):
    rule: str
    against: str
    p: float
    wins: NonNegativeInt
    losses: NonNegativeInt
    f1: _Difference | None


class _Pool(Shape):
    n: NonNegativeInt
    n_scored: NonNegativeInt
    n_failed: NonNegativeInt
    task: Task
    rules: dict[str, _Rule]
    withheld: dict[str, dict[Role, NonNegativeInt]]
    contrasts: list[_Contrast]
    bounds: dict[str, list[float] | None]
    bounds_any_span: dict[str, list[float] | None]
    audit: dict[str, int | None] | None

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        most = max((one.wins + one.losses for one in self.contrasts), default=0)
        if self.contrasts and self.n_scored < max(1, most):
            raise ValueError(f"{most} discordant questions of {self.n_scored} in a contrast")
        return self


class _Role(Shape):
    ok: NonNegativeInt
    abstained: NonNegativeInt
    failed: NonNegativeInt
    recorded: NonNegativeInt
    calls: NonNegativeInt
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None


class _Confirmation(Shape):
    lock: str
    seen_before: dict[str, NonNegativeInt]


class Summary(Shape):
    """What is needed of `summary.json`."""

    pools: dict[str, _Pool]
    consultations: dict[Role, _Role]
    remarks: list[str]
    confirmation: _Confirmation | None = None


class _Share(Shape):
    count: NonNegativeInt
    of: NonNegativeInt
    rate: float | None


class _Effects(Shape):
    position_flips: _Share
    first_shown_wins: _Share
    longer_wins: _Share
    rationale_names_another: _Share


class Record(Shape):
    """What is needed of `record.json`."""

    judge_effects: dict[str, _Effects | None]


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
