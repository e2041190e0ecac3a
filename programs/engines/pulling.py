"""Make an Ollama server pull a model, and give up if it makes no progress."""

import asyncio
from collections.abc import Callable

from eldgr_dspy.programs.engines.deadline import run_within
from eldgr_dspy.programs.engines.wire import client_at

Show = Callable[[str, int | None, int | None], None]
"""Called with the current step, the bytes done and their total; None if the server does not say."""


def pull_model(host: str, model: str, seconds: float, show: Show) -> None:
    """Make a server pull a model.

    Args:
        host: Its address. model: The model's name.
        seconds: How long it may go without progress. A repeated line does not count: a server whose download has
            stalled keeps reporting.
        show: Called with every line of progress.

    Raises:
        TimeoutError: There was no progress for that long.
        ollama.ResponseError, httpx.HTTPError, OSError: The model cannot be pulled, or the server did not answer.
    """

    async def pulled() -> None:
        async with asyncio.timeout(seconds) as limit, client_at(host) as client:
            before = None
            async for step in await client.pull(model, stream=True):
                if (step.status, step.completed) != before:
                    before = (step.status, step.completed)
                    limit.reschedule(asyncio.get_running_loop().time() + seconds)
                show(step.status or model, step.completed, step.total)

    run_within(None, pulled)
