"""Which candidate a judge with scores prefers, and how a tie is broken."""

from collections import Counter
from collections.abc import Sequence

from eldgr_dspy.programs.judges.repeated_calls import classes_of
from eldgr_dspy.voting import majority
from eldgr_dspy.words import TASKS


def highest(scores: Sequence[float], answers: Sequence[str]) -> int:
    """Return the index of the highest score; of several, the answer with more votes, then the earliest answer.

    Of the spellings of one answer with one score, it is the one with most votes in both tasks, then the earliest. There
    must be at least one score. Source: ours.
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
