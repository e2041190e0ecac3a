"""Consultations: the replies that a role may give, how a pool is shown to it, and the record kept in the journal.

A reply is always a `Verdict`, a `Repair`, a `Derivation` or an `Abstention`, and has been validated before a rule sees
it (`eldgr_dspy.rule.replies`). This module uses neither an LM nor DSPy, only the standard library.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from eldgr_dspy.certificates import Certificate
from eldgr_dspy.errors import describe_failure
from eldgr_dspy.rule.named_judges import Label, label_of
from eldgr_dspy.words import ABSTENTION_KINDS, DECLARED_KINDS, NOTHING_TO_SAY, Consulted, Role, is_role


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer: `preferred`, a pool index from 0; `scores`, one scalar in [0, 1] a candidate, or None.

    `remark` says why scores that were returned could not be used. Empty if there were none, or they could.
    """

    preferred: int
    scores: tuple[float, ...] | None = None
    rationale: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Repair:
    """A repairer's answer: a span copied from the evidence, and the passage, from 0, that it names as its source.

    The passage is a hint, since the span is looked for in all of them; `remark` says why one could not be used.
    """

    answer: str
    passage: int | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a derivation: an expression and the value that it is said to have, both as text."""

    expression: str
    value: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """A deriver's answer: the steps in order, the answer, and an equation that checks the answer another way.

    `others` are further samples of the same deriver, for the level `agreed`.
    """

    steps: tuple[Step, ...]
    answer: str
    check: str = ""
    others: tuple["Derivation", ...] = ()


FAILURE_PREFIX = "failed: "
"""How the reason of a failed call begins in a decision."""


@dataclass(frozen=True, slots=True)
class Abstention:
    """A role gives no answer, and why: unparsable, out of range, it declined, or its call failed.

    Attributes:
        reason: For people, as files state it.
        kind: One of `eldgr_dspy.words.ABSTENTION_KINDS`. Of a failed call the class of its error.
        failed: Whether the role's call did not come through.
    """

    reason: str
    kind: str = field(default=NOTHING_TO_SAY, compare=False)
    failed: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, kind: str, text: str) -> "Abstention":
        """Return an abstention whose reason begins with its kind."""
        return cls(f"{kind}: {text}", kind)

    @classmethod
    def from_content(cls, reason: str, content: Mapping[str, Any]) -> "Abstention":
        """Return the abstention that a role states in what it returned."""
        return cls(reason, stated_kind(reason, content) or NOTHING_TO_SAY)

    @classmethod
    def failure(cls, error: Exception) -> "Abstention":
        """Return the abstention of a role whose call failed."""
        return cls(f"{FAILURE_PREFIX}{describe_failure(error)}", type(error).__name__, failed=True)

    @property
    def unusable(self) -> bool:
        """Whether there was a reply that cannot be used; otherwise the role itself has nothing to say."""
        return not self.failed and self.kind not in DECLARED_KINDS

    @property
    def text(self) -> str:
        """The reason without the kind at its beginning, or without the word that says that a call failed."""
        return self.reason.removeprefix(FAILURE_PREFIX if self.failed else f"{self.kind}: ")

    @property
    def fields(self) -> dict[str, str]:
        """What a role returns to abstain in this way. It need not state that it has nothing to say."""
        return {"abstained": self.reason} | ({} if self.kind == NOTHING_TO_SAY else {"kind": self.kind})


@dataclass(frozen=True, slots=True)
class Certificates:
    """What a consulted certificate says of several answers, by answer."""

    by_answer: Mapping[str, Certificate]


Reply = Verdict | Repair | Derivation | Abstention
Heard = Reply | Certificates
"""A reply to a rule, or to the driver of a rule that has a certificate consulted."""

OUTPUTS: Mapping[Role, tuple[str, ...]] = {
    "judge": ("preferred",),
    "repairer": ("repaired_answer",),
    "deriver": ("derivation_steps", "derived_answer"),
}
"""The fields that a reply of a role cannot do without."""

_FINAL = "\nFinal answer: "


def show_candidate(text: str, answer: str | None) -> str:
    """Return a candidate as a role sees it: its text, then its answer on a line of its own where the two differ.

    A text that has such a line gets another one, so that a candidate cannot look as if it had another answer.
    """
    if _FINAL not in text and text.strip() == (answer or "").strip():
        return text
    return f"{text}{_FINAL}{' '.join((answer or '').split())}"


def split_candidate(display: str) -> tuple[str, str]:
    """Undo `show_candidate`: (text, answer). Without a final line the whole is the answer."""
    text, mark, answer = display.rpartition(_FINAL)
    return (text, answer) if mark else (display, display)


def show_passage(title: str, text: str) -> str:
    """Return a passage as a role sees it: the title on a line of its own, if there is one, then the text."""
    return f"{title}\n{text}" if title else text


def stated_kind(reason: str, content: Mapping[str, Any]) -> str | None:
    """Return the kind that an abstaining role states, in its field `kind` or at the beginning of its reason."""
    words = (content.get("kind"), reason.partition(":")[0].replace("unparsable", "unreadable"))
    return next((kind for kind in words if kind in ABSTENTION_KINDS), None)


def kind_in_line(role: Consulted, reason: str, content: Mapping[str, Any]) -> str:
    """Return the kind of an abstention as a journal states it: as its role does, else by whether there is an answer."""
    has_output = is_role(role) and not content.keys().isdisjoint(OUTPUTS[role])
    return stated_kind(reason, content) or ("invalid" if has_output else NOTHING_TO_SAY)


Outcome = Literal["ok", "abstained", "failed"]

Key = tuple[str, str, Label]
"""Which consultation: pool, question id, and who was asked."""


@dataclass(frozen=True, slots=True)
class Consultation:
    """One consultation as it is journaled.

    Attributes:
        pool, id, role: Which question of which pool was put to whom: a role, or a user's certificate.
        outcome: `ok`: it answered. `abstained`: its reply was not usable, see `reason`. `failed`: the call failed
            (never a verdict; asked again on resume).
        content: The fields that it returned, for `ok`.
        judge: The name of a judge that has one, or None for any other.
        fingerprint: A hash of everything that shaped the call. The journal's `role` line with it has the details.
        asked, served: The model asked for, and the model that the server said had answered, or None where unknown.
        attempt: 1, or one more than the failed attempts before it.
        calls: How many LM requests it took; 0 for a heuristic role or a recording.
        cached: How many replies DSPy's cache gave, which took no request.
        prompt_characters: The length of the answered prompts, None if no prompt was answered.
        prompt_tokens, completion_tokens: As reported, None where unknown. cost: in dollars, None where unknown.
        implausible: Reported values that cannot be true, as text. They count as unknown. None if all are plausible.
        dearest: The cost of the most expensive of several requests, None if unknown or if there was only one.
        seconds: By a monotonic clock.
        recorded: Whether it was supplied by `--replay` instead of asked.
    """

    pool: str
    id: str
    role: Consulted
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
    judge: str | None = None

    @property
    def key(self) -> Key:
        """Which consultation this is."""
        return (self.pool, self.id, self.label)

    @property
    def label(self) -> Label:
        """Who was asked: its role, with the name of a judge that has one."""
        return label_of(self.role, self.judge)

    @property
    def abstention(self) -> Abstention | None:
        """Why there is no answer, or None if there is one."""
        if self.outcome == "failed":
            return Abstention(f"{FAILURE_PREFIX}{self.reason}", f"{self.reason}".partition(":")[0], failed=True)
        reason = self.reason or "no reason given"
        kind = kind_in_line(self.role, reason, self.content or {})
        return Abstention(reason, kind) if self.outcome == "abstained" else None

    @property
    def settled(self) -> bool:
        """Whether it is final and is not asked again."""
        return self.outcome != "failed"

    @property
    def answered(self) -> bool:
        """Whether any of its requests was answered, as far as it was journaled."""
        return self.cost is not None or self.prompt_characters is not None
