"""What `summary.json` says of the audit of `eldgr`, and the counts that every result is made of."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from eldgr_dspy.words import CONSULTED, ROLES, Branch, Consulted

Count = Annotated[int, Field(ge=0, le=10**15)]
"""A number of things; one that a float has exactly."""

AskedName = Annotated[str, Field(pattern=rf"^(?:{'|'.join(CONSULTED)}|judge\[[A-Za-z0-9._-]+\])$")]
"""Whom a run asked: a role, a certificate, or a judge by its name."""


def of_every(names: Iterable[str]) -> AfterValidator:
    """Return the check that a mapping has all these names."""

    def require(by_name: Any) -> Any:
        if missing := [name for name in names if name not in by_name]:
            raise ValueError(f"nothing is said of {' and '.join(missing)}")
        return by_name

    return AfterValidator(require)


Counts = Annotated[dict[Consulted, Count], of_every(ROLES)]
"""A number for each role, and for a certificate that was asked."""

Tokens = Annotated[dict[Consulted, Count | None], of_every(ROLES)]
"""The same of tokens; null where a server did not report them."""

Became = Literal["lost", "won", "wrong", "right", "unscored"]
"""What became of an answer: right before and wrong after, the reverse, wrong or right both times; without gold answers
nobody knows."""


class Flips(TypedDict):
    """How many answers of a rule were lost and fixed, against another rule."""

    correct_to_incorrect: Count | None
    """Right answers of majority that were lost; null without gold."""
    incorrect_to_correct: Count | None
    """Wrong ones that were fixed; null without gold."""


class AuditCounts(Flips):
    """The audit of `eldgr` in short, in questions; flips are against majority."""

    preserved: Annotated[Count, Field(title="consensus preserved")]
    """Questions on which consensus shipped."""
    judge_overrides: Count
    """Questions on which a certified preference replaced it."""
    repair_overrides: Count
    """Questions on which a certified repair, or a checked derivation that differs, did. The three add up to `n`."""
    abstentions: Annotated[Count, Field(title="questions with an abstention")]
    """Questions on which a role that was asked abstained, without failed calls."""
    homogeneous: Annotated[Count, Field(title="questions with one class of answers")]
    """Questions whose candidates form one class."""
    certified_consensus: Annotated[Count, Field(title="certified consensus")]
    """Questions whose consensus is certified; in arithmetic, whose consensus a checked derivation confirms."""


class Decisions(TypedDict):
    """Questions by the branch that decided, the support of the answer, and its outcome."""

    branch: Branch
    """What decided."""
    level: str
    """What supports the answer."""
    outcome: Became
    """What became of the answer of consensus."""
    questions: Count
    """How many."""


class AuditInFull(TypedDict):
    """The audit of `eldgr` in full; `flips` by the rule that they are against."""

    outcomes: list[Decisions]
    """What shipped: each combination that occurs, see below. They add up to `n`."""
    flips: dict[str, Flips]
    """For each of the rules `first` and `judge` that has a result, how many of its right answers `eldgr` lost
    (`correct_to_incorrect`) and of its wrong ones it fixed (`incorrect_to_correct`); null without gold. Those against
    `majority` are in `audit`."""


class RoleSums(TypedDict):
    """What a role was asked in all: how it ended, calls, tokens and dollars, null where unknown for any call."""

    ok: Annotated[Count, Field(title="answered")]
    """Asked and answered."""
    abstained: Count
    """Asked, without a usable answer."""
    failed: Count
    """Failed attempts."""
    recorded: Count
    """Supplied by `--replay`, whatever their outcome; not included in the others."""
    calls: Annotated[Count, Field(title="LM calls")]
    """LM calls."""
    cached: Count
    """Replies of DSPy's cache."""
    prompt_tokens: Annotated[int | None, Field(title="tokens in")]
    """Null if unknown for any call."""
    completion_tokens: Annotated[int | None, Field(title="tokens out")]
    """Null if unknown for any call."""
    cost: Annotated[float | None, Field(title="$")]
    """In dollars; null if unknown for any call."""
