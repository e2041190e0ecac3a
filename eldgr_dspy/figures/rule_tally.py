"""What a pool's figures keep of one rule: counts and sums."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.words import CONSULTED, Consulted


@dataclass(slots=True)
class RuleTally:
    """What is kept of one rule: on how many questions an answer ships, how many of these are certified, and sums."""

    answered: int = 0
    certified: int = 0
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

    def lacking(self) -> dict[Consulted, int]:
        """Return on how many questions each role was never asked where the rule needs it."""
        return {role: self.missing[role] for role in CONSULTED if self.missing[role]}
