"""Where a run's events go: into its log, and from there to whoever reads along.

The run appends and goes on; it waits for no reader. An async reader holds a place in the log, a callback has a
thread of its own, so that one which is slow or raises neither stops nor slows the run. The journal, where the run is
kept, is no reader: the run waits for it now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from engine.errors import EngineError
from engine.events import AnyEvent, NodeStreaming, RunNotKept
from engine.runner.run_storage import Journal

_LOG: Final = logging.getLogger("loopwright")

Callback = Callable[[AnyEvent], None]


class EventLog:
    """The log of one run, and its readers.

    Where the run is kept, an event is told to readers only once it is safe: what somebody has seen is never lost.

    Args:
        run_id: The run.
        reduce: Called with each event at once; it must be quick and must not raise.
        journal: Where the run is kept; None where it is not.
        past: What the run had told before it broke off; numbers go on from there.
        store_past: Whether the journal does not have the past yet.
    """

    def __init__(
        self,
        run_id: str,
        reduce: Callback,
        journal: Journal | None = None,
        past: Sequence[AnyEvent] = (),
        *,
        store_past: bool = False,
    ) -> None:
        self.run_id = run_id
        self.events: list[AnyEvent] = list(past)
        self.closed = False
        self._is_silenced = False
        self._reduce = reduce
        self._waiting: list[asyncio.Future[None]] = []
        self._callbacks: list[_CallbackThread] = []
        self._next = past[-1].seq + 1 if past else 0
        self._offset = len(self.events) - self._next
        self._journal = journal
        self.is_stored = journal is not None
        self._written = self._kept = -1
        self.published = 0 if store_past and journal is not None else len(self.events)
        for event in past:
            reduce(event)
        if journal is not None:
            loop = asyncio.get_running_loop()
            journal.watch(_in_loop(loop, self._on_stored), _in_loop(loop, self._on_store_failed))
            if store_past:
                for event in past:
                    journal.write(event)
                    self._written = event.seq

    @property
    def unstored(self) -> int:
        """By how many numbers the journal is behind the run."""
        return self._written - self._kept if self._journal is not None else 0

    def emit(self, event_type: Callable[..., AnyEvent], path: str, *fields: Any) -> int:
        """Tell an event; `fields` are those that its type has beside the common ones, in their order.

        Returns:
            Its number (`seq`); -1 where nothing is told any more.
        """
        if self._is_silenced:
            return -1
        event = event_type(self.run_id, self._next, time.time(), path, *fields)
        self._next += 1
        self.events.append(event)
        self._reduce(event)
        if self._journal is not None:
            if event_type is not NodeStreaming:
                self._journal.write(event)
                self._written = event.seq
            if self._written > self._kept:
                return event.seq
        if self._callbacks or self._waiting:
            self._publish(len(self.events))
        else:
            self.published = len(self.events)
        return event.seq

    def silence(self) -> None:
        """Tell nothing from now on."""
        self._is_silenced = True

    async def flush(self) -> None:
        """Wait until all that was written is safe, or nothing more is kept."""
        while self.unstored:
            await self._next_change()

    def close(self) -> None:
        """Say that nothing more comes."""
        self.closed = True
        for callback in self._callbacks:
            callback.queue.put(None)
        if self._journal is not None:
            self._journal.close()
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
            while place < self.published:
                yield self.events[place]
                place += 1
            if self.closed:
                return
            await self._next_change()

    def _publish(self, end: int) -> None:
        """Let readers have the log up to that place."""
        for callback in self._callbacks:
            for place in range(self.published, end):
                callback.queue.put(self.events[place])
        self.published = end
        if self._waiting:
            self._wake()

    def _on_stored(self, seq: int) -> None:
        if self._journal is None:
            return
        self._kept = seq
        end = seq + self._offset + 1
        # Pieces of replies are not kept, and may be told as soon as what came before them is.
        while end < len(self.events) and isinstance(self.events[end], NodeStreaming):
            end += 1
        self._publish(max(end, self.published))

    def _on_store_failed(self, error: EngineError) -> None:
        if self._journal is not None and not self.closed:
            self._journal, self.is_stored = None, False
            self.emit(RunNotKept, "", error.message, error.remedy)

    async def _next_change(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


ArgumentT = TypeVar("ArgumentT")


def _in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[ArgumentT], None]) -> Callable[[ArgumentT], None]:
    """The function, to be called from any thread, at work in the loop's; a loop that has ended calls nothing."""

    def call(argument: ArgumentT) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(function, argument)

    return call


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
