"""Between the engine's thread and the window's.

The engine runs in one worker thread with an asyncio loop of its own. The window hands work over and takes events up in
batches, on a timer that runs only while a run does: however many events a run tells, the window's thread is woken about
sixty times a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine.errors import EngineError
from engine.models.catalogue import Models
from engine.nodes.context import Answer
from engine.runner.events import AnyEvent
from engine.runner.run import Run
from engine.runner.tool_threads import ToolThreads
from engine.values import Value

ResultT = TypeVar("ResultT")

DRAIN_MS: Final = 16
BATCH: Final = 128
"""The most events taken up at once, so that a flood of them never holds the window up."""

ENDS_WITHIN_S: Final = 10.0
"""How long the end of the program waits for what is under way, in seconds, before it gives it up."""


class EngineThread(QObject):
    """The thread in which everything of the engine runs, from start-up to the end of the program.

    Attributes:
        models: The models of the whole program, shared by all runs.
    """

    _called = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.models = Models()
        self._loop = asyncio.new_event_loop()
        self._pool = ToolThreads()
        self._loop.set_default_executor(self._pool)
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopwright engine", daemon=True)
        self._thread.start()
        # Queued also where the work was done before anyone waited for it: nobody is called back before `ask` returns.
        self._called.connect(lambda call: call(), Qt.ConnectionType.QueuedConnection)

    def submit(self, work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
        """Run a coroutine in the engine's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def ask(
        self,
        work: Coroutine[Any, Any, ResultT],
        answered: Callable[[ResultT], None],
        failed: Callable[[EngineError], None],
    ) -> Future[ResultT]:
        """Run a coroutine in the engine's thread and hand its result, or its error, to the window's thread.

        Cancelling the future that is returned ends the work; then neither function is called.
        """

        def done(future: Future[ResultT]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is None:
                result = future.result()
                self._called.emit(lambda: answered(result))
            else:
                told = error if isinstance(error, EngineError) else EngineError(f"{type(error).__name__}: {error}")
                self._called.emit(lambda: failed(told))

        asked = self.submit(work)
        asked.add_done_callback(done)
        return asked

    def call(self, work: Callable[[], object]) -> None:
        """Call a function in the engine's thread, soon."""
        self._loop.call_soon_threadsafe(work)

    def stop(self) -> None:
        """Cancel what is under way, give models back and end the thread.

        What takes no notice, such as a tool that waits for a disk, is given up: the history is still to be closed.
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


class LiveRun(QObject):
    """A run as the window's thread holds it.

    Signals:
        events: A batch of events, in order.
        refused: The run could not be started; the error says why.
        ended: The run is over, and all its events have been handed on.
    """

    events = Signal(list)
    refused = Signal(object)
    ended = Signal()

    def __init__(
        self,
        engine: EngineThread,
        begin: Callable[[], Run],
        parent: QObject | None = None,
        *,
        paused: bool = False,
    ) -> None:
        """Have the run started.

        Args:
            engine: The engine's thread.
            begin: Starts the run, in that thread: a new one, or one that goes on.
            parent: Its parent.
            paused: Keeps even the first node from starting until the run is resumed or stepped.
        """
        super().__init__(parent)
        self._engine = engine
        self._run: Run | None = None
        self._waiting: list[Callable[[Run], None]] = [Run.pause] if paused else []
        self._place = 0
        self._refusal: EngineError | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(DRAIN_MS)
        self._timer.timeout.connect(self._drain)
        engine.submit(self._start(begin))
        self._timer.start()

    def cancel(self) -> None:
        """Stop at once."""
        self._with_run(Run.cancel)

    def put_aside(self) -> None:
        """Stop at once and tell nothing of it: the history has the run as it stands, to be taken up another day."""
        self._with_run(Run.put_aside)

    def pause(self) -> None:
        """Let nodes at work finish, and start no more."""
        self._with_run(Run.pause)

    def resume(self) -> None:
        """Go on after a pause."""
        self._with_run(Run.resume)

    def step_node(self) -> None:
        """Start one node, and pause again."""
        self._with_run(Run.step_node)

    def step_iteration(self) -> None:
        """Go on to the end of the present iteration, and pause again."""
        self._with_run(Run.step_iteration)

    def answer(self, path: str, choice: str, value: Value, comment: str) -> None:
        """Answer the node at that place, which waits for a person.

        Args:
            path: The node's place in the run.
            choice: One of the choices it offers; empty where it offers none.
            value: The value as the person leaves it, or the answer to a question.
            comment: What the person has to say; empty for nothing.
        """

        def hand_over(run: Run) -> None:
            # Where nothing waits any more, a run that ended or another answer came first: its events tell that.
            with contextlib.suppress(EngineError):
                run.answer(path, Answer(choice, value, comment))

        self._with_run(hand_over)

    def post_note(self, to: str, text: str) -> None:
        """Post a note to a node, by its id or its place in the run; its next model call receives it."""

        def hand_over(run: Run) -> None:
            with contextlib.suppress(EngineError):  # the run is over, and tells that itself
                run.post_note(to, text)

        self._with_run(hand_over)

    async def _start(self, begin: Callable[[], Run]) -> None:
        try:
            self._run = begin()
        except EngineError as error:
            self._refusal = error
            return
        except Exception as error:  # a fault of ours: told all the same, or the window would wait for ever
            self._refusal = EngineError(f"The run could not be started ({type(error).__name__}: {error}).")
            raise
        for action in self._waiting:
            action(self._run)
        self._waiting.clear()

    def _with_run(self, action: Callable[[Run], None]) -> None:
        def act() -> None:
            if self._run is not None:
                action(self._run)
            else:  # it is about to start, and must not miss that it shall pause or stop
                self._waiting.append(action)

        self._engine.call(act)

    def _drain(self) -> None:
        if self._refusal is not None:
            self._timer.stop()
            self.refused.emit(self._refusal)
            return
        if self._run is None:
            return
        over = self._run.is_over  # asked before reading, so that nothing told in between is missed
        batch: list[AnyEvent] = self._run.events_since(self._place, BATCH)
        self._place += len(batch)
        if batch:
            self.events.emit(batch)
        if over and len(batch) < BATCH:
            self._timer.stop()
            self.ended.emit()
