"""The threads in which tools do what blocks, and an event loop whose end none of them holds up.

A tool that hangs, on a disk that does not answer, stays in its thread when its run is over. The end of the loop waits a
moment for it, so that a tool may end what it is writing, and no longer; `engine.runner.event_loop` ends the process.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

TOOL_THREAD: Final = "loopwright tool"
"""What the name of each thread begins with in which a tool works."""


def tools_at_work(name: str = TOOL_THREAD) -> list[threading.Thread]:
    """The threads that still live, of those whose names begin like this."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def end_process(code: int) -> int:
    """End the process at once where a tool still hangs. Everything that is to be kept must be on the disk by now.

    Args:
        code: The exit code.

    Returns:
        The same, where nothing hangs and the process can end as usual.
    """
    if tools_at_work():
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(code)
    return code


ResultT = TypeVar("ResultT")

ENDS_WITHIN_S: Final = 2.0
"""How long the end of a loop waits for tools at work, in seconds."""

_numbers = itertools.count(1)


class ToolThreads(ThreadPoolExecutor):
    """The threads of one event loop."""

    def __init__(self) -> None:
        self._name = f"{TOOL_THREAD} {next(_numbers)}."
        super().__init__(thread_name_prefix=self._name)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let idle threads end, and give those at work a moment if they are to be waited for."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        deadline = time.monotonic() + ENDS_WITHIN_S
        for thread in tools_at_work(self._name) if wait else ():
            thread.join(max(deadline - time.monotonic(), 0.0))


def run_with_tools(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine in an event loop of its own, like `asyncio.run`, which does not wait for a tool that hangs."""

    async def in_loop() -> ResultT:
        asyncio.get_running_loop().set_default_executor(ToolThreads())
        return await work

    return asyncio.run(in_loop())


_LONGEST_END_S: Final = 10.0
"""How long an interrupted run may take to end before it is left to itself."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_and_wait(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine in the background loop, which is made on first use and ends with the process.

    What interrupts the waiting (Ctrl+C) cancels the coroutine, and goes on once that has come to its end.
    """
    ended = threading.Event()
    future = asyncio.run_coroutine_threadsafe(_telling(coroutine, ended), _background_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        ended.wait(_LONGEST_END_S)
        raise


async def _telling(coroutine: Coroutine[Any, Any, ResultT], ended: threading.Event) -> ResultT:
    try:
        return await coroutine
    finally:
        ended.set()


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one for the whole process is the point
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="loopwright engine", daemon=True).start()
        return _loop
