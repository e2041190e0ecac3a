"""The group rank of EL-DGR as a reward: a completion's place among those of its own question.

A process ranks its own completions, so each must have whole groups: `per_device_train_batch_size` times
`steps_per_generation` is a multiple of `num_generations`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from eldgr_dspy.answer_types import IN_FILES
from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.lexical import is_yes_no
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.training.reward_base import Reward, RewardResults
from eldgr_dspy.training.reward_calls import Call
from eldgr_dspy.words import Policy

Key = tuple[int, bool, bool, float]
"""Stratum, supported and in consensus, scored, score: a later entry only breaks ties of the earlier ones."""

SUPPORTED, UNCERTIFIED, INAPPLICABLE = 2, 1, 0
"""The strata: certified, or a yes or no where one is asked for; not certified; a yes or no where none is asked for."""

NO_SCORE: Final = Undefined("there is no auxiliary score")


class GroupReward(Reward):
    """The place of a completion in the group rank: 1 for the best of its group, 0 for the worst, ties share theirs.

    There are three strata. First are certified answers. To a yes or no a certificate does not apply: it is among the
    first if the question opens like one that asks for it, and last of all otherwise. All others are between them, also
    a refusal, so that a policy does not learn to refuse. Among the first, consensus breaks the first tie. Then, in each
    stratum, the auxiliary score decides. No score moves a completion to another stratum. If all are equal each earns
    0.5, from which a group learns nothing. In arithmetic a derivation certifies, but no deriver is asked here, so there
    the auxiliary score alone ranks.

    A place does not show how good the group is. Also logged: `supported`, the share of completions in the first
    stratum, and `auxiliary`, the mean of those scores. Shown: `supported`.

    Source: the lexicographic group rank after Eq. 4 of the paper. Ours: a stratum for a yes or no that was not asked
    for, which the rank of a pool does not have; the position in the group decides nothing, so ties share a place and
    all answers with the most votes are consensus; and the scale.
    """

    weight: ClassVar[float] = 1.0

    def __init__(
        self,
        *,
        auxiliary: Reward | None = None,
        certificate: Policy = "folded",
        group_size: int | None = None,
        name: str = "eldgr_rank",
    ) -> None:
        """Make the reward.

        Args:
            auxiliary: The reward that ranks inside a stratum, as `StepReward`; an undefined score ranks last there.
            certificate: What counts as occurring in the evidence.
            group_size: How many completions a prompt has, if the caller is not a trainer that knows it.
            name: Under which it is logged.

        Raises:
            ArgumentError: `certificate` is not a policy, or `group_size` not a whole number from 1.
        """
        if group_size is not None and (type(group_size) is not int or group_size < 1):
            raise ArgumentError(f"group_size must be a whole number of at least 1; got {group_size!r:.80}.")
        super().__init__(name, ["question", "evidence", "task"], parts=[auxiliary] if auxiliary else [])
        self.auxiliary, self.group_size = auxiliary, group_size
        self.settings = Settings(certificate=certificate)

    def check(self, call: Call) -> None:
        """Raise if certificates are looked for and no row has passages; also what `Reward.check` raises."""
        super().check(call)
        if any(IN_FILES[task].way == "evidence" for task in call.tasks()):
            call.require_passages()

    def measure(self, call: Call) -> RewardResults:
        """Return the place of each completion; see `Reward.measure`.

        Raises:
            ArgumentError: The completions are not whole groups of one prompt each, or their size is not known.
        """
        size = self._size(call)
        _require_whole_groups(call, size)
        answers = [answer.answer if answer else None for answer in call.answers()]
        scores = Scores.of([NO_SCORE] * len(answers))
        if self.auxiliary is not None:
            scores = self.auxiliary.measure(replace(call, reward=self.auxiliary.__name__)).scores
        rows = zip(call.strings("question"), call.tasks(), call.passages(), strict=True)
        questions = [Question(question, task, (), passages=passages or ()) for question, task, passages in rows]
        places, keys = list[float](), list[Key]()
        for at in range(0, len(answers), size):
            group = slice(at, at + size)
            own = self._keys(questions[at], answers[group], scores[group])
            keys += own
            places += midranks(own)
        support = [key[0] == SUPPORTED for key in keys]
        parts = {"supported": Scores.of(list(map(float, support))), "auxiliary": scores}
        return RewardResults(Scores.of(places, "place", 0, 1), parts, {"supported": support})

    def _size(self, call: Call) -> int:
        """Return how many completions a prompt has: as the trainer samples now, which differs in evaluation."""
        trainer = call.trainer
        number = "num_generations" if trainer is None or trainer.model.training else "num_generations_eval"
        size: Any = getattr(trainer, number, self.group_size)
        if size is None:
            raise ArgumentError(
                f"The reward {call.reward!r} does not know how many completions a prompt has; give group_size, or "
                "call it from a trainer of TRL with num_generations."
            )
        return int(size)

    def _keys(self, question: Question, answers: Sequence[str | None], scores: Sequence[Score]) -> list[Key]:
        case = Case(replace(question, answers=tuple(answers)), self.settings)
        votes = case.vote.counts
        consensus = {key for key, n in votes.items() if n == max(votes.values())}
        keys = list[Key]()
        for answer, score, key in zip(answers, scores, case.vote.classes, strict=True):
            stratum = UNCERTIFIED if key is None or case.refuses(answer) else _stratum(case, answer)
            number = None if isinstance(score, Undefined) else score
            keys.append((stratum, stratum == SUPPORTED and key in consensus, number is not None, number or 0.0))
        return keys


def _require_whole_groups(call: Call, size: int) -> None:
    """Raise unless the completions are groups of one prompt each, in the order in which a trainer has them."""
    for number, at in enumerate(range(0, len(call.outputs), size)):
        group = call.prompts[at : at + size]  # by place, since two rows of a dataset may have the same prompt
        if len(group) != size or any(prompt != group[0] for prompt in group):
            raise ArgumentError(
                f"{len(call.outputs)} completions are not groups of {size} of one prompt each: the {len(group)} of "
                f"group {number} are too few, or have different prompts; give the num_generations of the trainer as "
                "group_size, completions in the trainer's order, and each process a multiple of num_generations."
            )


def midranks(keys: Sequence[tuple[Any, ...]]) -> list[float]:
    """Return the place of each key among all, from 0 for the least to 1 for the greatest; equal ones share the mean."""
    beaten = [sum(other < key for other in keys) + (sum(other == key for other in keys) - 1) / 2 for key in keys]
    return [count / (len(keys) - 1) if len(keys) > 1 else 0.5 for count in beaten]


def _stratum(case: Case, answer: str | None) -> int:
    certified = case.certified(answer)
    if certified is None:
        return SUPPORTED if is_yes_no(case.question.text) else INAPPLICABLE
    return SUPPORTED if certified else UNCERTIFIED


eldgr_rank = GroupReward()
