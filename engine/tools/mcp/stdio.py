"""The line to a server that is a child process: a message is a line of JSON. What it sends is bounded.

The SDK's own transport keeps whatever a server sends on one line, however long; hence this one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from engine.tools.base import ToolError
from engine.tools.mcp.life import MAX_MESSAGE_BYTES, Life
from engine.tools.parameters import whole_characters
from engine.tools.processes import ToolProcess, small_environment, start_process

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams  # the SDK shows the type nowhere else

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
