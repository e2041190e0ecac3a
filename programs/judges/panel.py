"""A judge that is a panel of judges: the answer that most of them prefer, or the candidate with the best mean score.

Source: a panel of several LMs, by vote or by mean, is of Verga et al. 2024, "Replacing Judges with Juries" (arXiv
2404.18796). That a judge without a verdict stays in the denominator is ours: a panel does not shrink.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import dspy

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.consultations import Abstention, Reply, Verdict
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.consulting import Said
from eldgr_dspy.programs.judges.counting import abstained
from eldgr_dspy.programs.judges.repeated_calls import RepeatedCalls, Rounds, answers_of, classes_of, highest, listed
from eldgr_dspy.programs.one_call import Request, calls_of
from eldgr_dspy.questions import require_one_of
from eldgr_dspy.replies import read_reply

Combine = Literal["majority", "mean"]


class Panel(RepeatedCalls):
    """Asks several judges, and combines their verdicts.

        selector.judge = Panel([Judge(), PairwiseJudge(), PointwiseJudge()])

    `majority` prefers the answer that more than half of all judges prefer, else it abstains. Preferences are compared
    as answers vote. Of that answer's candidates, the one that most of these judges prefer ships, then the earliest.
    `mean` prefers the candidate with the highest sum of scalars, divided by the number of all judges. A tie goes to the
    answer with more votes, then to the earliest. It abstains if no judge gives scores.

    A judge that abstains, or whose reply cannot be used, is absent: it prefers nothing, and counts as a score of 0 for
    each candidate, as does a verdict without scores. If the pool lacks what each of them needs, the panel does not
    apply either. A failed call is raised.

    Attributes:
        judges: Modules in the judge's role, each given the whole pool. combine: How verdicts are combined.
    """

    def __init__(self, judges: Sequence[dspy.Module], combine: Combine = "majority") -> None:
        """Set up the panel.

        Args:
            judges: At least one module in the judge's role. combine: `majority` or `mean`.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__()
        given: Any = judges
        if not isinstance(given, Sequence) or not given:
            raise ArgumentError(f"judges must be a list of at least one judge; got {given!r:.80}. Give [Judge()].")
        for number, judge in enumerate(judges):
            if not isinstance(judge, dspy.Module):
                raise ArgumentError(
                    f"judges[{number}] must be a dspy.Module; got {judge!r:.80}. Give one like Judge()."
                )
        require_one_of("combine", combine, get_args(Combine))
        self.judges: list[dspy.Module] = list(judges)
        self.combine: Combine = combine

    @property
    def takes_ballot(self) -> bool:
        """Whether a member counts ballots."""
        return any(getattr(judge, "takes_ballot", False) for judge in self.judges)

    @property
    def facts(self) -> dict[str, bool]:
        """What any of its members needs, as tables show it; empty if none of them states it."""
        known: list[Mapping[str, bool]] = [of for judge in self.judges if (of := getattr(judge, "facts", None))]
        names = dict.fromkeys(name for of in known for name in of)
        return {name: any(of.get(name) for of in known) for name in names}

    def rounds(
        self, question: str, evidence: Sequence[str], candidates: Sequence[str], ballot: Ballot | None = None
    ) -> Rounds:
        """Ask each judge; the verdict has `members`, an object a judge with `preferred` or `abstained`."""
        inputs = {"question": question, "evidence": evidence, "candidates": candidates}
        said = yield self._requests(inputs, ballot)
        return self._settled(said, candidates, len(evidence))

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return the calls of all judges; None if one does not say how many it takes."""
        each = [calls_of(judge, candidates) for judge in self._asked(candidates)]
        known = [calls for calls in each if calls is not None]
        return sum(known) if len(known) == len(each) else None

    def _requests(self, inputs: Mapping[str, Any], ballot: Ballot | None) -> list[Request]:
        """Return whom to ask, each with its inputs; a member that counts ballots gets the ballot."""
        return [
            Request(judge, {**inputs, **({"ballot": ballot} if getattr(judge, "takes_ballot", False) else {})}, "judge")
            for judge in self._asked(inputs["candidates"])
        ]

    def _asked(self, candidates: Sequence[str]) -> list[dspy.Module]:
        return self.judges if candidates else []

    def _settled(self, said: Sequence[Said], candidates: Sequence[str], n_passages: int) -> dspy.Prediction:
        if not candidates:
            return abstained("there is no candidate to judge", members=[])
        answers = answers_of(candidates)
        replies = [read_reply("judge", one.content, answers, n_passages) for one in said]
        members = [_member(reply) for reply in replies]
        inapplicable = [one for one in replies if isinstance(one, Abstention) and one.kind == "not applicable"]
        if len(inapplicable) == len(replies):
            return abstained(inapplicable[0].reason, members=members)
        verdicts = [reply for reply in replies if isinstance(reply, Verdict)]
        combined = _majority if self.combine == "majority" else _mean
        fields = combined(verdicts, answers, len(replies))
        return dspy.Prediction(**fields, members=members, orders=[])


def _majority(verdicts: Sequence[Verdict], answers: Sequence[str], n: int) -> dict[str, Any]:
    """Return the preference of more than half of n judges, or why there is none."""
    classes = classes_of(answers)
    votes = Counter(key for verdict in verdicts if (key := classes[verdict.preferred]) is not None)
    winner, most = max(votes.items(), key=lambda entry: entry[1], default=(0, 0))
    if 2 * most <= n:
        counts = [f"{count} for candidate {index}" for index, count in sorted(votes.items())]
        return {"abstained": f"no majority of {n} judges: {listed([*counts, f'{n - len(verdicts)} absent'])}"}
    named = Counter(verdict.preferred for verdict in verdicts if classes[verdict.preferred] == winner)
    preferred = max(named, key=lambda index: (named[index], -index))
    return {"preferred": preferred, "judge_rationale": f"{most} of {n} judges prefer this answer"}


def _mean(verdicts: Sequence[Verdict], answers: Sequence[str], n: int) -> dict[str, Any]:
    """Return the candidate with the highest mean over n judges, or why there is none."""
    rows = [verdict.scores for verdict in verdicts if verdict.scores is not None]
    if not rows:
        return {"abstained": f"no scores from any of {n} judges"}
    means = [math.fsum(row[index] for row in rows) / n for index in range(len(answers))]
    preferred = highest(means, answers)
    rationale = f"mean score {means[preferred]:.3f} over {n} judges, {n - len(rows)} of them without scores"
    return {"preferred": preferred, "assessments": [{"scalar": mean} for mean in means], "judge_rationale": rationale}


def _member(reply: Reply) -> Mapping[str, Any]:
    if isinstance(reply, Verdict):
        return {"preferred": reply.preferred}
    return {"preferred": None, "abstained": reply.reason if isinstance(reply, Abstention) else ""}
