"""The two frames of judges: one counts a ballot, the other asks modules in rounds; and what their judges share."""

import math
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any, Literal, TypeAlias

import dspy

from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.decision import adrive, drive
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.lms.consulting import RoleOutput, UnwritableReplyError
from eldgr_dspy.programs.lms.one_call import Request, aask_each, ask_each, calls_of
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention, Verdict, split_candidate
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.rule.voting import majority
from eldgr_dspy.words import TASKS, Task

NO_CANDIDATE = "there is no candidate to judge"

Column: TypeAlias = Literal["confidence", "logprobs", "scores"]

Rounds: TypeAlias = "Generator[Sequence[Request], list[RoleOutput], dspy.Prediction]"
"""Yields the requests of a round, is sent their outcomes, and returns the judge's verdict."""


class CountingJudge(dspy.Module):
    """A judge that counts a ballot, in a thread where it is awaited; a subclass says how in `count`.

    Attributes:
        takes_ballot: Makes selector and run give a judge the candidates as a `Ballot`.
        asks_lm, sets_lm: Whether it may ask an LM, and set the one that it asks.
    """

    takes_ballot, asks_lm, sets_lm = True, False, False

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Return `preferred` and `judge_rationale`, or `abstained` with the reason; at least one candidate votes."""
        raise NotImplementedError

    def forward(self, *, ballot: Ballot | None = None, **_: object) -> dspy.Prediction:
        """Return what `count` says, or abstain if no candidate votes; raise an ArgumentError without a ballot."""
        if ballot is None:
            raise ArgumentError(
                f"{type(self).__name__} must be given a ballot; got None. Make it the judge of a Selector, or a member "
                "of a Panel there: SwapConsistent and PairwiseJudge show texts alone."
            )
        return self.count(ballot) if ballot.voters else abstain(NO_CANDIDATE)

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return 0 without an LM; None for code that may ask one, as often as it likes."""
        return None if self.asks_lm else 0


@dataclass(frozen=True, slots=True)
class Weighing:
    """A formula over what a pool states of its candidates.

    Attributes:
        column: What it reads. elects: Whether weights are added by class; otherwise the highest weight wins.
        weights: Makes the weights of values, one for each candidate that votes, with the parameter.
        parameter: The parameter's default; None where the formula has none. range: where it must lie.
        least: The lowest value that has a meaning. positioned: Whether it imitates a system that was not rerun.
        abstains_below: Whether it abstains if the highest weight is below the parameter.
    """

    column: Column
    elects: bool
    weights: Callable[[Sequence[float], float], Sequence[float]] = lambda values, _: values
    parameter: float | None = None
    range: tuple[float, float] = (0.0, math.inf)
    least: float = -math.inf
    positioned: bool = False
    abstains_below: bool = False


def preferring_by(ballot: Ballot, preferred: int, rationale: str, values: Mapping[int, float]) -> dspy.Prediction:
    """Return a verdict; with `assessments` if all values lie from 0 to 1, 0 for a candidate that does not vote."""
    scalars = [{"scalar": values.get(index, 0.0)} for index in range(len(ballot.classes))]
    assessments = scalars if all(0 <= value <= 1 for value in values.values()) else None
    return dspy.Prediction(preferred=preferred, judge_rationale=rationale, assessments=assessments, orders=[])


def abstain(why: str | Abstention, **more: Any) -> dspy.Prediction:
    """Return a judge's abstention, given its reason if the judge has nothing to say."""
    fields = why.fields if isinstance(why, Abstention) else {"abstained": why}
    return dspy.Prediction(**{**fields, "orders": [], **more})


class RepeatedCalls(dspy.Module):
    """A judge that asks other modules in rounds; a subclass says in `rounds` what it asks and what it makes of it.

    Without a candidate it asks nobody and abstains. A reply that it needs and cannot parse is treated like a plain
    judge's: it is raised.
    """

    sets_lm = False

    def rounds(self, *arguments: Any, **inputs: Any) -> Rounds:
        """Yield the requests of each round, given what `forward` is, and return the verdict.

        Its `orders` are what was shown together, empty if no two candidates are.
        """
        raise NotImplementedError

    def forward(
        self, *, question: str, evidence: Sequence[str], candidates: Sequence[str], **ballot: Any
    ) -> dspy.Prediction:
        """Return what `rounds` returns, one request after the other; raise the error of one that failed."""
        rounds = self.rounds(question, evidence, candidates, **ballot)
        return drive(rounds, ask_each) if candidates else abstain(NO_CANDIDATE)

    async def aforward(
        self, *, question: str, evidence: Sequence[str], candidates: Sequence[str], **ballot: Any
    ) -> dspy.Prediction:
        """Do the same as `forward`, with the requests of a round at once."""
        rounds = self.rounds(question, evidence, candidates, **ballot)
        return await adrive(rounds, aask_each) if candidates else abstain(NO_CANDIDATE)

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return the calls of the first round, the only one unless a subclass says more; None if unknown."""
        requests = next(self.rounds("", (), candidates), ()) if candidates else ()
        modules: Any = [(one.module, one.inputs.get("candidates", [one.inputs.get("candidate")])) for one in requests]
        calls = [*starmap(calls_of, modules)]
        return None if None in calls else sum(filter(None, calls))


def about_each(
    texts: Sequence[str], requests: Callable[[str], Sequence[Request]]
) -> Generator[Sequence[Request], list[RoleOutput], list[list[Mapping[str, Any]]]]:
    """Make the requests about each text, about identical ones once; return the replies, or raise a parse error."""
    by_text = {text: requests(text) for text in dict.fromkeys(texts)}
    replies = yield [request for about in by_text.values() for request in about]
    require_read(replies)
    each = iter(replies)
    contents = {text: [next(each).content for _ in about] for text, about in by_text.items()}
    return [contents[text] for text in texts]


def require_read(replies: Sequence[RoleOutput]) -> None:
    """Raise the first parse error, for a judge that needs all its replies."""
    for reply in replies:
        # A reply that could be read but not written is an ordinary abstention.
        if reply.error is not None and not isinstance(reply.error, UnwritableReplyError):
            raise reply.error


def read_verdict(content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> Verdict | Abstention:
    """Return a judge's verdict, or why there is none; see `eldgr_dspy.rule.replies.read_reply`."""
    verdict: Any = read_reply("judge", content, answers, n_passages)
    return verdict  # type: ignore[no-any-return]


def answers_of(candidates: Sequence[str]) -> list[str]:
    """Return the final answers of candidates as they are shown to a judge."""
    return [split_candidate(candidate)[1] for candidate in candidates]


def classes_of(answers: Sequence[str]) -> list[int | None]:
    """Return the class of each answer as the index of the first answer in it; None for text without an answer."""
    # A judge does not know the task, so one class holds all answers that vote together in retrieval or in arithmetic,
    # even through a third: '18.0', '18' and 'The 18'.
    first, keys = dict[tuple[Task, str], int](), list[list[tuple[Task, str]]]()
    for index, answer in enumerate(answers):
        keys.append([(task, of.key) for task in TASKS if (of := answer_class(answer, task)) is not None])
        classes = {first[key] for key in keys[-1] if key in first}
        least = min(classes, default=index)
        if len(classes) > 1:  # these were separate until now
            first = {key: least if place in classes else place for key, place in first.items()}
        first.update(dict.fromkeys(keys[-1], least))
    return [first[own[0]] if own else None for own in keys]


def preferring(
    scores: Sequence[float | Abstention], candidates: Sequence[str], rationale: Callable[[int], object], **more: Any
) -> dspy.Prediction:
    """Return the verdict of a judge that scores each candidate: the highest score wins."""
    # A candidate without a score may have been the best, so the whole is an abstention.
    for index, score in enumerate(scores):
        if isinstance(score, Abstention):
            return abstain(replace(score, reason=f"{score.reason} (of candidate {index})"))
    numbers = [float(score) for score in scores if not isinstance(score, Abstention)]
    classes = classes_of(answers := answers_of(candidates))
    votes = [(of, Counter(of)) for of in (classes, *(majority(answers, task).classes for task in TASKS))]

    # Source: ours. Of equal scores, the answer with more votes wins, then the earliest answer. Of the spellings of one
    # answer, it is the one with most votes in both tasks, then the earliest.
    def standing(index: int) -> tuple[float, ...]:
        if (first := classes[index]) is None:
            return numbers[index], 0, 0, 0, -index
        together, *alike = (count[keys[index]] for keys, count in votes)
        return numbers[index], together, -first, sum(alike), -index

    preferred = max(range(len(numbers)), key=standing)
    fields = {"assessments": [{"scalar": number} for number in numbers], "orders": [], **more}
    return dspy.Prediction(preferred=preferred, judge_rationale=str(rationale(preferred) or ""), **fields)
