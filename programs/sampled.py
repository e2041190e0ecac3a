"""Any program, sampled several times: all samples at once, and a selector decides which answer ships."""

import asyncio
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any, Literal, TypeAlias

import dspy

from eldgr_dspy.decision import adrive, drive
from eldgr_dspy.errors import ArgumentError, describe_failure, result_of
from eldgr_dspy.formats.rows import MAX_CANDIDATES
from eldgr_dspy.programs.calls import call_within, is_streaming_thread
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.lms.consulting import awaitable, callable_of, is_failed_call
from eldgr_dspy.programs.lms.lms import holds_lm, replace_lms, reveal_compiled
from eldgr_dspy.programs.lms.rollouts import Trace, is_heard, keep_trace, numbered_lm, own_trace, rollout, roomy_stream
from eldgr_dspy.programs.samples import (
    Sample,
    by_name,
    candidate_of,
    copy_collections,
    evidence_of,
    gives_evidence,
    passages_of_sample,
    question_of,
    require_free_names,
    require_prediction,
    shipment,
    with_completions,
)
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.saved_state import CHOICES, Saved, SavedChoices
from eldgr_dspy.programs.service.service_log import LOG
from eldgr_dspy.programs.service.threads import at_once, in_thread, start
from eldgr_dspy.programs.typed_answers import outputs
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.refusals import OwnRefusals
from eldgr_dspy.rule.stopping import SETTLED_BY, Posterior, Settled, next_batch

_Batches: TypeAlias = "Generator[range, list[Sample], list[Sample]]"


class Sampled(Saved):
    """Call a program several times on the same inputs, and ship the answer that a `Selector` decides for.

        qa = Sampled(dspy.ChainOfThought("context: list[str], question -> answer"), n=5)
        pred = qa(context=passages, question="...")
        pred.answer, pred.reasoning, pred.branch, pred.votes, pred.completions

    It takes the inputs of the program. The question is the input `question`, else all inputs that are not evidence. The
    evidence is the input `evidence`, `context` or `passages`. Without one, the passages that the samples return under
    these names, all together. The answer is the field that the selector's `answer_field` names.

    Each sample has the selector's `timeout`. One that fails is raised or dropped, as the selector says: `on_failure`
    covers calls that did not come through, and raises by default; `on_error` covers everything else, such as a
    prediction without the answer field, and drops it by default. A dropped sample is a candidate without an answer,
    logged and listed in `failed_samples`. If all fail, the first error is raised. A note names the sample. `save` keeps
    n, stop and temperature, and `load` refuses others.

    Attributes:
        program: The program. Its predictors are those that optimizers see, together with the selector's.
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
            select: Decides; `Selector()` by default. Its `answer` and `answer_field` are as the program answers.
            stop: None draws all samples at once. "settled" draws them in batches, and stops when no remaining sample
                can change the class that ships. It is proved for some rules and certificates, and others are refused.
                `Posterior(0.95)`, of `eldgr_dspy.rule.stopping`, stops when the lead is probable. The samples that it
                spares could have changed the answer.
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
        require_free_names(program, self.select.answer_field)
        if stop == "settled":
            _require_settling(self.select)
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
            Exception: What the program raised on every sample, or on one where the selector says so; and what the
                selector raises.
        """
        call = self._call(args, inputs)
        samples = drive(self._batches(call.inputs), partial(self._draw, call))
        calling = self._inputs(call.inputs, samples)
        with dspy.context(trace=own_trace()):
            choice, trace = self.select(**calling), dspy.settings.trace
        return self._prediction(call, calling, choice, samples, trace)

    async def aforward(self, *args: Any, **inputs: Any) -> dspy.Prediction:
        """Do the same as `forward`, with the samples in tasks."""
        call = self._call(args, inputs)
        taking = in_thread if self.select.type.pooled else at_once  # comparing answers may take long
        async with roomy_stream():
            samples = await adrive(self._batches(call.inputs), partial(self._adraw, call), taking)
        calling = self._inputs(call.inputs, samples)
        with dspy.context(trace=own_trace()):
            choice, trace = await self.select.acall(**calling), dspy.settings.trace
        return await taking(partial(self._prediction, call, calling, choice, samples, trace))

    def named_parameters(self) -> list[tuple[str, Any]]:
        """Return the choices that `save` keeps, and the parameters of program and selector."""
        return [(CHOICES, SavedChoices("Sampled", self._choices)), *super().named_parameters()]

    def dump_state(self, *args: Any, **options: Any) -> dict[str, Any]:
        """Return what `save` keeps, also of a program or a selector that is compiled."""
        with reveal_compiled(self):
            state: dict[str, Any] = super().dump_state(*args, **options)
        return state

    def load_state(self, state: Mapping[str, Any], **options: Any) -> None:
        """Load a state that has what this program saves, no less and no more."""
        with reveal_compiled(self):
            super().load_state(state, **options)

    def _choices(self) -> dict[str, Any]:
        stop = {"posterior": self.stop.threshold} if isinstance(self.stop, Posterior) else self.stop
        return {"n": self.n, "stop": stop, "temperature": self.temperature}

    def _call(self, args: tuple[Any, ...], inputs: Mapping[str, Any]) -> "_Call":
        names = by_name(self.program, args, inputs)
        values = {name: list(value) if isinstance(value, Iterator) else value for name, value in names.items()}
        return _Call(values, holds_lm(self.program), outputs(self.program))

    # -- sampling -----------------------------------------------------------------------------------------------------

    def _batches(self, inputs: Mapping[str, Any]) -> _Batches:
        """Yield the numbers of the samples to draw next, and return all samples; raise if they cannot be used."""
        question, samples = self._question(self._inputs(inputs, ())), list[Sample]()  # refused before anything is drawn
        while more := self._more(inputs, question):
            samples += yield range(len(samples), len(samples) + more)
            self._require_usable(samples)
            if len(samples) == self.n:
                break
            question = self._question(self._inputs(inputs, samples))
        return samples

    def _more(self, inputs: Mapping[str, Any], question: Question) -> int:
        """Return how many samples to draw at once, after those that a question has."""
        if self.stop is None:
            return self.n - len(question.answers)
        fixed, withheld = gives_evidence(inputs), self.select.uncertified == "abstain"
        stop = Settled(self.select.rule, withheld=withheld, fixed=fixed) if self.stop == "settled" else self.stop
        return next_batch(stop, Case(question, self.select.settings), self.n)

    def _draw(self, call: "_Call", numbers: range) -> list[Sample]:
        """Draw samples in threads, each in a copy of this context: DSPy's settings, usage and callbacks hold in it."""
        timeout = self.select.timeout
        if is_streaming_thread():  # one after another, or the listeners hear nothing
            futures = {number: call_within(partial(self._sample, call, number), timeout) for number in numbers}
            return [one.result() if one.done() else self._late(number) for number, one in futures.items()]
        samples, left, ends = dict[int, Sample](), iter(numbers), dict[Future[Sample], tuple[int, float]]()
        while True:
            for number in islice(left, len(numbers[: self.num_threads]) - len(ends)):
                ends[start(partial(self._sample, call, number))] = number, monotonic() + (timeout or 0.0)
            if not ends:
                return [samples.get(number) or self._late(number) for number in numbers]
            first = min(end for _, end in ends.values())
            wait(ends, timeout and max(first - monotonic(), 0.0), FIRST_COMPLETED)
            for future, (number, end) in [*ends.items()]:
                if is_done := future.done():
                    samples[number] = future.result()
                if is_done or (timeout and end <= monotonic()):  # a late one is left behind
                    del ends[future]

    async def _adraw(self, call: "_Call", numbers: range) -> list[Sample]:
        most = 1 if is_heard(self.program) else len(numbers[: self.num_threads])
        samples, places = dict[int, Sample](), asyncio.Semaphore(most)

        async def sample(number: int) -> None:
            async with places:
                draw = asyncio.create_task(self._asample(call, number))
                try:
                    await asyncio.wait([draw], timeout=self.select.timeout)
                finally:
                    draw.cancel()  # without effect on one that is done; a late one is not waited for
                    draw.add_done_callback(lambda late: late.cancelled() or late.exception())
                if draw.done():
                    samples[number] = draw.result()

        tasks = [asyncio.create_task(sample(number)) for number in numbers]
        try:
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
        for task in tasks:
            task.result()
        return [samples.get(number) or self._late(number) for number in numbers]

    def _sample(self, call: "_Call", number: int) -> Sample:
        with rollout(self.program, number, self.n, self.temperature, bound=call.bound) as (program, trace):
            try:
                output = callable_of(program)(**self._with_number(call, number))
                output = result_of(output, "program", "await it: await sampled.acall(...)")
                return self._read(output, call, trace)
            except Exception as error:  # noqa: BLE001 - the selector says what a failing sample does
                return Sample(trace, self._with_note(error, number))

    async def _asample(self, call: "_Call", number: int) -> Sample:
        with rollout(self.program, number, self.n, self.temperature, bound=call.bound) as (program, trace):
            try:
                return self._read(await awaitable(program)(**self._with_number(call, number)), call, trace)
            except Exception as error:  # noqa: BLE001 - as in `_sample`
                return Sample(trace, self._with_note(error, number))

    def _with_number(self, call: "_Call", number: int) -> Any:
        """Return the inputs for one sample, with the LM that the call may set in them numbered as the program's own."""
        lm = partial(numbered_lm, sample=number, of=self.n, temperature=self.temperature)
        return replace_lms(copy_collections(call.inputs), lm)

    def _late(self, number: int) -> Sample:
        error = TimeoutError(f"the program did not answer within the selector's timeout of {self.select.timeout:g} s")
        return Sample([], self._with_note(error, number))

    def _read(self, output: Any, call: "_Call", trace: Trace) -> Sample:
        """Return a sample, if what the program returned can be a candidate."""
        name, field = type(self.program).__name__, self.select.answer_field
        advice = "Name the field that holds the answer: Sampled(program, select=Selector(answer_field=...))."
        prediction = require_prediction(output, name, field, advice)
        candidate = candidate_of(prediction, field)
        passages = None if gives_evidence(call.inputs) else passages_of_sample(call.outputs, {}, prediction, trace)
        columns = getattr(self.select.judge, "takes_ballot", False)  # then the selector reads them too
        to_question("", [candidate], passages, self.select.type, field, **self._options(call.inputs), columns=columns)
        return Sample(trace, None, prediction, candidate, passages)

    def _with_note(self, error: Exception, number: int) -> Exception:
        error.add_note(f"Raised by completions[{number}], one of {self.n} samples of {type(self.program).__name__}.")
        message = f"completions[{number}] of {self.n} failed: {describe_failure(error)}"
        LOG.log(logging.WARNING, ("sample", type(error).__name__), message)
        return error

    def _require_usable(self, samples: Sequence[Sample]) -> None:
        """Raise the first error of a sample that the selector says to raise, or of any if all have failed."""
        errors = [one.error for one in samples if one.error is not None]
        for error in errors:
            policy = self.select.on_failure if is_failed_call(error) else self.select.on_error
            if policy == "raise" or len(errors) == self.n:
                raise error

    # -- selecting ----------------------------------------------------------------------------------------------------

    def _inputs(self, inputs: Mapping[str, Any], samples: Sequence[Sample]) -> dict[str, Any]:
        return {
            "question": question_of(inputs),
            "candidates": [one.candidate for one in samples],
            "evidence": evidence_of(inputs, samples),
            **self._options(inputs),
        }

    def _options(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options to choose from, which a program whose answers need them takes as `options`."""
        return {"options": inputs.get("options", ())} if self.select.type.needs_options else {}

    def _question(self, calling: Mapping[str, Any]) -> Question:
        """Return the samples as the selector reads them."""
        return to_question(**calling, answer=self.select.type, answer_field=self.select.answer_field)

    def _prediction(
        self, call: "_Call", calling: dict[str, Any], choice: Any, samples: list[Sample], roles: Trace
    ) -> dspy.Prediction:
        question, settings, field = self._question(calling), self.select.settings, self.select.answer_field
        predictions, withholds = [one.prediction for one in samples], self.select.uncertified == "abstain"
        values, index = shipment(question, settings, choice.toDict(), predictions, call.outputs, field, withholds)
        keep_trace([*(samples[index].trace if index is not None else ()), *(roles or ())])
        failures = [{"sample": at, "error": describe_failure(one.error)} for at, one in enumerate(samples) if one.error]
        return with_completions({**values, "failed_samples": failures}, predictions, index)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call: inputs by name, whether the program has LMs of its own, and the output fields of its predictors."""

    inputs: dict[str, Any]
    bound: bool
    outputs: dict[str, Any]


def _require_settling(select: Selector) -> None:
    """Refuse a selector for which "settled" is not proved, naming what must be another one."""
    own, refusals, rules = select.settings.own, select.settings.refusals, ", ".join(map(repr, SETTLED_BY))
    is_asked = own is not None and own.consulted and select.type.way == "evidence"
    ends_votes = isinstance(refusals, OwnRefusals) and select.settings.refusal == "no_answer"
    for wrong, name, need, actual in (
        (select.rule not in SETTLED_BY, "rule", f"one of {rules}", select.rule),
        (select.type.pooled, "answer type", "one of which classes do not depend on the pool", select.type.name),
        (is_asked, "certificate", "a policy, or a function that is not awaited and asks no LM", own),
        (ends_votes, "refusals", "phrases under refusal='no_answer'", refusals),
    ):
        if wrong:
            raise ArgumentError(
                f"With stop='settled', select's {name} must be {need}; got {str(actual)!r:.80}. Give another, or "
                "use stop=None or a Posterior."
            )
