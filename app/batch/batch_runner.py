"""A batch as the window's thread holds it: run in the engine's thread, its rows taken up a few times a second."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine_thread import EngineThread
from engine.batch.batch import Batch, BatchOptions, BatchResult
from engine.batch.result import RowResult
from engine.batch.rows import BatchRow
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.values import Value

DRAIN_MS: Final = 100
MOST_AT_ONCE: Final = 200
"""The most rows taken up at once, so that a flood of them never holds the window up."""


class BatchRunner(QObject):
    """A batch under way.

    Args:
        engine: The engine's thread.
        workflow: The document.
        inputs: Gives each row's inputs; called in the engine's thread.
        options: How it is to be done.

    Signals:
        rows_begun: Rows that were begun, by their numbers.
        rows_ended: Rows that have ended.
        ended: The batch is over, with what it came to; all its rows were told.
        refused: It cannot be run, or broke off; the error says why.
    """

    rows_begun = Signal(list)
    rows_ended = Signal(list)
    ended = Signal(object)
    refused = Signal(object)

    def __init__(
        self,
        engine: EngineThread,
        workflow: Workflow,
        inputs: Callable[[], list[dict[str, Value]]],
        options: BatchOptions,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._told: SimpleQueue[BatchRow | RowResult] = SimpleQueue()
        self._batch: Batch | None = None
        self._is_stopped = False
        self._outcome: BatchResult | EngineError | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(DRAIN_MS)
        self._timer.timeout.connect(self._drain)

        async def work() -> BatchResult:
            self._batch = Batch(workflow, inputs(), options, on_row=self._told.put, on_begin=self._told.put)
            if self._is_stopped:
                self._batch.stop()
            return await self._batch.run()

        engine.ask(work(), self._note_outcome, self._note_outcome)
        self._timer.start()

    def stop(self) -> None:
        """Begin no more rows and stop those under way. What is done is kept."""

        def act() -> None:
            self._is_stopped = True
            if self._batch is not None:
                self._batch.stop()

        self._engine.call(act)

    def _note_outcome(self, outcome: BatchResult | EngineError) -> None:
        self._outcome = outcome

    def _drain(self) -> None:
        outcome = self._outcome  # asked before reading, so that no row told in between is missed
        begun: list[int] = []
        ended: list[RowResult] = []
        for _ in range(MOST_AT_ONCE):
            if self._told.empty():
                break
            told = self._told.get()
            if isinstance(told, BatchRow):
                begun.append(told.number)
            else:
                ended.append(told)
        if begun:
            self.rows_begun.emit(begun)
        if ended:
            self.rows_ended.emit(ended)
        if outcome is None or not self._told.empty():
            return
        self._timer.stop()
        if isinstance(outcome, BatchResult):
            self.ended.emit(outcome)
        else:
            self.refused.emit(outcome)
