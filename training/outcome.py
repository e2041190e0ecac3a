"""The two rewards of the paper that read only a completion: outcome (R_ORM) and format (R_format)."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.channels.rewards import FORMAT_WEIGHT, OUTCOME_WEIGHT
from eldgr_dspy.channels.undefined import Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.reward_base import Reward, RewardResults, reasons
from eldgr_dspy.training.reward_calls import COLUMNS, Call, is_marked
from eldgr_dspy.words import Task

NO_GOLD = Undefined("the row has no gold answer; give one in the column gold")
NO_ANSWER = "the completion has no answer; ask for one in the prompt, as '#### x' in arithmetic or 'A: x'"


class OutcomeReward(Reward):
    """1 for a right final answer, 0 for a wrong or missing one; a row without gold is undefined.

    Right is an exact match in retrieval and numeric equality in arithmetic. Undefined earns 0, as does every completion
    of the same row, so that nothing is gained or lost within a group. A gold text that is not an answer of the task is
    read for the answer that it states, such as the last line of a solution of GSM8K, or refused. Also logged:
    `exact_match`, the mean over the rows with gold, and `answered`, the share of completions that state or end in an
    answer.

    Shown: `answer`, and `note`, why there is none or why it is undefined.

    Source: R_ORM of the paper's completion reward, where it counts 3.0.
    """

    weight: ClassVar[float] = OUTCOME_WEIGHT

    def __init__(self, *, name: str = "orm") -> None:
        super().__init__(name, ["gold", "task"])

    def measure(self, call: Call) -> RewardResults:
        """Return whether each completion is right; see `Reward.measure`."""
        tasks, extractions, golds = call.tasks(), call.answers(), self._golds(call)
        answers = [extraction.answer if extraction else None for extraction in extractions]
        rows = zip(answers, golds, tasks, strict=True)
        scores = Scores.of(float(score(answer, gold, task).em) if gold else NO_GOLD for answer, gold, task in rows)
        parts = {"exact_match": scores, "answered": _flags(extraction is not None for extraction in extractions)}
        notes = [why if extraction else NO_ANSWER for why, extraction in zip(reasons(scores), extractions, strict=True)]
        return RewardResults(scores, parts, {"answer": answers, "note": notes})

    def check(self, call: Call) -> None:
        """Raise if a row's gold cannot be read as an answer of its task; see `Reward.check`."""
        self._golds(call)

    def _golds(self, call: Call) -> list[tuple[str, ...]]:
        rows = enumerate(zip(call.column("gold"), call.tasks(), strict=True))
        return [read_gold(f"gold[{at}]", _accepted_answers(call, at, gold), task) for at, (gold, task) in rows]


class FormatReward(Reward):
    """1 for a completion that marks its final answer (`#### x`, `A: x`, boxed, a phrase), right or wrong; otherwise 0.

    Shown: `form`, in which the answer is stated.

    Source: R_format of the paper's completion reward, where it counts 0.5; what counts as the format is ours, and is
    what `eldgr_dspy.answer_types.extraction` knows.
    """

    weight: ClassVar[float] = FORMAT_WEIGHT

    def __init__(self, *, name: str = "format") -> None:
        super().__init__(name, ["task"])

    def measure(self, call: Call) -> RewardResults:
        """Return whether each completion marks its answer; see `Reward.measure`."""
        extractions = call.answers()
        return RewardResults(
            _flags(is_marked(extraction) for extraction in extractions),
            columns={"form": [extraction.form if extraction else None for extraction in extractions]},
        )


def _accepted_answers(call: Call, at: int, gold: object) -> tuple[str, ...]:
    """Return the answers that a row accepts: none without gold."""
    answers = [gold] if isinstance(gold, str) else [] if gold is None else gold
    if not isinstance(answers, list | tuple) or not all(isinstance(answer, str) for answer in answers):
        raise ArgumentError(
            f"gold[{at}] must be {COLUMNS['gold']}, as strings, for the reward {call.reward!r}; got {gold!r:.80}. Fix "
            "the row of the dataset."
        )
    return tuple(answers)


def _flags(values: Iterable[bool]) -> Scores:
    return Scores.of(list(map(float, values)))


def read_gold(where: str, answers: Sequence[str], task: Task) -> tuple[str, ...]:
    """Return the accepted answers as answers of a task; refuse texts of which none is one or states one."""
    # A text that states one is read as a completion is: the 72 of a whole solution of GSM8K, which ends in "#### 72".
    readings = [_read(text, task) for text in answers]
    readable = tuple(answer for answer in readings if answer is not None)
    if answers and not readable:
        value = answers[0] if len(answers) == 1 else [*answers]
        raise ArgumentError(
            f"{where} must be an answer of the type {task!r}, or a text that states one, as '#### 72'; got "
            f"{value!r:.80}. Fix the row of the dataset."
        )
    return readable


@lru_cache(maxsize=1 << 12)
def _read(text: str, task: Task) -> str | None:
    if _is_answer(text, task):
        return text
    one = extract_answer(text, task)
    return one.answer if one is not None and is_marked(one) and _is_answer(one.answer, task) else None


def _is_answer(text: str, task: Task) -> bool:
    """Return whether a text is right where it is the gold answer itself; a word is not where a number is expected."""
    return bool(text.strip()) and score(text, (text,), task).em


orm = OutcomeReward()
format = FormatReward()
