"""Event log of a run: the events so far, and their delivery to readers.

The run never waits for a reader. An async reader has a position in the log, and a callback has a thread of its own, so
that a slow or failing one neither stops nor slows the run. The journal that stores the run is not a reader; the run
waits for it now and then.
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
    """The events of one run, and their readers.

    If the run is stored, readers get an event only after it is stored, so that nobody sees an event that is lost later.

    Args:
        run_id: The run.
        reduce: Called with each event at once; must be fast and must not raise.
        journal: Stores the run; None if it is not stored.
        past: Events before a resume; new events continue their numbers.
        store_past: Whether the journal does not have the past yet.

    Attributes:
        events: All events so far.
        published: How many of them readers may see.
        is_stored: Whether the run is stored.
        unstored: How many numbers the journal is behind the run.
        closed: Whether no more events follow.
        idle: The callbacks whose threads may be waiting for events.
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
        self.idle: set[_CallbackThread] = set()
        self._next = past[-1].seq + 1 if past else 0
        self._offset = len(self.events) - self._next
        self._journal = journal
        self.is_stored = journal is not None
        self.unstored = 0
        self._last_written = self._last_stored = -1
        self.published = 0 if store_past and journal is not None else len(self.events)
        for event in past:
            reduce(event)
        if journal is not None:
            loop = asyncio.get_running_loop()
            journal.watch(_call_in_loop(loop, self._on_stored), _call_in_loop(loop, self._on_store_failed))
            if store_past:
                for event in past:
                    journal.write(event)
                    self._last_written = event.seq
                self.unstored = self._last_written - self._last_stored

    def emit(self, event_type: Callable[..., AnyEvent], path: str, *fields: Any) -> int:
        """Emit an event; `fields` are the fields of its type after the common ones, in order.

        Returns:
            Its number (`seq`); -1 after `silence`.
        """
        if self._is_silenced:
            return -1
        seq = self._next
        event = event_type(self.run_id, seq, time.time(), path, *fields)
        self._next = seq + 1
        self.events.append(event)
        self._reduce(event)
        if self._journal is not None:
            if event_type is not NodeStreaming:
                self._journal.write(event)
                self._last_written = seq
                self.unstored = seq - self._last_stored
            if self.unstored:
                return seq
        self.published = len(self.events)
        if self.idle or self._waiting:
            self._notify_readers()
        return seq

    def silence(self) -> None:
        """Emit no more events."""
        self._is_silenced = True

    async def flush(self) -> None:
        """Wait until all written events are stored, or the journal has failed."""
        while self.unstored:
            await self._next_change()

    def close(self) -> None:
        """Report that no more events follow."""
        self.closed = True
        for callback in self._callbacks:
            callback.wake()
        if self._journal is not None:
            self._journal.close()
        self._wake()

    def add_callback(self, callback: Callback) -> None:
        """Call a function with every further event, in order, in a thread of its own."""
        self._callbacks.append(_CallbackThread(callback, self))

    async def delivered(self, within_s: float) -> None:
        """Wait until all callbacks have received all events, at most `within_s` seconds."""
        deadline = time.monotonic() + within_s
        for callback in self._callbacks:
            await asyncio.to_thread(callback.finished.wait, max(deadline - time.monotonic(), 0))

    async def read(self) -> AsyncIterator[AnyEvent]:
        """Yield all events from the first to the last, as they are published."""
        position = 0
        while True:
            while position < self.published:
                yield self.events[position]
                position += 1
            if self.closed:
                return
            await self._next_change()

    def _notify_readers(self) -> None:
        while self.idle:
            self.idle.pop().wake()
        if self._waiting:
            self._wake()

    def _on_stored(self, seq: int) -> None:
        if self._journal is None:
            return
        self._last_stored, self.unstored = seq, self._last_written - seq
        end = seq + self._offset + 1
        # Pieces of replies are not stored, and are published after the events before them.
        while end < len(self.events) and isinstance(self.events[end], NodeStreaming):
            end += 1
        self.published = max(end, self.published)
        self._notify_readers()

    def _on_store_failed(self, error: EngineError) -> None:
        if self._journal is not None and not self.closed:
            self._journal, self.is_stored, self.unstored = None, False, 0
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


def _call_in_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[[ArgumentT], None]
) -> Callable[[ArgumentT], None]:
    """Return a function that any thread may call to run `function` in the event loop, unless the loop has ended."""

    def call(argument: ArgumentT) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(function, argument)

    return call


class _CallbackThread:
    """Calls a callback with the published events of a log in a thread; its first exception is logged, all are ignored.

    The thread reads the log as far as it has come, and waits only at its end, so that the run does next to nothing for
    an event. It is not a daemon, so that a script that ends right after its run still receives all events.

    Attributes:
        finished: Set once the callback has received all events.
    """

    def __init__(self, callback: Callback, log: EventLog) -> None:
        self.finished = threading.Event()
        self._callback = callback
        self._log = log
        self._position = log.published
        self._raised = False
        self._wake_ups: SimpleQueue[None] = SimpleQueue()
        threading.Thread(target=self._work, name=f"loopwright events of {log.run_id}", daemon=False).start()

    def wake(self) -> None:
        """Report that more events are published, or that no more follow."""
        self._wake_ups.put(None)

    def _work(self) -> None:
        is_closed = False
        while not is_closed:
            self._log.idle.add(self)  # before looking: what follows the look wakes the thread
            is_closed = self._log.closed
            new = self._log.events[self._position : self._log.published]
            self._position += len(new)
            for event in new:
                try:
                    self._callback(event)
                except Exception:
                    self._log_first_error()
            if not new and not is_closed:
                self._wake_ups.get()
        self.finished.set()

    def _log_first_error(self) -> None:
        if not self._raised:
            _LOG.exception("An event callback raised. The run continues. Its further errors are not logged.")
        self._raised = True
