"""Event loops of the engine, and the threads in which tools block.

Callers without an event loop share one in the background, so that model clients keep their connections from run to run.
A loop of its own does not wait long for a tool that hangs, for example on a disk that does not answer: the tool gets a
moment to finish what it is writing, and `exit_process` ends the process despite its thread.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final, TypeVar

ResultT = TypeVar("ResultT")

TOOL_THREAD: Final = "loopwright tool"
"""Prefix of the names of tool threads."""


def running_tool_threads(name: str = TOOL_THREAD) -> list[threading.Thread]:
    """Return the running threads with this prefix."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def exit_process(code: int) -> int:
    """Exit at once if a tool hangs; everything that matters must be on the disk by now.

    Returns:
        The exit code, if nothing hangs and the process can end normally.
    """
    if running_tool_threads():
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # the reader has gone
                stream.flush()
        os._exit(code)
    return code


TOOL_GRACE_S: Final = 2.0
"""Seconds that a loop waits for running tools when it ends."""

_numbers = itertools.count(1)


class ToolThreadPool(ThreadPoolExecutor):
    """The tool threads of one event loop."""

    def __init__(self) -> None:
        self._name = f"{TOOL_THREAD} {next(_numbers)}."
        super().__init__(thread_name_prefix=self._name)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle threads, and wait up to `TOOL_GRACE_S` for running ones."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        deadline = time.monotonic() + TOOL_GRACE_S
        for thread in running_tool_threads(self._name) if wait else ():
            thread.join(max(deadline - time.monotonic(), 0.0))


def run_in_new_loop(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine in an event loop of its own, like `asyncio.run`, without waiting for tools that hang."""

    async def in_loop() -> ResultT:
        asyncio.get_running_loop().set_default_executor(ToolThreadPool())
        return await coroutine

    return asyncio.run(in_loop())


_CANCEL_TIMEOUT_S: Final = 10.0
"""Seconds that a cancelled coroutine may take to end."""

WAIT_S: Final = 0.2 if sys.platform == "win32" else None
"""The longest wait for a coroutine: on Windows, a thread that waits for a lock does not react to Ctrl+C."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_in_background_loop(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine in the background loop, which starts on first use and ends with the process.

    Ctrl+C cancels the coroutine, and is raised once it has ended.
    """
    ended = threading.Event()

    async def signal_end() -> ResultT:
        try:
            return await coroutine
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(signal_end(), _background_loop())
    try:
        while not future.done():
            wait([future], timeout=WAIT_S)
        return future.result()
    except BaseException:
        future.cancel()
        ended.wait(_CANCEL_TIMEOUT_S)
        raise


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one loop for the whole process
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="loopwright engine", daemon=True).start()
        return _loop
