"""Transports to MCP servers: a child process that writes JSON lines, or HTTP. The size of a message is limited.

The SDK's own stdio transport keeps a line of any length in memory; hence this one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from engine.tools.base import ToolError
from engine.tools.mcp.connection_state import MAX_MESSAGE_BYTES, Life
from engine.tools.parameters import whole_characters
from engine.tools.processes import ToolProcess, small_environment, start_process

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

_GRACE_S: Final = 2.0
"""How long a server may take to end once its input is closed."""


@contextlib.asynccontextmanager
async def stdio_line(
    name: str, command: Sequence[str], environment: Mapping[str, str], life: Life
) -> AsyncGenerator[TransportStreams]:
    """Start a server and give the streams to and from it; at the end it is ended with all that it started.

    Args:
        name: What people call it.
        command: The program and its arguments.
        environment: What it is given beside the usual.
        life: Is told how it fares.

    Raises:
        ToolError: It cannot be started.
    """
    process = await _started(name, command, environment)
    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process, incoming_send, life)),
        asyncio.create_task(_write(process, outgoing_receive)),
        asyncio.create_task(_listen(process, life)),
    ]
    try:
        yield incoming, outgoing
        await _end_kindly(process)
    finally:
        process.end()
        for stream in (incoming, incoming_send, outgoing, outgoing_receive):
            stream.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await process.end_and_wait()


async def _started(name: str, command: Sequence[str], environment: Mapping[str, str]) -> ToolProcess:
    program = await asyncio.to_thread(shutil.which, command[0])
    if program is None:
        raise ToolError(
            f'The MCP server "{name}" cannot be started: there is no program "{command[0]}".',
            "Install it, or correct the command.",
        )
    try:
        return await start_process(
            (program, *command[1:]),
            folder=None,
            environment=small_environment(environment),
            line_limit=MAX_MESSAGE_BYTES,
        )
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ToolError(f'The MCP server "{name}" cannot be started: {reason}.', "Correct its command.") from error


async def _read(process: ToolProcess, incoming: MemoryObjectSendStream[SessionMessage | Exception], life: Life) -> None:
    with incoming:
        try:
            while line := await process.stdout.readline():
                with contextlib.suppress(ValueError):  # what is no message is a remark that strayed into its output
                    await incoming.send(SessionMessage(_message(line)))
        except ValueError:
            life.too_long()
            process.end()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        finally:
            life.is_over = True


def _message(line: bytes) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        if b"\\u" not in line:
            raise
    # It may have cut a text in the middle of a character: half of one is no reason to leave the call unanswered.
    whole = json.dumps(whole_characters(json.loads(line)))
    return jsonrpc_message_adapter.validate_json(whole, by_name=False)


async def _write(process: ToolProcess, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with outgoing, contextlib.suppress(ConnectionError):
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()


async def _listen(process: ToolProcess, life: Life) -> None:
    while errors := await process.stderr.read(65_536):
        life.complain(errors)


async def _end_kindly(process: ToolProcess) -> None:
    """Close its input, by which it knows that it is to end, and wait a while for it."""
    process.stdin.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await process.exited()


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
