"""The thread in which the engine runs, with an asyncio loop of its own, and calls between it and the window."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from PySide6.QtCore import QObject, Qt, Signal
from shiboken6 import isValid

from engine.errors import EngineError
from engine.models.catalog import Models
from engine.runner.event_loop import ToolThreadPool

ResultT = TypeVar("ResultT")

ENDS_WITHIN_S: Final = 10.0
"""How long the end of the program waits for running tasks, in seconds."""

SWITCH_INTERVAL_S: Final = 0.001
"""How long the window's thread waits for the interpreter while another thread computes, at each call from Qt. A frame
has many; by default each takes five times as long."""


class EngineThread(QObject):
    """The engine's thread, from start-up to the end of the program.

    Attributes:
        models: The models of the whole program, shared by all runs.
    """

    _called = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.models = Models()
        self._loop = asyncio.new_event_loop()
        self._pool = ToolThreadPool()
        self._loop.set_default_executor(self._pool)
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopwright engine", daemon=True)
        self._thread.start()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        # Queued, so that no callback is called before `ask` returns.
        self._called.connect(lambda call: call(), Qt.ConnectionType.QueuedConnection)

    def submit(self, work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
        """Run a coroutine in the engine's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def ask(
        self,
        owner: QObject,
        work: Coroutine[Any, Any, ResultT],
        answered: Callable[[ResultT], object],
        failed: Callable[[EngineError], object],
    ) -> Future[ResultT]:
        """Run a coroutine in the engine's thread and hand its result, or its error, to the window's thread.

        Neither function is called after the owner was deleted, or the future that is returned was cancelled, which ends
        the work.
        """

        def report(act: Callable[[], object]) -> None:
            if isValid(owner):
                act()

        def done(future: Future[ResultT]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is None:
                result = future.result()
                self._called.emit(lambda: report(lambda: answered(result)))
            else:
                wrapped = error if isinstance(error, EngineError) else EngineError(f"{type(error).__name__}: {error}")
                self._called.emit(lambda: report(lambda: failed(wrapped)))

        asked = self.submit(work)
        asked.add_done_callback(done)
        return asked

    def call(self, work: Callable[[], object]) -> None:
        """Call a function in the engine's thread."""
        self._loop.call_soon_threadsafe(work)

    def stop(self) -> None:
        """Cancel all tasks, close the models and end the thread.

        A task that does not react, such as a tool that waits for a disk, is abandoned after a timeout.
        """
        if self._loop.is_closed():
            return
        with contextlib.suppress(TimeoutError):
            self.submit(_wind_up(self.models)).result(ENDS_WITHIN_S)
        self._pool.shutdown()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ENDS_WITHIN_S)
        if not self._thread.is_alive():
            self._loop.close()


async def _wind_up(models: Models) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await models.close()
