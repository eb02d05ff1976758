"""One event loop in a thread of its own, for callers that have none.

All of them share it: model clients keep their connections from run to run, and a new loop a call would leak
descriptors.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

ResultT = TypeVar("ResultT")

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
