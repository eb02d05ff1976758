"""Runs a batch in the engine thread and reports its rows to the window in groups."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine_thread import EngineThread
from engine.batch.batch import Batch, BatchOptions, BatchResult
from engine.batch.rows import BatchRow, RowResult
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.values import Value

DRAIN_MS: Final = 100
MAX_ROWS_PER_DRAIN: Final = 200
"""Maximum number of rows to process at once, so that the window stays responsive."""


class BatchRunner(QObject):
    """A running batch.

    Args:
        engine: The engine thread.
        workflow: The workflow.
        inputs: Returns the inputs of all rows; called in the engine thread.
        options: Options of the batch.

    Signals:
        rows_started: Numbers of the rows that started.
        rows_completed: Results of the rows that ended.
        finished: The batch ended, and all rows were reported; its result.
        failed: The batch could not start or was aborted; the error.
    """

    rows_started = Signal(list)
    rows_completed = Signal(list)
    finished = Signal(object)
    failed = Signal(object)

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
        self._reports: SimpleQueue[BatchRow | RowResult] = SimpleQueue()
        self._batch: Batch | None = None
        self._is_stopped = False
        self._outcome: BatchResult | EngineError | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(DRAIN_MS)
        self._timer.timeout.connect(self._drain)

        async def work() -> BatchResult:
            self._batch = Batch(workflow, inputs(), options, on_row=self._reports.put, on_begin=self._reports.put)
            if self._is_stopped:
                self._batch.stop()
            return await self._batch.run()

        engine.ask(work(), self._set_outcome, self._set_outcome)
        self._timer.start()

    def stop(self) -> None:
        """Start no more rows and stop the running ones. Results of completed rows are kept."""

        def act() -> None:
            self._is_stopped = True
            if self._batch is not None:
                self._batch.stop()

        self._engine.call(act)

    def _set_outcome(self, outcome: BatchResult | EngineError) -> None:
        self._outcome = outcome

    def _drain(self) -> None:
        outcome = self._outcome  # read before draining, so that no row is missed
        started: list[int] = []
        completed: list[RowResult] = []
        for _ in range(MAX_ROWS_PER_DRAIN):
            if self._reports.empty():
                break
            report = self._reports.get()
            if isinstance(report, BatchRow):
                started.append(report.number)
            else:
                completed.append(report)
        if started:
            self.rows_started.emit(started)
        if completed:
            self.rows_completed.emit(completed)
        if outcome is None or not self._reports.empty():
            return
        self._timer.stop()
        if isinstance(outcome, BatchResult):
            self.finished.emit(outcome)
        else:
            self.failed.emit(outcome)
