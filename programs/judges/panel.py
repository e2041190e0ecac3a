"""A judge that is a panel of judges: the answer that most of them prefer.

Source: a panel of several LMs is of Verga et al. 2024, "Replacing Judges with Juries" (arXiv 2404.18796). That a judge
without a verdict stays in the denominator is ours: a panel does not shrink.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.frames import RepeatedCalls, Rounds, answers_of, classes_of, read_verdict
from eldgr_dspy.programs.lms.one_call import Request
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention, Verdict


class Panel(RepeatedCalls):
    """Asks several judges, and prefers the answer that more than half of all judges prefer; else it abstains.

        selector.judge = Panel([Judge(), PairwiseJudge(), PointwiseJudge()])

    Preferences are compared as answers vote. Of that answer's candidates, the one that most of these judges prefer
    ships, then the earliest. A judge that abstains, or whose reply cannot be used, is absent and prefers nothing. If
    the pool lacks what each of them needs, the panel does not apply either. A failed call is raised.

    Attributes:
        judges: Modules in the judge's role, each given the whole pool.
    """

    def __init__(self, judges: Sequence[dspy.Module]) -> None:
        """Set up the panel of at least one judge.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__()
        listed: object = judges
        if not isinstance(listed, Sequence) or not listed or not all(isinstance(one, dspy.Module) for one in listed):
            raise ArgumentError(f"judges must be a list of at least one module; got {judges!r:.80}. Give [Judge()].")
        self.judges: list[dspy.Module] = list(judges)

    @property
    def takes_ballot(self) -> bool:
        """Whether a member counts ballots."""
        return any(getattr(judge, "takes_ballot", False) for judge in self.judges)

    @property
    def facts(self) -> dict[str, bool]:
        """What any of its members needs, as tables show it; empty if none of them states it."""
        known: list[Mapping[str, bool]] = [of for judge in self.judges if (of := getattr(judge, "facts", None))]
        return {name: any(of.get(name) for of in known) for name in dict.fromkeys(name for of in known for name in of)}

    def rounds(
        self, question: str, evidence: Sequence[str], candidates: Sequence[str], ballot: Ballot | None = None
    ) -> Rounds:
        """Ask each judge; the verdict has `members`, an object a judge with `preferred` or `abstained`."""
        inputs = {"question": question, "evidence": evidence, "candidates": candidates}
        outcomes = yield [
            Request(judge, {**inputs, "ballot": ballot} if getattr(judge, "takes_ballot", False) else inputs, "judge")
            for judge in self.judges
        ]
        answers = answers_of(candidates)
        replies = [read_verdict(one.content, answers, len(evidence)) for one in outcomes]
        members = [
            {"preferred": reply.preferred}
            if isinstance(reply, Verdict)
            else {"preferred": None, "abstained": reply.reason}
            for reply in replies
        ]
        return dspy.Prediction(**_majority(replies, classes_of(answers)), members=members, orders=[])


def _majority(replies: Sequence[Verdict | Abstention], classes: Sequence[int | None]) -> Mapping[str, Any]:
    """Return the preference of more than half of the judges, or why there is none."""
    inapplicable = [one for one in replies if isinstance(one, Abstention) and one.kind == "not applicable"]
    if len(inapplicable) == len(replies):
        return inapplicable[0].fields
    n, preferred = len(replies), [reply.preferred for reply in replies if isinstance(reply, Verdict)]
    votes = Counter(key for index in preferred if (key := classes[index]) is not None)
    winner, most = max(votes.items(), key=lambda entry: entry[1], default=(0, 0))
    if 2 * most <= n:
        counts = "".join(f"{count} for candidate {index}, " for index, count in sorted(votes.items()))
        return {"abstained": f"no majority of {n} judges: {counts}{n - len(preferred)} absent"}
    named = Counter(index for index in preferred if classes[index] == winner)
    chosen = max(named, key=lambda index: (named[index], -index))
    return {"preferred": chosen, "judge_rationale": f"{most} of {n} judges prefer this answer"}
