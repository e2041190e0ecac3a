"""Limits on what a server may send in one response: its bytes, and the bytes of one line."""

import asyncio
from collections.abc import AsyncIterator

import httpx

MOST_BYTES = 32 * 2**20
"""Bytes of a response; a reply of 100,000 tokens, streamed one a line, has about 20 MiB."""

LONGEST_LINE = 4 * 2**20
"""Bytes of one line."""

UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""The header that asks for an uncompressed response; a compressed one could expand a thousandfold."""


class OversizedError(httpx.HTTPError):
    """A response was abandoned before its end."""


async def bound(response: httpx.Response) -> None:
    """Limit the bytes of a response while they are read; a hook for `httpx.AsyncClient`.

    Raises:
        OversizedError: The response is compressed. One that is too long raises it when it is read.
    """
    coding = response.headers.get("Content-Encoding", "identity")
    if coding != "identity":
        raise OversizedError(f"a response in the encoding {coding!r:.40}, which was not asked for")
    if isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = _Bounded(response.stream)


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = line = 0
        async for chunk in self._stream:
            total += len(chunk)
            first, *others = chunk.split(b"\n")
            longest = line + len(first)
            line = len(others[-1]) if others else longest
            if total > MOST_BYTES:
                raise OversizedError(f"more than {MOST_BYTES // 2**20} MiB in one response")
            if longest > LONGEST_LINE:
                raise OversizedError(f"a line of more than {LONGEST_LINE // 2**20} MiB")
            yield chunk
            await asyncio.sleep(0)  # a stream that never pauses would not let its deadline pass

    async def aclose(self) -> None:
        await self._stream.aclose()
