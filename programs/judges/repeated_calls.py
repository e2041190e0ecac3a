"""The base of judges that ask other modules several times, and what they make of candidates as they are shown."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import dspy

from eldgr_dspy.answers import answer_class
from eldgr_dspy.consultations import Abstention, Verdict, split_candidate
from eldgr_dspy.decision import adrive, drive
from eldgr_dspy.programs.consulting import Said, UnwritableReplyError
from eldgr_dspy.programs.judges.counting import NO_CANDIDATE, abstained
from eldgr_dspy.programs.one_call import Request, aask_each, ask_each
from eldgr_dspy.replies import read_reply
from eldgr_dspy.voting import majority
from eldgr_dspy.words import TASKS, Task

Rounds: TypeAlias = "Generator[Sequence[Request], list[Said], dspy.Prediction]"
"""Yields the requests of a round, is sent their outcomes, and returns the judge's verdict."""


class RepeatedCalls(dspy.Module):
    """A judge that asks other modules in rounds; a subclass says in `rounds` what it asks and what it makes of it.

    Without a candidate it asks nobody and abstains.
    """

    sets_lm = False

    def rounds(self, *arguments: Any, **inputs: Any) -> Rounds:
        """Yield the requests of each round, given what `forward` is, and return the verdict.

        Returns:
            `preferred`, `judge_rationale` and perhaps `assessments`, or `abstained` with the reason; and `orders`, what
            was shown together, empty if no two candidates are.
        """
        raise NotImplementedError

    def forward(
        self, *, question: str, evidence: Sequence[str], candidates: Sequence[str], **ballot: Any
    ) -> dspy.Prediction:
        """Return what `rounds` returns, asking one request after the other.

        Raises:
            dspy.AdapterParseError: A reply that the judge needs cannot be read.
            dspy.LMError: A request failed.
        """
        rounds = self.rounds(question, evidence, candidates, **ballot)
        return drive(rounds, ask_each) if candidates else abstained(NO_CANDIDATE)

    async def aforward(
        self, *, question: str, evidence: Sequence[str], candidates: Sequence[str], **ballot: Any
    ) -> dspy.Prediction:
        """Do the same as `forward`, with the requests of a round at once."""
        rounds = self.rounds(question, evidence, candidates, **ballot)
        return await adrive(rounds, aask_each) if candidates else abstained(NO_CANDIDATE)


def about_each(
    texts: Sequence[str], requests: Callable[[str], Sequence[Request]]
) -> Generator[Sequence[Request], list[Said], list[list[Mapping[str, Any]]]]:
    """Make the requests about each text, about identical ones once, and return what was said about each text.

    Raises:
        dspy.AdapterParseError: A reply cannot be read.
    """
    by_text = {text: requests(text) for text in dict.fromkeys(texts)}
    outputs = yield [request for about in by_text.values() for request in about]
    require_read(outputs)
    replies = iter(outputs)
    contents = {text: [next(replies).content for _ in about] for text, about in by_text.items()}
    return [contents[text] for text in texts]


def require_read(outputs: Sequence[Said]) -> None:
    """Raise the first parse error, for a judge that needs all its replies; it is treated like a plain judge's.

    A reply that could be read but not written is an ordinary abstention.

    Raises:
        dspy.AdapterParseError: A reply cannot be read.
    """
    for reply in outputs:
        if reply.error is not None and not isinstance(reply.error, UnwritableReplyError):
            raise reply.error


def read_verdict(content: Mapping[str, Any], answers: Sequence[str | None], n_passages: int) -> Verdict | Abstention:
    """Return a judge's verdict, or why there is none; see `eldgr_dspy.replies.read_reply`."""
    verdict: Any = read_reply("judge", content, answers, n_passages)
    return verdict  # type: ignore[no-any-return]


def answers_of(candidates: Sequence[str]) -> list[str]:
    """Return the final answers of candidates as they are shown to a judge."""
    return [split_candidate(text)[1] for text in candidates]


def classes_of(answers: Sequence[str]) -> list[int | None]:
    """Return the class of each answer as the index of the first answer in it; None for text without an answer.

    A judge does not know the task, so one class holds all answers that vote together in retrieval or in arithmetic,
    even through a third: '18.0', '18' and 'The 18'.
    """
    keys: list[list[tuple[Task, str]]] = [
        [(task, kind.key) for task in TASKS if (kind := answer_class(answer, task)) is not None] for answer in answers
    ]
    first: dict[tuple[Task, str], int] = {}
    for index, own in enumerate(keys):
        places = {first[key] for key in own if key in first}
        least = min(places, default=index)
        if len(places) > 1:  # these were separate until now
            first = {key: least if place in places else place for key, place in first.items()}
        first.update(dict.fromkeys(own, least))
    return [first[own[0]] if own else None for own in keys]


def preferring(
    scores: Sequence[float | Abstention], candidates: Sequence[str], rationale: Callable[[int], object], **more: Any
) -> dspy.Prediction:
    """Return the verdict of a judge that scores each candidate: the highest score wins.

    Args:
        scores: One a candidate, or why there is none. The whole is an abstention then, because that
            candidate may have been the best.
        candidates: As they are shown.
        rationale: Why a candidate is preferred, by its index. more: further fields of the verdict.
    """
    for index, score in enumerate(scores):
        if isinstance(score, Abstention):
            return abstained(replace(score, reason=f"{score.reason} (of candidate {index})"))
    numbers = [float(score) for score in scores if not isinstance(score, Abstention)]
    preferred = _highest(numbers, answers_of(candidates))
    fields = {"assessments": [{"scalar": score} for score in numbers], "orders": [], **more}
    return dspy.Prediction(preferred=preferred, judge_rationale=str(rationale(preferred) or ""), **fields)


def _highest(scores: Sequence[float], answers: Sequence[str]) -> int:
    """The index of the highest score; of several, the answer with more votes, then the earliest answer.

    Of the spellings of one answer with one score, it is the one with most votes in both tasks, then the earliest.
    Source: ours.
    """
    classes = classes_of(answers)
    votes = Counter(key for key in classes if key is not None)
    tasks = [majority(answers, task).classes for task in TASKS]
    voters = [Counter(keys) for keys in tasks]

    def standing(index: int) -> tuple[float, int, int, int, int]:
        key = classes[index] or 0
        alike = sum(n[keys[index]] for n, keys in zip(voters, tasks, strict=True))
        return scores[index], 0 if classes[index] is None else votes[key], -key, alike, -index

    return max(range(len(scores)), key=standing)


def sum_of_calls(each: Iterable[int | None]) -> int | None:
    """Return how many calls several modules take; None if one does not say."""
    calls = [*each]
    return None if None in calls else sum(filter(None, calls))


def listed(values: Sequence[Any]) -> str:
    """Return values as a list in a sentence."""
    return ", ".join(map(str, values))
