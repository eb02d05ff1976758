"""Child processes of tools: started without a shell around them, and ended together with all that they started.

A child is given a small environment: what it needs to find programs and files, and none of the keys that may stand in
the program's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

_HANDED_ON: Final = (
    ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
    if os.name == "posix"
    else (
        *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE"),
    )
)

_DRAINED: Final = 65_536

_PIPES_S: Final = 1.0
"""How long to wait, in seconds, for the pipes of a process that has ended: something that it started may hold them."""

_NEW_GROUP: Final = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW if sys.platform == "win32" else 0


def small_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: what programs need to be found and to run, and what is added."""
    return {name: os.environ[name] for name in _HANDED_ON if name in os.environ} | dict(more or {})


async def start_process(
    arguments: Sequence[str], *, folder: Path | None, environment: Mapping[str, str], line_limit: int = 2**16
) -> asyncio.subprocess.Process:
    """Start a program with pipes to its input, output and errors, in a process group of its own.

    Args:
        arguments: The program and its arguments; no shell reads them.
        folder: Where it works; None for where this program does.
        environment: Its whole environment.
        line_limit: The longest line that can be read from it, in bytes.

    Raises:
        OSError: It cannot be started.
    """
    return await asyncio.create_subprocess_exec(
        *arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=dict(environment),
        limit=line_limit,
        start_new_session=os.name == "posix",
        creationflags=_NEW_GROUP,
    )


async def has_exited(process: asyncio.subprocess.Process) -> int:
    """Wait for the process itself, and not, as `Process.wait` does, for whatever still holds its pipes.

    Returns:
        Its exit code.
    """
    while process.returncode is None:  # noqa: ASYNC110 - asyncio tells of the exit in no other way
        await asyncio.sleep(0.02)
    return process.returncode


def end_process(process: asyncio.subprocess.Process) -> None:
    """End a process and all that it started, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            command = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
            subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - no text of others is in it


async def end_and_wait(process: asyncio.subprocess.Process) -> None:
    """End a process and all that it started, and wait until it is gone.

    What it still had to say is read and thrown away: `Process.wait` waits for the pipes to end, and a pipe whose reader
    has stopped because it was full never does. Nothing else may be reading from them.
    """
    end_process(process)
    rests = [asyncio.create_task(_drain(stream)) for stream in (process.stdout, process.stderr) if stream is not None]
    await has_exited(process)
    _, waiting = await asyncio.wait(rests, timeout=_PIPES_S)
    for rest in waiting:
        rest.cancel()
    # asyncio closes pipes that have not ended in no other way.
    transport = cast("asyncio.SubprocessTransport", vars(process)["_transport"])
    transport.close()


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(_DRAINED):
        pass
