"""What a line of `decisions.jsonl` holds."""

from typing import Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from eldgr_dspy.words import Branch, Role


class Witnessed(TypedDict):
    """Where the answer that shipped is in the evidence: its slice of a passage, and the text around it."""

    passage: int
    """Index of the passage, from 0."""
    field: Literal["title", "text"]
    """`text` or `title`."""
    start: int
    """Where the slice begins in that field, in characters."""
    end: int
    """Where it ends."""
    text: str
    """The slice."""
    level: str
    """`exact` where the slice is the answer as given, else `folded`."""
    flags: list[str]
    """Warnings: `short`, `stopword`, `in_question`."""
    sha256: str
    """Hash of the field."""
    title: str
    """The passage's title."""
    before: str
    """Up to 80 characters before the slice."""
    after: str
    """Up to 80 characters after it."""


@with_config(ConfigDict(allow_inf_nan=False))
class Decided(TypedDict):
    """A line of `decisions.jsonl`: what a rule decided on a question."""

    pool: str
    """The pool's name."""
    id: str
    """The question's id."""
    question: str
    """As asked."""
    gold: list[str]
    """The accepted answers."""
    rule: str
    """Which rule decided."""
    answer: str | None
    """What ships; null if no answer ships."""
    branch: Branch
    """What decided, see [branches](../reference/rules.md#branches)."""
    reason: str
    """Which case it was, see [reasons](../reference/rules.md#reasons)."""
    certified: bool | None
    """Whether the answer carries a certificate; null if a certificate does not apply."""
    witness: Witnessed | None
    """Where the evidence contains it, see below; null without one."""
    consensus: str | None
    """The majority's answer."""
    tie: bool
    """Whether several classes had as many votes."""
    preference: int | None
    """The index that the judge prefers; null if it was not asked or abstained."""
    repair: str | None
    """The span or the derived answer as it was given, certified or not."""
    consulted: list[Role]
    """The roles that were asked, in order."""
    abstentions: dict[Role, str]
    """The reason of each of them that abstained. A failed call is here too, with a reason that begins with `failed:
    `; counts of abstentions leave it out."""
    ranking: list[int]
    """All indices, best first, see [ranking](../reference/rules.md#ranking)."""
    notes: list[str]
    """Remarks on the decision: candidates without an answer, answers that could not be told apart with certainty,
    several certified answers, why consensus is uncertified or a derivation not accepted."""
    em: bool | None
    """Whether the answer is right: exact match, or numeric equality; null without gold."""
    f1: float | None
    """Token F1 from 0 to 1; null where undefined and without gold."""
    majority_em: bool | None
    """`em` of the rule `majority` on this question; null if that rule was not run."""
