"""A consultation: what a role may answer, as the rule sees it, how a pool is shown to it, and what is journaled of it.

A reply is a `Verdict`, a `Repair`, a `Derivation` or an `Abstention`; there is nothing else, and each has been
validated before a rule sees it (`eldgr_dspy.replies`). No LM, no DSPy: standard library alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from eldgr_dspy.words import Role


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer: `preferred`, a pool index from 0; `scores`, one scalar in [0, 1] a candidate, or None."""

    preferred: int
    scores: tuple[float, ...] | None = None
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Repair:
    """A repairer's answer: a span copied from the evidence, and the passage, from 0, where it says it stands."""

    answer: str
    passage: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a derivation: an expression and the value that it is said to have, both as text."""

    expression: str
    value: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """A deriver's answer: the steps in order, the answer, and an equation that checks the answer another way."""

    steps: tuple[Step, ...]
    answer: str
    check: str = ""


@dataclass(frozen=True, slots=True)
class Abstention:
    """A role that says nothing, and why: unparsable, out of range, silent, or its call failed."""

    reason: str


Reply = Verdict | Repair | Derivation | Abstention

_FINAL = "\nFinal answer: "


def show_candidate(text: str, answer: str | None) -> str:
    """Return a candidate as a role sees it: its text, then its answer on a line of its own where the two differ.

    A text that has such a line already gets one all the same, and where there is no answer the line is empty, so that
    no candidate passes for one with another answer.
    """
    if _FINAL not in text and text.strip() == (answer or "").strip():
        return text
    return f"{text}{_FINAL}{' '.join((answer or '').split())}"


def split_candidate(shown: str) -> tuple[str, str]:
    """Undo `show_candidate`: (text, answer); without a final line the whole is the answer."""
    text, found, answer = shown.rpartition(_FINAL)
    return (text, answer) if found else (shown, shown)


def show_passage(title: str, text: str) -> str:
    """Return a passage as a role sees it: the title on a line of its own, if there is one, then the text."""
    return f"{title}\n{text}" if title else text


Outcome = Literal["ok", "abstained", "failed"]

Key = tuple[str, str, Role]
"""Which consultation: pool, question id, role."""


@dataclass(frozen=True, slots=True)
class Consultation:
    """One consultation as it is journaled.

    Attributes:
        pool, id, role: Which question of which pool was put to which role.
        outcome: `ok`: it answered. `abstained`: it said nothing usable, see `reason`. `failed`: the call did not come
            through (never a verdict; asked again on resume).
        content: The fields that it returned, for `ok`.
        fingerprint: Of everything that shaped the call; the journal's `role` line with it has the details.
        asked, served: The model asked for, and the model that the server said had answered; None where unknown.
        attempt: 1, or one more than the failed attempts before it.
        calls: How many LM requests it took; 0 for an embedded role or a recording.
        cached: How many replies DSPy's cache gave, which took no request.
        prompt_characters: How long the prompts were that were answered, None where none was.
        prompt_tokens, completion_tokens: As reported, None where unknown. cost: in dollars, None where unknown.
        implausible: What was reported and cannot be true, as text; it counts as unknown. None where all is plausible.
        dearest: What the dearest of several requests cost, None where unknown or where it took one.
        seconds: By a monotonic clock.
        recorded: Whether it was supplied by `--replay` instead of asked.
    """

    pool: str
    id: str
    role: Role
    outcome: Outcome
    reason: str | None = None
    content: Mapping[str, Any] | None = None
    fingerprint: str | None = None
    asked: str | None = None
    served: str | None = None
    attempt: int = 1
    calls: int = 0
    cached: int = 0
    prompt_characters: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    dearest: float | None = None
    seconds: float | None = None
    implausible: str | None = None
    recorded: bool = False

    @property
    def key(self) -> Key:
        """Which consultation this is."""
        return (self.pool, self.id, self.role)

    @property
    def settled(self) -> bool:
        """Whether it need not be asked again."""
        return self.outcome != "failed"

    @property
    def answered(self) -> bool:
        """Whether any of its requests was answered, as far as it was journaled."""
        return self.cost is not None or self.prompt_characters is not None
