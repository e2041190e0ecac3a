"""The decision audit: on how many questions EL-DGR kept consensus, let the judge or a repair in, and what that did."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from eldgr_dspy.answers import score
from eldgr_dspy.cases import Case
from eldgr_dspy.decision import Decision
from eldgr_dspy.words import Role


@dataclass(slots=True)
class Audit:
    """Integer counts of questions; flips are against majority, over the questions that have a gold answer.

    `preserved + judge_overrides + repair_overrides` is the number of questions. In arithmetic a derivation that differs
    from consensus is a repair override, and `certified_consensus` counts checked derivations that equal it.
    """

    preserved: int = 0
    judge_overrides: int = 0
    repair_overrides: int = 0
    correct_to_incorrect: int = 0
    incorrect_to_correct: int = 0
    abstentions: int = 0
    homogeneous: int = 0
    certified_consensus: int = 0

    def take(self, case: Case, decision: Decision, gold: Sequence[str], failed: Collection[Role] = ()) -> None:
        """Take one question's decision. A failed call is no abstention: `failed` roles are not counted."""
        self.preserved += decision.branch == "consensus"
        self.judge_overrides += decision.branch == "judge"
        self.repair_overrides += decision.branch == "repair"
        self.abstentions += bool(decision.abstentions.keys() - set(failed))
        self.homogeneous += case.vote.n_classes == 1
        self.certified_consensus += self._consensus_certified(case, decision)
        if gold and decision.branch != "consensus":
            before, after = (score(answer, gold, case.task).em for answer in (decision.consensus, decision.answer))
            self.correct_to_incorrect += before and not after
            self.incorrect_to_correct += after and not before

    @staticmethod
    def _consensus_certified(case: Case, decision: Decision) -> bool:
        if case.task == "arithmetic":
            return decision.reason == "derivation_agrees"
        return case.certified(case.consensus) is True

    def counts(self) -> dict[str, int]:
        """Return the counts by name, as in `summary.json`."""
        return asdict(self)
