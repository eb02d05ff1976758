"""Where a run's events go: into its log, and from there to whoever reads along.

The run appends and goes on; it waits for no reader. An async reader holds a place in the log, a callback has a
thread of its own, so that one which is slow or raises neither stops nor slows the run.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from queue import SimpleQueue
from typing import Any, Final

from engine.runner.events import AnyEvent

_LOG: Final = logging.getLogger("loopwright")

Callback = Callable[[AnyEvent], None]


class EventBus:
    """The log of one run, and its readers.

    Args:
        run_id: The run.
        fold: By event type, what is called with each such event at once; it must be quick and must not raise.
    """

    def __init__(self, run_id: str, fold: Mapping[Any, Callback]) -> None:
        self.run_id = run_id
        self.log: list[AnyEvent] = []
        self.closed = False
        self._fold = fold
        self._waiting: list[asyncio.Future[None]] = []
        self._callbacks: list[_CallbackThread] = []

    def emit(self, event_type: Callable[..., AnyEvent], path: str, *fields: Any) -> None:
        """Tell an event; `fields` are those that its type has beside the common ones, in their order."""
        log = self.log
        event = event_type(self.run_id, len(log), time.time(), path, *fields)
        log.append(event)
        handler = self._fold.get(event_type)
        if handler is not None:
            handler(event)
        for callback in self._callbacks:
            callback.queue.put(event)
        if self._waiting:
            self._wake()

    def close(self) -> None:
        """Say that nothing more comes."""
        self.closed = True
        for callback in self._callbacks:
            callback.queue.put(None)
        self._wake()

    def add_callback(self, callback: Callback) -> None:
        """Call this with every further event, in a thread of its own, in order."""
        self._callbacks.append(_CallbackThread(callback, self.run_id))

    async def delivered(self, within_s: float) -> None:
        """Wait until all callbacks have had all events, but not longer than that."""
        deadline = time.monotonic() + within_s
        for callback in self._callbacks:
            await asyncio.to_thread(callback.finished.wait, max(deadline - time.monotonic(), 0))

    async def read(self) -> AsyncIterator[AnyEvent]:
        """All events from the first, as they come, to the last."""
        place = 0
        while True:
            while place < len(self.log):
                yield self.log[place]
                place += 1
            if self.closed:
                return
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class _CallbackThread:
    """Calls one callback; what it raises is logged once and ends nothing.

    The thread is no daemon: a script that ends right after its run still has all events delivered.
    """

    def __init__(self, callback: Callback, run_id: str) -> None:
        self.queue: SimpleQueue[AnyEvent | None] = SimpleQueue()
        self.finished = threading.Event()
        self._callback = callback
        self._raised = False
        threading.Thread(target=self._work, name=f"loopwright events of {run_id}", daemon=False).start()

    def _work(self) -> None:
        while (event := self.queue.get()) is not None:
            try:
                self._callback(event)
            except Exception:
                if not self._raised:
                    _LOG.exception("An event callback raised; the run goes on, and further errors of it are not shown.")
                self._raised = True
        self.finished.set()
