"""Connection of a run to an MCP server: opened by the first call, reopened after the server has died.

The SDK requires that one task opens and closes a connection. So each connection has a task of its own that opens it,
waits until it is no longer needed, and closes it. Calls may come from any task of the event loop.

A server is a child process that exchanges JSON lines, or an HTTP address. The SDK's stdio transport holds a line of any
length in memory, so this module has its own, which limits the size of a message. Importing it is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, JSONRPCMessage, jsonrpc_message_adapter

from engine.formatting import format_count, format_timeout
from engine.program_search import find_program
from engine.tools.mcp_settings import VARIABLES, McpServer, fill_in, variables_of
from engine.tools.processes import ToolProcess, small_environment, start_process
from engine.tools.tool import ToolError
from engine.values import Value, compact_json, encodable_text, map_texts

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult, ContentBlock
    from mcp_types import Tool as OfferedTool

MAX_TOOLS: Final = 500
"""Maximum number of tools of one server; further ones are ignored."""
MAX_RESULT_BYTES: Final = 1_000_000
"""Maximum size of a result, as compact JSON."""
MAX_MESSAGE_BYTES: Final = 8_000_000
"""Maximum size of a message from a server."""

_CONNECT_TIMEOUT_S: Final = 30.0
_HTTP_CONNECT_TIMEOUT_S: Final = 20.0
_CLOSE_TIMEOUT_S: Final = 5.0
_EXIT_TIMEOUT_S: Final = 2.0
"""How long a server may take to exit once its input is closed."""
_EXIT_INTERVAL_S: Final = 1.0
"""How often to look whether a server has exited; on POSIX its pipes then end by themselves."""
_MIN_SECRET_LENGTH: Final = 4
"""Shorter values are not redacted: that would remove ordinary words."""
_ERROR_OUTPUT_LENGTH: Final = 600

# Failures are raised as errors. The SDK logs them too, which without a handler would end up on the console.
logging.getLogger("mcp").addHandler(logging.NullHandler())


class ConnectionState:
    """State of one connection, shared with its transport.

    Attributes:
        has_ended: Whether the server's stream has ended.
        fault: Why this program ended the connection; empty if it did not.
        secrets: Values that no text from the server may show.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self.fault = ""
        self.secrets: tuple[str, ...] = ()
        self._error_output = b""

    def reject_long_message(self) -> None:
        """Note that the server sent a message over the size limit."""
        self.fault = f"it sent a message of more than {format_count(MAX_MESSAGE_BYTES, 'byte')}"
        self.has_ended = True

    def add_error_output(self, output: bytes) -> None:
        """Add to the server's error output, of which only the end is remembered."""
        self._error_output = (self._error_output + output)[-4 * _ERROR_OUTPUT_LENGTH :]

    def redact(self, text: str) -> str:
        """Remove every secret of the server's settings from a text."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text

    def describe(self, error: Exception) -> str:
        """One line for what a server or the SDK reported, without secrets."""
        reported = getattr(error, "message", "") or str(error)
        text = reported if isinstance(reported, str) and reported.strip() else type(error).__name__
        return " ".join(self.redact(text).split())[:300].rstrip(".")

    @property
    def output_note(self) -> str:
        """A sentence with the end of the server's error output, to be appended to a message; empty without output."""
        text = " ".join(self.redact(self._error_output.decode("utf-8", "replace")).split())
        text = text if len(text) <= _ERROR_OUTPUT_LENGTH else f"…{text[-_ERROR_OUTPUT_LENGTH:]}"
        return f" Its error output ends with: “{text}”." if text else ""


class _Connection:
    """An open connection, or one that is being opened."""

    def __init__(self) -> None:
        self.state = ConnectionState()
        self.client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # Retrieving the error keeps asyncio from logging it if no call waits for it any more.
        self.client.add_done_callback(lambda client: None if client.cancelled() else client.exception())
        self.close_requested = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def close(self, *, at_once: bool = False) -> None:
        """Ask the task to close the connection; cancel it if that takes too long or `at_once` is set."""
        self.close_requested.set()
        if self.task is None:
            return
        if self.client.done() and not at_once:  # a task that has not connected yet waits for the server instead
            await asyncio.wait({self.task}, timeout=_CLOSE_TIMEOUT_S)
        if not self.task.done():
            self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self.task


class McpConnection:
    """Connection to one server.

    Args:
        name: What people call the server.
        server: How it is reached.
    """

    def __init__(self, name: str, server: McpServer) -> None:
        self._name = name
        self._server = server
        self._current: _Connection | None = None

    async def call(self, tool: str, arguments: Mapping[str, Value]) -> Value:
        """Call a tool of the server.

        Raises:
            ToolError: The server cannot be reached, does not answer in time, ends, sends too much, or the tool fails.
        """
        connection, client = await self._connect()
        try:
            async with asyncio.timeout(self._server.timeout_s):
                result = await client.call_tool(tool, dict(arguments))
        except TimeoutError as error:
            raise self._timeout(tool) from error
        except Exception as error:  # whatever the SDK raises, or a server makes it raise
            raise await self._failure(connection, f'the call of "{tool}"', error) from error
        return _result_value(f"{self._name}/{tool}", result, connection.state.redact)

    async def list_tools(self) -> list[OfferedTool]:
        """List the tools that the server offers, at most `MAX_TOOLS`.

        Raises:
            ToolError: As for `call`.
        """
        connection, client = await self._connect()
        found: list[OfferedTool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._server.timeout_s):
                while len(found) < MAX_TOOLS:
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        break
        except TimeoutError as error:
            raise self._timeout("tools/list") from error
        except Exception as error:  # as above
            raise await self._failure(connection, "listing its tools", error) from error
        return found[:MAX_TOOLS]

    async def close(self) -> None:
        """Close the connection and end the process that was started for it."""
        connection, self._current = self._current, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> tuple[_Connection, Client]:
        connection = self._current
        if connection is not None and connection.state.has_ended:  # the server ended since the last call
            await self._discard(connection)
            connection = self._current
        if connection is None:
            connection = self._current = _Connection()
            connection.task = asyncio.create_task(self._keep_open(connection), name=f"MCP server {self._name}")
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                return connection, await asyncio.shield(connection.client)
        except TimeoutError as error:
            timeout = ToolError(
                f'The MCP server "{self._name}" did not complete the handshake within '
                f"{format_timeout(_CONNECT_TIMEOUT_S)}.{connection.state.output_note}",
                "Check that it is an MCP server.",
                retryable=True,
            )
            if not connection.client.done():
                connection.client.set_exception(timeout)  # for other calls that wait for it
            await self._discard(connection, at_once=True)
            raise timeout from error
        except ToolError:
            self._forget(connection)
            raise
        except Exception as error:  # as above
            raise await self._failure(connection, "connecting", error) from error

    async def _keep_open(self, connection: _Connection) -> None:
        """Open the connection, wait until it is no longer needed, and close it, all in one task."""
        try:
            values = await asyncio.to_thread(VARIABLES.values, variables_of(self._server))
            connection.state.secrets = tuple(value for value in values.values() if len(value) >= _MIN_SECRET_LENGTH)
            async with Client(self._transport(connection.state, values), cache=None) as client:
                connection.client.set_result(client)
                await connection.close_requested.wait()
        except Exception as error:
            connection.state.has_ended = True
            if not connection.client.done():
                connection.client.set_exception(_innermost(error))
        finally:
            connection.client.cancel()

    def _transport(self, state: ConnectionState, values: Mapping[str, str]) -> Transport:
        server, fill = self._server, partial(fill_in, self._name, values=values)
        if server.url:
            return _http_streams(fill(server.url), {key: fill(value) for key, value in server.headers.items()}, state)
        command = (server.command, *map(fill, server.args))
        return _stdio_streams(self._name, command, {key: fill(value) for key, value in server.env.items()}, state)

    def _forget(self, connection: _Connection) -> None:
        """Let the next call open a new connection."""
        if self._current is connection:
            self._current = None

    async def _discard(self, connection: _Connection, *, at_once: bool = False) -> None:
        self._forget(connection)
        await connection.close(at_once=at_once)

    def _timeout(self, tool: str) -> ToolError:
        return ToolError(
            f'The MCP server "{self._name}" did not answer "{tool}" within {format_timeout(self._server.timeout_s)}.',
            "Try again, or raise the server's timeout.",
            retryable=True,
        )

    async def _failure(self, connection: _Connection, action: str, error: Exception) -> ToolError:
        """The error for a failed action. A connection that has ended is discarded, so the next call opens a new one."""
        await asyncio.sleep(0)  # the end of the stream may have been read in the same step as the error
        state, client, reason = connection.state, connection.client, connection.state.describe(error)
        is_closed = getattr(error, "code", None) == CONNECTION_CLOSED
        if state.fault or state.has_ended or is_closed or not client.done() or client.cancelled():
            await self._discard(connection)
            why = f": {state.fault}" if state.fault else "" if is_closed else f": {reason}"
            message = f'The MCP server "{self._name}" disconnected during {action}{why}.{state.output_note}'
            return ToolError(message, "Check the server, and try again.", retryable=not state.fault)
        if action == "connecting":
            await self._discard(connection)
        message = f'The MCP server "{self._name}" refused {action}: {reason}.{state.output_note}'
        return ToolError(message, "Check the server's settings.")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return error  # pyright: ignore[reportUnknownVariableType]


def _result_value(name: str, result: CallToolResult, redact: Callable[[str], str]) -> Value:
    """The structured content of a result, unwrapped; else its texts, with a placeholder for each picture or sound."""
    text = "\n".join(_text(block) for block in result.content)
    if result.is_error:
        raise ToolError(f'The tool "{name}" failed: {redact(text)[:2000].rstrip(".") or "it did not say why"}.')
    value: Value = text if result.structured_content is None else result.structured_content
    if isinstance(value, dict) and list(value) == ["result"]:
        value = value["result"]
    try:
        size = len(compact_json(value))
    except ValueError as error:
        message = f'The tool "{name}" returned a number that is not finite, which JSON cannot represent.'
        raise ToolError(message, "Request something else.") from error
    if size > MAX_RESULT_BYTES:
        raise ToolError(
            f'The tool "{name}" returned more than {format_count(MAX_RESULT_BYTES, "byte")}.', "Request less."
        )
    return value


def _text(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        return text if isinstance(text, str) else f"[{block.resource.uri}]"
    if block.type == "resource_link":
        return f"[{block.name}: {block.uri}]"
    return f"[{block.type}, {block.mime_type}, {format_count(len(block.data), 'character')} of Base64]"


@contextlib.asynccontextmanager
async def _stdio_streams(
    name: str, command: Sequence[str], environment: Mapping[str, str], state: ConnectionState
) -> AsyncGenerator[TransportStreams]:
    """Start a server and yield the streams from and to it; at the end, end it with all that it started."""
    process = await _start_server(name, command, environment)
    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read_messages(process, incoming_send, state)),
        asyncio.create_task(_write_messages(process, outgoing_receive)),
        asyncio.create_task(_read_error_output(process, state)),
        asyncio.create_task(process.exited(interval_s=_EXIT_INTERVAL_S)),
    ]
    try:
        yield incoming, outgoing
        process.stdin.close()  # the request to exit
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_TIMEOUT_S):
                await process.exited()
    finally:
        process.end()
        for stream in (incoming, incoming_send, outgoing, outgoing_receive):
            stream.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await process.end_and_wait()


async def _start_server(name: str, command: Sequence[str], environment: Mapping[str, str]) -> ToolProcess:
    program = await asyncio.to_thread(find_program, command[0])
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


async def _read_messages(
    process: ToolProcess, incoming: MemoryObjectSendStream[SessionMessage | Exception], state: ConnectionState
) -> None:
    with incoming:
        try:
            while line := await process.stdout.readline():
                with contextlib.suppress(ValueError):  # ignore output that is not a message
                    await incoming.send(SessionMessage(_parse_message(line)))
        except ValueError:
            state.reject_long_message()
            process.end()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        finally:
            state.has_ended = True


def _parse_message(line: bytes) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        if b"\\u" not in line:
            raise
    # The server may have cut a text inside a surrogate pair, which is no reason to leave the call unanswered.
    whole = json.dumps(map_texts(json.loads(line), encodable_text))
    return jsonrpc_message_adapter.validate_json(whole, by_name=False)


async def _write_messages(process: ToolProcess, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with outgoing, contextlib.suppress(ConnectionError):
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()


async def _read_error_output(process: ToolProcess, state: ConnectionState) -> None:
    while output := await process.stderr.read(65_536):
        state.add_error_output(output)


@contextlib.asynccontextmanager
async def _http_streams(
    url: str, headers: Mapping[str, str], state: ConnectionState
) -> AsyncGenerator[TransportStreams]:
    """Yield the streams from and to a server at an address. Redirects are followed within the address only."""
    # The SDK's own read timeout would end long calls; `McpConnection` sets one for each call.
    timeout = httpx2.Timeout(_HTTP_CONNECT_TIMEOUT_S, read=None)
    uncompressed = {**headers, "accept-encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=_LimitedTransport(state), headers=uncompressed, timeout=timeout) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


class _LimitedTransport(httpx2.AsyncHTTPTransport):
    """Reads no more of a response than the maximum size of a message."""

    def __init__(self, state: ConnectionState) -> None:
        super().__init__()
        self._state = state

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            self._state.fault = "it sent a compressed response without being asked for one"
            raise httpx2.ReadError(self._state.fault)
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return response  # a stream has no end; the SDK limits each of its events
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        limited = _LimitedStream(response.stream, self._state)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=limited, extensions=response.extensions
        )


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, state: ConnectionState) -> None:
        self._stream = stream
        self._state = state

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._stream:
            read += len(chunk)
            if read > MAX_MESSAGE_BYTES:
                self._state.reject_long_message()
                raise httpx2.ReadError(self._state.fault)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
