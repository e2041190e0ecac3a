"""What a pool's figures keep of one rule: a few bytes a question."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.words import Consulted


@dataclass(slots=True)
class RuleTally:
    """What is kept of one rule: a byte each for right, trusted and answered and a double for F1 a question, and sums.

    The official scores are those of the raw texts; `is_official` says that no question's differs from its score.
    """

    em: "array[int]" = field(default_factory=lambda: array("b"))
    trusted: "array[int]" = field(default_factory=lambda: array("b"))
    answered: "array[int]" = field(default_factory=lambda: array("b"))
    f1: "array[float]" = field(default_factory=lambda: array("d"))
    official_em: int = 0
    official_f1: float = 0.0
    is_official: bool = True
    calls: Counter[Consulted] = field(default_factory=Counter)
    asked: Counter[Consulted] = field(default_factory=Counter)
    missing: Counter[Consulted] = field(default_factory=Counter)
    tokens: Counter[Consulted] = field(default_factory=Counter)
    uncounted: set[Consulted] = field(default_factory=set)
    seconds: dict[Consulted, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, consultations: Sequence[Consultation]) -> None:
        """Take what a question asked."""
        for consultation in consultations:
            self.asked[consultation.role] += 1
            self.calls[consultation.role] += consultation.calls
            self.seconds[consultation.role] += consultation.seconds or 0.0
            if not consultation.calls:
                continue
            if consultation.prompt_tokens is None or consultation.completion_tokens is None:
                self.uncounted.add(consultation.role)
            else:
                self.tokens[consultation.role] += consultation.prompt_tokens + consultation.completion_tokens
