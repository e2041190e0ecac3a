"""What a role may answer, as the rule sees it, and how the text of a pool is shown to a role.

A reply is a `Verdict`, a `Repair`, a `Derivation` or an `Abstention`; there is nothing else, and each has been
validated before a rule sees it (`eldgr_dspy.replies`). No LM, no DSPy: standard library alone.
"""

from dataclasses import dataclass


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
