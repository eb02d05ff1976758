"""A handle in the window's thread for a run in the engine's thread.

Events are read in batches on a timer that runs only during the run: however many events there are, the window's thread
wakes up about sixty times a second.
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
"""Maximum events per batch, so that the window stays responsive."""


class LiveRun(QObject):
    """The handle.

    Signals:
        events: A batch of events, in order.
        refused: The run could not be started; the error.
        ended: The run has ended, and all its events were emitted.
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
        """Start the run.

        Args:
            engine: The engine's thread.
            begin: Starts or resumes the run, in that thread.
            parent: Its parent.
            paused: Start paused, before the first node.
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
        """Cancel the run."""
        self._with_run(Run.cancel)

    def put_aside(self) -> None:
        """Suspend the run without an event. It remains in the history and can be resumed."""
        self._with_run(Run.put_aside)

    def pause(self) -> None:
        """Pause: running nodes finish, and no others start."""
        self._with_run(Run.pause)

    def resume(self) -> None:
        """Resume after a pause."""
        self._with_run(Run.resume)

    def step_node(self) -> None:
        """Start one node, then pause again."""
        self._with_run(Run.step_node)

    def step_iteration(self) -> None:
        """Continue to the end of the current iteration, then pause again."""
        self._with_run(Run.step_iteration)

    def answer(self, path: str, choice: str, value: Value, comment: str) -> None:
        """Answer a node that waits for input.

        Args:
            path: The node's path in the run.
            choice: One of its choices; empty if it has none.
            value: The edited value, or the answer to a question.
            comment: The user's comment; may be empty.
        """

        def hand_over(run: Run) -> None:
            # Ignored if the run has ended or was answered otherwise: its events show that.
            with contextlib.suppress(EngineError):
                run.answer(path, Answer(choice, value, comment))

        self._with_run(hand_over)

    def post_note(self, to: str, text: str) -> None:
        """Post a note to a node, by id or path; its next model call receives it."""

        def hand_over(run: Run) -> None:
            with contextlib.suppress(EngineError):  # the run has ended
                run.post_note(to, text)

        self._with_run(hand_over)

    async def _start(self, begin: Callable[[], Run]) -> None:
        try:
            self._run = begin()
        except EngineError as error:
            self._refusal = error
            return
        except Exception as error:  # a bug: reported as well, or the window would wait forever
            self._refusal = EngineError(f"The run could not be started ({type(error).__name__}: {error}).")
            raise
        for action in self._waiting:
            action(self._run)
        self._waiting.clear()

    def _with_run(self, action: Callable[[Run], None]) -> None:
        def act() -> None:
            if self._run is not None:
                action(self._run)
            else:  # not started yet: applied when it is
                self._waiting.append(action)

        self._engine.call(act)

    def _drain(self) -> None:
        if self._refusal is not None:
            self._timer.stop()
            self.refused.emit(self._refusal)
            return
        if self._run is None:
            return
        over = self._run.is_over  # checked before reading, so that no event is missed
        batch: list[AnyEvent] = self._run.events_since(self._place, BATCH)
        self._place += len(batch)
        if batch:
            self.events.emit(batch)
        if over and len(batch) < BATCH:
            self._timer.stop()
            self.ended.emit()
