"""A run of the engine's thread, as the window's thread holds it.

Events are taken up in batches, on a timer that runs only while the run does: however many events a run tells, the
window's thread is woken about sixty times a second.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine_thread import EngineThread
from engine.errors import EngineError
from engine.events import AnyEvent
from engine.nodes.context import Answer
from engine.runner.run import Run
from engine.values import Value

DRAIN_MS: Final = 16
BATCH: Final = 128
"""The most events taken up at once, so that a flood of them never holds the window up."""


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
