"""The line to a server that is reached by HTTP. What it sends in one answer is bounded, and never decompressed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client

from engine.tools.mcp.life import MAX_MESSAGE_BYTES, Life

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams  # the SDK shows the type nowhere else

_CONNECT_S = 20.0


@contextlib.asynccontextmanager
async def http_line(url: str, headers: Mapping[str, str], life: Life) -> AsyncGenerator[TransportStreams]:
    """Give the streams to and from a server.

    Args:
        url: Its address. Redirects are followed within it only.
        headers: What is sent along.
        life: Is told how it fares.
    """
    # Its own time limits would end long calls; whoever calls has one.
    timeout = httpx2.Timeout(_CONNECT_S, read=None)
    plain = {**headers, "accept-encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=_Bounded(life), headers=plain, timeout=timeout) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncHTTPTransport):
    """Reads no more of an answer than a message may have."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            self._life.fault = "it sent a compressed answer, which nobody had asked for"
            raise httpx2.ReadError(self._life.fault)
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return response  # a stream has no end; each event in it is bounded by the SDK
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        bounded = _BoundedStream(response.stream, self._life)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=bounded, extensions=response.extensions
        )


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, life: Life) -> None:
        self._stream = stream
        self._life = life

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._stream:
            read += len(chunk)
            if read > MAX_MESSAGE_BYTES:
                self._life.too_long()
                raise httpx2.ReadError(self._life.fault)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
