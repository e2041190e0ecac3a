"""What a line of `decisions.jsonl` holds."""

from typing import Literal

from typing_extensions import TypedDict

from eldgr_dspy.words import Branch, Role


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
