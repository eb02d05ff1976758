"""Child processes of tools: started without a shell, and ended together with all that they started.

On POSIX a supervisor (`engine.tools.supervisor`) runs between this program and the child. It kills all of the child's
descendants when the child has ended, when this program asks for it, and when this program dies, however it dies.
On Windows a job object (`engine.tools.windows_job`) does the last, and this program the first two by closing it.

A child gets a small environment: what it needs to find programs and files, and none of the keys in the program's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from engine.tools.windows_job import ProcessJob

_INHERITED: Final = (
    ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
    if os.name == "posix"
    else (
        *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE"),
    )
)

_CHUNK: Final = 65_536

_PIPE_TIMEOUT_S: Final = 1.0
"""How long to wait for the pipes of an ended process, which a process that it started may hold open."""

_SUPERVISOR_TIMEOUT_S: Final = 5.0
"""How long the supervisor may take to kill the descendants; then it is killed itself."""

_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
_NEW_GROUP: Final = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW if sys.platform == "win32" else 0


def small_environment(added: Mapping[str, str] | None = None, *, on_windows: bool = os.name == "nt") -> dict[str, str]:
    """The environment of a child: what programs need to run, and the given variables.

    On Windows, where names ignore case, all are in upper case, as in `os.environ`: a `Path` replaces `PATH`. There, a
    variable keeps the child from looking for programs in its current folder first, which may hold files of anyone.
    """
    names = {name: name.upper() if on_windows else name for name in added or {}}
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    if on_windows:
        inherited["NODEFAULTCURRENTDIRECTORYINEXEPATH"] = "1"
    return inherited | {names[name]: value for name, value in (added or {}).items()}


class ToolProcess:
    """A running program of a tool, with pipes to its standard streams, and all processes that it starts.

    Args:
        process: The program, or its supervisor.
        lifeline: The socket to the supervisor, or the job: when it is closed, all of the processes end.
    """

    def __init__(self, process: asyncio.subprocess.Process, lifeline: socket.socket | ProcessJob) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self._process = process
        self._lifeline = lifeline

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    async def exited(self, *, interval_s: float = 0.02) -> None:
        """Wait until the process itself has exited, then end what it has left behind, which may hold its pipes.

        Args:
            interval_s: Seconds between two looks: asyncio waits for the ends of the pipes, and reports the exit in no
                other way.
        """
        while self._process.returncode is None:  # noqa: ASYNC110 - see above
            await asyncio.sleep(interval_s)
        self.end()

    def end(self) -> None:
        """End it and all that it started, without waiting."""
        self._lifeline.close()

    async def end_and_wait(self) -> None:
        """End it and all that it started, and wait until all have ended.

        Its remaining output is read and discarded: asyncio waits for the end of the pipes, which never comes if reading
        has stopped at a full pipe. Nothing else may be reading from them.
        """
        self.end()
        drains = [asyncio.create_task(_drain(stream)) for stream in (self.stdout, self.stderr)]
        try:
            async with asyncio.timeout(_SUPERVISOR_TIMEOUT_S):
                await self.exited()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self.exited()
        _, pending = await asyncio.wait(drains, timeout=_PIPE_TIMEOUT_S)
        for drain in pending:
            drain.cancel()
        # asyncio offers no other way to close pipes that have not ended.
        transport = cast("asyncio.SubprocessTransport", vars(self._process)["_transport"])
        transport.close()


async def start_process(
    arguments: Sequence[str], *, folder: Path | None, environment: Mapping[str, str], line_limit: int = 2**16
) -> ToolProcess:
    """Start a program for a tool.

    Args:
        arguments: The program and its arguments, without a shell.
        folder: Its working folder; None for that of this program.
        environment: Its whole environment.
        line_limit: Maximum length of a line that can be read from it, in bytes.

    Raises:
        OSError: It cannot be started.
    """
    if sys.platform == "win32":
        import ctypes

        from engine.tools.windows_job import ProcessJob

        process = await _spawn(arguments, folder, environment, line_limit)
        return ToolProcess(process, ProcessJob(process.pid, ctypes.WinDLL("kernel32")))
    lifeline, child_end = socket.socketpair()
    lifeline.setblocking(False)
    with child_end:
        # Isolated and without site-packages: it starts quickly, and nothing can change what it imports.
        supervisor = (sys.executable, "-I", "-S", str(_SUPERVISOR), str(child_end.fileno()))
        try:
            process = await _spawn((*supervisor, *arguments), folder, environment, line_limit, child_end)
        except BaseException:
            lifeline.close()
            raise
    started = ToolProcess(process, lifeline)
    try:
        outcome, _, number = (await asyncio.get_running_loop().sock_recv(lifeline, 64)).partition(b" ")
        if outcome != b"started":
            reason = int(number) if outcome == b"failed" else errno.ECHILD
            raise OSError(reason, os.strerror(reason), arguments[0])
    except BaseException:
        await started.end_and_wait()
        raise
    return started


async def _spawn(
    arguments: Sequence[str],
    folder: Path | None,
    environment: Mapping[str, str],
    line_limit: int,
    inherited: socket.socket | None = None,
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=dict(environment),
        limit=line_limit,
        start_new_session=os.name == "posix",
        pass_fds=() if inherited is None else (inherited.fileno(),),
        creationflags=_NEW_GROUP,
    )


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(_CHUNK):
        pass
