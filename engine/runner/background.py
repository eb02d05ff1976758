"""One event loop in a thread of its own, for callers that have none.

All of them share it: model clients keep their connections from run to run, and a new loop a call would leak descriptors.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def submit(coroutine: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
    """Run a coroutine in the background loop, which is made on first use and ends with the process."""
    return asyncio.run_coroutine_threadsafe(coroutine, _background_loop())


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one for the whole process is the point
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="loopwright engine", daemon=True).start()
        return _loop
