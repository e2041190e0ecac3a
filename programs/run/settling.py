"""Every rule on one question, on identical replies, and what each decided."""

from collections.abc import Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from eldgr_dspy.answer_types.answers import Score
from eldgr_dspy.decision import Choice, Decision
from eldgr_dspy.errors import NotAskedError
from eldgr_dspy.figures.decided_rows import DecidedRows, Outcome
from eldgr_dspy.pools import Row
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certifying, replies_in
from eldgr_dspy.rule.consultations import Consultation, Heard
from eldgr_dspy.rule.named_judges import Asked, asked_by
from eldgr_dspy.words import Consulted


class RuleChoice(NamedTuple):
    """A rule's choice, and the replies that it asked for, those of certificates included."""

    choice: Choice
    replies: Mapping[Consulted, Heard]


def choices(case: Case, rules: Sequence[str]) -> Generator[Asked, Any, dict[str, RuleChoice | Consulted]]:
    """Drive all rules on the same replies: yields whom to ask the first time that any rule needs it.

    It is sent the reply, or `NotAskedError` if there will be none. It returns each rule's choice, or the role that the
    rule lacks.
    """
    replies: dict[Asked, Any] = {}
    by_rule: dict[str, RuleChoice | Consulted] = {}
    for name in rules:
        steps, replies_used, reply, role = certifying(case.rule(name))(case), dict[Consulted, Heard](), None, None
        while True:
            try:
                role = steps.send(reply)
            except StopIteration as stop:
                by_rule[name] = RuleChoice(stop.value, replies_used)
                break
            except NotAskedError:  # a recorded certificate is of other answers
                by_rule[name] = role or "certificate"
                break
            label = asked_by(name, role)
            if label not in replies:
                replies[label] = yield label
            if isinstance(replies[label], NotAskedError):
                by_rule[name] = role
                break
            replies_used[role] = reply = replies[label]
    return by_rule


@dataclass(slots=True)
class Settled:
    """A row with each rule's choice on it, or the role that the rule lacks."""

    row: Row
    case: Case
    chosen: Mapping[str, RuleChoice | Consulted]
    consultations: Mapping[Asked, Consultation]

    def outcomes(self) -> dict[str, Outcome]:
        """Write down every rule's decision; asking can continue without it."""
        recorded: dict[Hashable, Decision] = {}  # rules that choose the same on the same replies decide the same
        return {name: self._outcome(name, chosen, recorded) for name, chosen in self.chosen.items()}

    def _outcome(self, rule: str, chosen: RuleChoice | Consulted, recorded: dict[Hashable, Decision]) -> Outcome:
        if not isinstance(chosen, RuleChoice):
            return Outcome(None, missing=chosen)
        choice, replies = chosen.choice, replies_in(chosen.replies)
        same = type(choice), choice.branch, *replies, *map(id, (choice.answer, *replies.values()))
        if same not in recorded:
            recorded[same] = self.case.record(choice, replies)
        used = [self.consultations[asked_by(rule, role)] for role in chosen.replies]
        return Outcome(recorded[same], None, used)

    def score(self, rows: DecidedRows) -> tuple[dict[str, Outcome], dict[str, Score | None]]:
        """Add the row to the decided rows of its pool, and return what each rule decided and its score."""
        outcomes, sources = self.outcomes(), [candidate.source for candidate in self.row.candidates]
        failed = [label for label, consultation in self.consultations.items() if consultation.outcome == "failed"]
        return outcomes, rows.add(self.case, self.row.gold, outcomes, failed, sources)
