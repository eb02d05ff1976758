"""The connection of a run to an MCP server: opened on the first call, reopened after the server has died.

The SDK wants a connection to be opened and closed in the same task. So each has a task of its own that opens it, waits
until it is no longer needed, and closes it; calls may come from any task of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.tools.base import ToolError
from engine.tools.mcp.connection_state import Life
from engine.tools.mcp.secret_variables import VARIABLES
from engine.tools.mcp.settings import McpServer, filled_in, variables_of
from engine.values import Value, compact_json

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, ContentBlock
    from mcp_types import Tool as OfferedTool

MAX_RESULT_BYTES: Final = 1_000_000
"""The largest result, as compact JSON."""


def result_value(name: str, result: CallToolResult, clean: Callable[[str], str]) -> Value:
    """The value of a call's result.

    Args:
        name: The tool, for errors.
        result: What the server answered.
        clean: Strikes out of what it says about a failure what no error may show.

    Returns:
        Its structured content, without the object that servers put around a plain value; else its texts, one below
        the other, with a remark in the place of each picture or sound.

    Raises:
        ToolError: The tool failed, gave too much, or what is no JSON.
    """
    text = "\n".join(_text(block) for block in result.content)
    if result.is_error:
        raise ToolError(f'The tool "{name}" failed: {clean(text)[:2000].rstrip(".") or "it did not say why"}.')
    value: Value = text if result.structured_content is None else _unwrapped(result.structured_content)
    try:
        size = len(compact_json(value))
    except ValueError as error:
        message = f'The tool "{name}" gave a number that is not finite, which no JSON can hold.'
        raise ToolError(message, "Ask it for something else.") from error
    if size > MAX_RESULT_BYTES:
        raise ToolError(f'The tool "{name}" gave more than {MAX_RESULT_BYTES:,} bytes.', "Ask it for less.")
    return value


def _unwrapped(content: Value) -> Value:
    if isinstance(content, dict) and list(content) == ["result"]:
        return content["result"]
    return content


def _text(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        return text if isinstance(text, str) else f"[{block.resource.uri}]"
    if block.type == "resource_link":
        return f"[{block.name}: {block.uri}]"
    return f"[{block.type}, {block.mime_type}, {len(block.data):,} characters of Base64]"


# What goes wrong is told by an error. The SDK logs it too, which without a handler would end up on the console.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_CONNECT_S: Final = 30.0
_END_S: Final = 5.0
_SHORTEST_SECRET: Final = 4
"""Characters of a value that is struck out of texts: a shorter one would strike out words."""
MOST_TOOLS: Final = 500
"""The most tools of one server that are taken up."""


class _Line:
    """An open connection, or one that is being opened."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.client.add_done_callback(_looked_at)
        self.unwanted = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class McpConnection:
    """The way to one server.

    Args:
        name: What people call the server.
        server: How it is reached.
    """

    def __init__(self, name: str, server: McpServer) -> None:
        self._name = name
        self._server = server
        self._line: _Line | None = None

    async def call(self, tool: str, arguments: Mapping[str, Value]) -> Value:
        """Call a tool of the server.

        Raises:
            ToolError: The server cannot be reached, does not answer in time, ends, sends too much, or the tool fails.
        """
        line, client = await self._connected()
        try:
            async with asyncio.timeout(self._server.timeout_s):
                result = await client.call_tool(tool, dict(arguments))
        except TimeoutError as error:
            raise self._timeout(tool) from error
        except Exception as error:  # whatever the SDK raises, or a server makes it raise
            raise await self._failure(line, f'the call of "{tool}"', error) from error
        return result_value(f"{self._name}/{tool}", result, line.life.without_secrets)

    async def offered(self) -> list[OfferedTool]:
        """The tools that the server offers, at most `MOST_TOOLS`.

        Raises:
            ToolError: As for `call`.
        """
        line, client = await self._connected()
        found: list[OfferedTool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._server.timeout_s):
                while len(found) < MOST_TOOLS:
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        break
        except TimeoutError as error:
            raise self._timeout("tools/list") from error
        except Exception as error:  # as above
            raise await self._failure(line, "listing its tools", error) from error
        return found[:MOST_TOOLS]

    async def close(self) -> None:
        """Close the connection; a process that was started for it is ended."""
        line, self._line = self._line, None
        if line is not None:
            await _end(line)

    async def _connected(self) -> tuple[_Line, Client]:
        line = self._line
        if line is not None and line.life.is_over:  # it ended by itself since the last call
            self._drop(line)
            await _end(line)
            line = self._line
        if line is None:
            line = self._line = _Line(Life())
            line.task = asyncio.create_task(self._keep(line), name=f"MCP server {self._name}")
        try:
            async with asyncio.timeout(_CONNECT_S):
                return line, await asyncio.shield(line.client)
        except TimeoutError as error:
            self._drop(line)
            message = f'The MCP server "{self._name}" did not greet within {_CONNECT_S:g} s.{_said(line.life)}'
            silent = ToolError(message, "Look whether it is an MCP server.", retryable=True)
            if not line.client.done():
                line.client.set_exception(silent)  # for whoever else waits for it
            await _end(line, at_once=True)
            raise silent from error
        except ToolError:
            self._drop(line)
            raise
        except Exception as error:  # as above
            raise await self._failure(line, "connecting", error) from error

    async def _keep(self, line: _Line) -> None:
        """Open the connection, keep it while it is wanted, and close it, all in one task."""
        try:
            from mcp import Client
        except ImportError as error:
            missing = ToolError(
                "Tools of MCP servers need the package mcp, which is not installed.",
                'Install it: pip install "loopwright[mcp]".',
            )
            missing.__cause__ = error
            line.client.set_exception(missing)
            return
        try:
            values = await asyncio.to_thread(VARIABLES.values, variables_of(self._server))
            line.life.secrets = tuple(value for value in values.values() if len(value) >= _SHORTEST_SECRET)
            async with Client(self._transport(line.life, values), cache=None) as client:
                line.client.set_result(client)
                await line.unwanted.wait()
        except Exception as error:
            line.life.is_over = True
            if not line.client.done():
                line.client.set_exception(_innermost(error))
        finally:
            line.client.cancel()

    def _transport(self, life: Life, values: Mapping[str, str]) -> Transport:
        server, fill = self._server, partial(filled_in, self._name, values=values)
        if server.url:
            from engine.tools.mcp.transports import http_line

            return http_line(fill(server.url), {key: fill(value) for key, value in server.headers.items()}, life)
        from engine.tools.mcp.transports import stdio_line

        command = (server.command, *map(fill, server.args))
        return stdio_line(self._name, command, {key: fill(value) for key, value in server.env.items()}, life)

    def _drop(self, line: _Line) -> None:
        """Let the next call connect anew."""
        if self._line is line:
            self._line = None

    def _timeout(self, tool: str) -> ToolError:
        return ToolError(
            f'The MCP server "{self._name}" did not answer "{tool}" within {self._server.timeout_s:g} s.',
            "Try again, or raise the server's time limit.",
            retryable=True,
        )

    async def _failure(self, line: _Line, what: str, error: Exception) -> ToolError:
        """The error in one sentence. A line that has ended is forgotten, so that the next call connects anew."""
        await asyncio.sleep(0)  # the end of the line may have been read in the same step as the error
        life = line.life
        if life.fault or life.is_over or _is_closed(error) or not line.client.done() or line.client.cancelled():
            self._drop(line)
            await _end(line)
            why = f": {life.fault}" if life.fault else "" if _is_closed(error) else f": {_reason(life, error)}"
            message = f'The MCP server "{self._name}" broke off during {what}{why}.{_said(life)}'
            return ToolError(message, "Look at the server, and try again.", retryable=not life.fault)
        if what == "connecting":
            self._drop(line)
            await _end(line)
        message = f'The MCP server "{self._name}" refused {what}: {_reason(life, error)}.{_said(life)}'
        return ToolError(message, "Look at the settings of the server.")


async def _end(line: _Line, *, at_once: bool = False) -> None:
    """Ask the task to close the connection; where that takes too long, or is to be done at once, it is cut off."""
    line.unwanted.set()
    task = line.task
    if task is None:
        return
    if line.client.done() and not at_once:  # one that has not got that far waits for the server, and not for this
        await asyncio.wait({task}, timeout=_END_S)
    if not task.done():
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task


def _looked_at(client: asyncio.Future[Client]) -> None:
    """An error that nobody waits for any more is not told by asyncio as one that was forgotten."""
    if not client.cancelled():
        client.exception()


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return error  # pyright: ignore[reportUnknownVariableType]


def _is_closed(error: Exception) -> bool:
    from mcp_types import CONNECTION_CLOSED

    return getattr(error, "code", None) == CONNECTION_CLOSED


def _reason(life: Life, error: Exception) -> str:
    told = getattr(error, "message", "") or str(error)
    words = told if isinstance(told, str) and told.strip() else type(error).__name__
    return " ".join(life.without_secrets(words).split())[:300].rstrip(".")


def _said(life: Life) -> str:
    return f" It said: “{life.last_words}”." if life.last_words else ""
