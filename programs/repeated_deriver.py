"""A deriver that is asked several times, so that the level `agreed` can compare its derivations."""

import asyncio
from collections.abc import Sequence
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.lms.consulting import RoleOutput, aask, ask
from eldgr_dspy.programs.lms.lms import holds_lm
from eldgr_dspy.programs.lms.one_call import calls_of
from eldgr_dspy.programs.lms.rollouts import rollout
from eldgr_dspy.programs.roles import Deriver
from eldgr_dspy.rule.consultations import Derivation
from eldgr_dspy.rule.derivations import check_derivation
from eldgr_dspy.rule.replies import MOST_OTHERS, read_reply


class RepeatedDeriver(dspy.Module):
    """Asks a deriver `n` times, and returns one derivation with the others as `other_derivations`.

    The first is the earliest that passes the check `bounded` and has the answer of another one that passes, else the
    earliest. A sample that cannot be used is left out. If all cannot, the deriver abstains. A failed call is raised.

    Attributes:
        deriver: A module in the deriver's role. n: how often it is asked. temperature: of the samples.
    """

    sets_lm = False

    def __init__(self, deriver: dspy.Module | None = None, n: int = 3, temperature: float = 0.7) -> None:
        """Set up the deriver.

        Args:
            deriver: `Deriver()` by default. n: from 2 to 16. temperature: above 0, or all samples are the same.

        Raises:
            ArgumentError: naming the argument and what was expected.
        """
        super().__init__()
        if type(n) is not int or not 2 <= n <= MOST_OTHERS + 1:
            raise ArgumentError(f"n must be a whole number from 2 to {MOST_OTHERS + 1}; got {n!r:.80}.")
        if type(temperature) not in (int, float) or not temperature > 0:
            raise ArgumentError(f"temperature must be above 0, or all samples are the same; got {temperature!r:.80}.")
        self.deriver = deriver or Deriver()
        self.n, self.temperature = n, temperature

    def forward(self, *, question: str) -> dspy.Prediction:
        """Ask `n` times, one after the other.

        Raises:
            dspy.LMError: A request failed.
        """
        return _agreement(question, [self._sample(question, number) for number in range(self.n)])

    async def aforward(self, *, question: str) -> dspy.Prediction:
        """Do the same as `forward`, asking all at once."""
        samples = (self._asample(question, number) for number in range(self.n))
        return _agreement(question, await asyncio.gather(*samples))

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return how many LM calls it takes at most, or None if the deriver does not say."""
        calls = calls_of(self.deriver, candidates)
        return None if calls is None else self.n * calls

    def _sample(self, question: str, number: int) -> RoleOutput:
        with self._rollout(number) as (deriver, _):
            return ask(deriver, {"question": question}, "deriver")

    async def _asample(self, question: str, number: int) -> RoleOutput:
        with self._rollout(number) as (deriver, _):
            return await aask(deriver, {"question": question}, "deriver")

    def _rollout(self, number: int) -> Any:
        return rollout(self.deriver, number, self.n, self.temperature, bound=holds_lm(self.deriver))


def _agreement(question: str, samples: Sequence[RoleOutput]) -> dspy.Prediction:
    """Return the derivation that another confirms, else the first, with the others. An abstention without any."""
    replies = [(sample.content, read_reply("deriver", sample.content, (), 0)) for sample in samples]
    usable = [(content, reply) for content, reply in replies if isinstance(reply, Derivation)]
    if not usable:
        error = next((sample.error for sample in samples if sample.error is not None), None)
        if error is not None:
            raise error
        return dspy.Prediction(**samples[0].content)
    checks = [check_derivation(reply, question) for _, reply in usable]
    answers = [check.answer for check in checks if check.passed]
    first = next((at for at, one in enumerate(checks) if one.passed and answers.count(one.answer) > 1), 0)
    others = [dict(content) for at, (content, _) in enumerate(usable) if at != first]
    return dspy.Prediction(**usable[first][0], other_derivations=others)
