"""Any program, sampled several times: all samples at once, and a selector decides which answer ships."""

import asyncio
import logging
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Literal, TypeAlias

import dspy

from eldgr_dspy.cases import Case
from eldgr_dspy.decision import adrive, drive
from eldgr_dspy.errors import ArgumentError, describe_failure, settled
from eldgr_dspy.programs.consulting import awaitable
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.rollouts import Trace, holds_lm, keep_trace, own_trace, rollout
from eldgr_dspy.programs.samples import (
    Sample,
    by_name,
    candidate_of,
    evidence_of,
    question_of,
    retrieved,
    shipped,
    with_completions,
)
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.typed_answers import outputs
from eldgr_dspy.rows import MAX_CANDIDATES
from eldgr_dspy.stopping import Posterior, Settled, Stop, next_batch

_log = logging.getLogger(__name__)

_Batches: TypeAlias = "Generator[range, list[Sample], list[Sample]]"


class Sampled(dspy.Module):
    """Call a program several times on the same inputs, and ship the answer that a `Selector` decides for.

        qa = Sampled(dspy.ChainOfThought("context: list[str], question -> answer"), n=5)
        pred = qa(context=passages, question="...")
        pred.answer, pred.reasoning, pred.branch, pred.votes, pred.completions

    It takes the inputs of the program. The question is the input `question`, else all inputs that are not evidence. The
    evidence is the input `evidence`, `context` or `passages`; without one, the passages that the samples return under
    these names, all together. The answer is the field that the selector's `answer_field` names.

    A sample that raises, returns no prediction or lacks the answer field is a candidate without an answer: it is logged
    and listed in `failed_samples`, and the others decide. If all fail, or the selector's `on_error` is `raise`, the
    first error is raised with a note that names the sample.

    Attributes:
        program: The program; its predictors are those that optimizers see, together with the selector's.
        select: The selector.
        n, stop, temperature, num_threads: As given.
    """

    def __init__(
        self,
        program: dspy.Module,
        n: int = 5,
        select: Selector | None = None,
        stop: Literal["settled"] | Posterior | None = None,
        temperature: float | None = None,
        num_threads: int | None = None,
    ) -> None:
        """Create the program.

        Args:
            program: Any module, sync or async. Its samples are calls of one module in several threads or tasks.
            n: The most samples of a question.
            select: Decides; `Selector()` by default. Its `task` and `answer_field` are those of the program's answers.
            stop: None draws all samples at once. "settled" draws them in batches, and stops when no remaining sample
                can change the class that ships. `Posterior(0.95)`, of `eldgr_dspy.stopping`, stops when the lead is
                probable; the samples that it spares could have changed the answer.
            temperature: Of the samples, unless a predictor sets its own. None leaves the LM's own.
            num_threads: The most samples at once; None: all of a batch.

        Raises:
            ArgumentError: naming the argument and what was expected.
        """
        super().__init__()
        if not isinstance(program, dspy.Module):
            raise ArgumentError(
                f"program must be a dspy.Module, such as dspy.ChainOfThought(...); got {program!r:.80}."
            )
        if type(n) is not int or not 1 <= n <= MAX_CANDIDATES:
            raise ArgumentError(f"n must be a whole number from 1 to {MAX_CANDIDATES:,}; got {n!r:.80}.")
        if not isinstance(select, Selector | None):
            raise ArgumentError(f"select must be a Selector; got {select!r:.80}.")
        if stop is not None and stop != "settled" and not isinstance(stop, Posterior):
            raise ArgumentError(f"stop must be None, 'settled' or a Posterior; got {stop!r:.80}.")
        if temperature is not None and (type(temperature) not in (int, float) or not temperature > 0):
            raise ArgumentError(f"temperature must be above 0, or all samples are the same; got {temperature!r:.80}.")
        if num_threads is not None and (type(num_threads) is not int or num_threads < 1):
            raise ArgumentError(f"num_threads must be a whole number of at least 1; got {num_threads!r:.80}.")
        self.program = program
        self.n = n
        self.select = select or Selector()
        self.stop: Literal["settled"] | Posterior | None = stop
        self.temperature = temperature
        self.num_threads = num_threads

    def forward(self, *args: Any, **inputs: Any) -> dspy.Prediction:
        """Sample the program and select.

        Returns:
            The selector's prediction with the other fields of the sample that ships, None where no sample has the
            answer that ships, as with a repair; `completions`, all samples in their order, None where one failed; and
            `votes`, `failed_samples` and, if the samples returned the evidence, `passages`. The answer has the type
            that the program declares for it. A span of the evidence that is not of that type counts as an abstention.

        Raises:
            ArgumentError: No sample has the answer field, or the selector refuses a candidate.
            Exception: What the program raised on every sample, and what the selector raises.
        """
        given = by_name(self.program, args, inputs)
        samples = drive(self._batches(given), partial(self._draw, given))
        calling = self._calling(given, samples)
        with dspy.context(trace=own_trace()):
            said, trace = self.select(**calling), dspy.settings.trace
        return self._prediction(calling, said, samples, trace)

    async def aforward(self, *args: Any, **inputs: Any) -> dspy.Prediction:
        """Do the same as `forward`, with the samples in tasks."""
        given = by_name(self.program, args, inputs)
        samples = await adrive(self._batches(given), partial(self._adraw, given))
        calling = self._calling(given, samples)
        with dspy.context(trace=own_trace()):
            said, trace = await self.select.acall(**calling), dspy.settings.trace
        return self._prediction(calling, said, samples, trace)

    # -- sampling -----------------------------------------------------------------------------------------------------

    def _batches(self, given: Mapping[str, Any]) -> _Batches:
        """Yield the numbers of the samples to draw next, and return all samples."""
        stop: Stop | None = Settled() if self.stop == "settled" else self.stop
        samples: list[Sample] = []
        more = next_batch(stop, self._case(self._inputs(given, samples)), self.n)
        while more:
            samples += yield range(len(samples), len(samples) + more)
            more = 0 if len(samples) == self.n else next_batch(stop, self._case(self._inputs(given, samples)), self.n)
        return samples

    def _draw(self, given: Mapping[str, Any], numbers: range) -> list[Sample]:
        """Draw samples in threads, each in a copy of this context: DSPy's settings, usage and callbacks hold in it."""
        sample = partial(self._sample, given, holds_lm(self.program))
        with ThreadPoolExecutor(self.num_threads or len(numbers), "eldgr-sampling") as threads:
            return [one.result() for one in [threads.submit(copy_context().run, sample, one) for one in numbers]]

    async def _adraw(self, given: Mapping[str, Any], numbers: range) -> list[Sample]:
        places, bound = asyncio.Semaphore(self.num_threads or len(numbers)), holds_lm(self.program)

        async def sample(number: int) -> Sample:
            async with places:
                return await self._asample(given, bound, number)

        return await asyncio.gather(*map(sample, numbers))

    def _sample(self, given: Mapping[str, Any], bound: bool, number: int) -> Sample:
        with rollout(self.program, number, self.n, self.temperature, bound=bound) as (program, trace):
            try:
                said = settled(program(**given), "program", "await it: await sampled.acall(...)")
                return Sample(self._checked(said, trace), trace)
            except Exception as error:  # noqa: BLE001 - the other samples decide
                return Sample(None, trace, self._noted(error, number))

    async def _asample(self, given: Mapping[str, Any], bound: bool, number: int) -> Sample:
        with rollout(self.program, number, self.n, self.temperature, bound=bound) as (program, trace):
            try:
                return Sample(self._checked(await awaitable(program)(**given), trace), trace)
            except Exception as error:  # noqa: BLE001 - as in `_sample`
                return Sample(None, trace, self._noted(error, number))

    def _checked(self, said: Any, trace: Trace) -> dspy.Prediction:
        """Return what a sample returned, if it can be a candidate."""
        name, field = type(self.program).__name__, self.select.answer_field
        if not isinstance(said, dspy.Prediction):
            shown = " ".join(repr(said).split())
            raise ArgumentError(f"The program {name} must return a dspy.Prediction with {field!r}; got {shown:.80}.")
        if field not in said:
            raise ArgumentError(
                f"The prediction of {name} has no field {field!r}; it has {', '.join(map(repr, said.keys()))}. Name "
                "the field that holds the answer: Sampled(program, select=Selector(answer_field=...))."
            )
        passages = retrieved(self.program, {}, said, trace)
        to_question("", [candidate_of(said, field)], passages, self.select.task, field)
        return said

    def _noted(self, error: Exception, number: int) -> Exception:
        error.add_note(f"Raised by completions[{number}], one of {self.n} samples of {type(self.program).__name__}.")
        _log.warning("completions[%d] of %d failed: %s", number, self.n, describe_failure(error))
        return error

    # -- selecting ----------------------------------------------------------------------------------------------------

    def _calling(self, given: Mapping[str, Any], samples: Sequence[Sample]) -> dict[str, Any]:
        """Return the inputs of the selector; raise if the samples cannot be used."""
        failed = [one.error for one in samples if one.error is not None]
        if failed and (len(failed) == len(samples) or self.select.on_error == "raise"):
            raise failed[0]
        return self._inputs(given, samples)

    def _inputs(self, given: Mapping[str, Any], samples: Sequence[Sample]) -> dict[str, Any]:
        return {
            "question": question_of(given),
            "candidates": [candidate_of(one.said, self.select.answer_field) for one in samples],
            "evidence": evidence_of(self.program, given, samples),
        }

    def _case(self, calling: Mapping[str, Any]) -> Case:
        """Return the samples as the rule sees them."""
        asked = to_question(**calling, task=self.select.task, answer_field=self.select.answer_field)
        return Case(asked, self.select.settings)

    def _prediction(self, calling: dict[str, Any], said: Any, samples: list[Sample], roles: Trace) -> dspy.Prediction:
        case, field = self._case(calling), self.select.answer_field
        values, index = shipped(case, said.toDict(), [one.said for one in samples], outputs(self.program), field)
        keep_trace([*(samples[index].trace if index is not None else ()), *(roles or ())])
        failed = [{"sample": at, "error": describe_failure(one.error)} for at, one in enumerate(samples) if one.error]
        return with_completions({**values, "failed_samples": failed}, [one.said for one in samples], index)
