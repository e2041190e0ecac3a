"""One sample of several: a call of a program whose requests DSPy's cache keeps apart from those of other samples.

The program itself is called, not a copy, so that optimizers find its predictors in the trace. Its LM is replaced by one
that shares everything with it and numbers its requests by `rollout_id`. Where a predictor has its own LM, the program
is replaced by a view of it: modules of its own, which share everything but the LMs.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

import anyio
import dspy

from eldgr_dspy.programs.engines.usage import ANY_USAGE
from eldgr_dspy.programs.lms.lms import sub_modules, twin_of, view

Trace: TypeAlias = list[tuple[Any, Any, Any]]


class _NumberedLM:
    """What the LM of a sample does differently; mixed into the class of the LM whose state it shares."""

    sample: int
    of: int
    kwargs: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **self._with_rollout(kwargs))  # type: ignore[misc]

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        return await super().acall(*args, **self._with_rollout(kwargs))  # type: ignore[misc]

    def _with_rollout(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        number = kwargs.get("rollout_id", self.kwargs.get("rollout_id")) or 0
        return {**kwargs, "rollout_id": number * self.of + self.sample}


def numbered_lm(lm: Any, sample: int, of: int, temperature: float | None) -> Any:
    """Return an LM that shares connections, history and callbacks with this one, for one sample of several."""
    if not isinstance(lm, dspy.BaseLM):
        return lm
    twin = twin_of(lm, _NumberedLM)
    twin.kwargs = dict(lm.kwargs) if temperature is None else {**lm.kwargs, "temperature": temperature}
    twin.sample, twin.of = (sample * lm.of + lm.sample, of * lm.of) if isinstance(lm, _NumberedLM) else (sample, of)
    return twin


@contextmanager
def rollout(
    program: dspy.Module, sample: int, of: int, temperature: float | None, *, bound: bool
) -> Iterator[tuple[dspy.Module, Trace]]:
    """Yield what to call for one sample `of` several, and the list that gets the trace of its calls."""
    # The temperature is that of requests that do not set their own; None leaves the LM's.
    number = partial(numbered_lm, sample=sample, of=of, temperature=temperature)
    # Bound: the program has its own LMs.
    target, originals, hand_back = view(program, number) if bound else (program, {}, lambda: None)
    trace: Trace = []
    records = {"trace": trace, "max_trace_size": math.inf, **ANY_USAGE}  # all of it: it has the evidence
    with dspy.context(lm=number(dspy.settings.lm), **records, **_streaming(target, originals)):
        yield target, trace
    hand_back()
    trace[:] = [(originals.get(id(predictor), predictor), *call) for predictor, *call in trace]


class _Stream(SimpleNamespace):
    """A stream whose listeners know the predictors of a view by the ids of the originals."""

    async def send(self, item: Any) -> None:
        if (original := self.originals.get(getattr(item, "predict_id", None))) is not None:
            item.predict_id = id(original)
        await self.stream.send(item)


def _streaming(target: dspy.Module, originals: Mapping[int, Any]) -> dict[str, Any]:
    """Return the settings with which the listeners of a stream hear what the predictors of a view say."""
    if not originals or dspy.settings.send_stream is None:
        return {}
    stream, listeners = dspy.settings.send_stream, dspy.settings.stream_listeners or []
    predictors = [listener.predict for listener in listeners]
    twins = [part for _, part in sub_modules(target, dspy.Predict) if originals.get(id(part)) in predictors]
    listeners = [SimpleNamespace(predict=twin) for twin in twins] or listeners
    return {"send_stream": _Stream(stream=stream, originals=originals), "stream_listeners": listeners}


@asynccontextmanager
async def roomy_stream() -> AsyncIterator[None]:
    """Take what is streamed in the block without a limit, and pass it on: DSPy blocks the loop if a stream is full."""
    stream = dspy.settings.send_stream
    if stream is None:
        yield
        return
    send, receive = anyio.create_memory_object_stream[Any](math.inf)

    async def pass_on() -> None:
        async with receive:  # so that a send fails once nobody takes what is passed on
            async for item in receive:
                await stream.send(item)

    task = asyncio.create_task(pass_on())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        with send, dspy.context(send_stream=send):
            yield
    except Exception:
        await asyncio.wait([task])
        raise
    else:
        await task
    finally:
        task.cancel()  # without effect on one that is done
        receive.close()


def is_heard(program: dspy.Module) -> bool:
    """Return whether a stream's listener listens to a program: it hears one call at a time."""
    predictors = [listener.predict for listener in dspy.settings.stream_listeners or []]
    return any(part in predictors for _, part in sub_modules(program, dspy.Predict))


def own_trace() -> Trace | None:
    """Return a list for the trace of some calls, or None if DSPy keeps no trace."""
    return None if dspy.settings.trace is None else []


def keep_trace(trace: Trace) -> None:
    """Add calls to DSPy's trace, which keeps the latest ones."""
    own = dspy.settings.trace
    if own is not None:
        own += trace
        del own[: max(0, len(own) - dspy.settings.max_trace_size)]
