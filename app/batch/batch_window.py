"""The batch window: choose a table, map its columns to inputs, run the rows and view the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from PySide6.QtCore import QModelIndex, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QShowEvent,
    QValidator,
)
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDoubleSpinBox,
    QFrame,
    QGridLayout,
    QScrollArea,
    QSpinBox,
    QWidget,
)

from app.batch.batch_input import ColumnsForm, TableField
from app.batch.batch_results import BatchResultsModel, BatchResultsView, summary_text
from app.dialogs import FileDialogs
from app.engine_thread import EngineThread
from app.file_drops import accept_copy, dropped_files
from app.settings.install_dialog import InstallButton, is_install
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import (
    STRETCH,
    ElidedLabel,
    MessageBar,
    PlainLabel,
    ProgressBar,
    hbox,
    inset_number,
    push_button,
    resize_on_screen,
    scroll_area,
    vbox,
)
from app.worker import Worker
from engine.batch.batch import CONCURRENCY_DEFAULT, Batch, BatchOptions, BatchResult
from engine.batch.rows import BatchRow, RowResult, inputs_of_table
from engine.batch.table import Table
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.runner.declared_inputs import declared_inputs
from engine.values import Value

DRAIN_MS: Final = 100
MAX_ROWS_PER_DRAIN: Final = 200
"""Maximum number of rows to process at once, so that the window stays responsive."""


class BatchRunner(QObject):
    """A running batch.

    Args:
        inputs: The inputs of all rows.
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
        inputs: list[dict[str, Value]],
        options: BatchOptions,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._reports: SimpleQueue[BatchRow | RowResult] = SimpleQueue()
        self._batch: Batch | None = None
        self._is_stopped = False
        self._outcome: BatchResult | EngineError | None = None
        self._timer = QTimer(self, interval=DRAIN_MS)
        self._timer.timeout.connect(self._drain)

        async def work() -> BatchResult:
            self._batch = Batch(workflow, inputs, options, on_row=self._reports.put, on_begin=self._reports.put)
            if self._is_stopped:
                self._batch.stop()
            return await self._batch.run()

        engine.ask(self, work(), self._set_outcome, self._set_outcome)
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


_MAX_USD: Final = 100_000.0
_DECIMALS: Final = 6
"""With two decimals, half a cent would round to zero, which means no limit."""
_SHOWN_DECIMALS: Final = 2
_CENT: Final = 0.01


class BudgetField(QDoubleSpinBox):
    """Budget in US dollars; zero means no limit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        step = QDoubleSpinBox.StepType.AdaptiveDecimalStepType
        super().__init__(parent, decimals=_DECIMALS, maximum=_MAX_USD, prefix="$ ", stepType=step)
        self.setSpecialValueText("No limit")
        self.setAccessibleName("Budget for all rows in US dollars")
        self.setToolTip("When the rows have spent this amount, no more rows start. Running rows are completed.")
        inset_number(self)

    @property
    def usd(self) -> float | None:
        """The budget, or None for no limit."""
        return self.value() or None

    def textFromValue(self, value: float) -> str:  # Qt's name
        """Format with cents, and with more decimals if needed."""
        point = self.locale().decimalPoint()
        whole, _, places = super().textFromValue(value).partition(point)
        return f"{whole}{point}{places.rstrip('0').ljust(_SHOWN_DECIMALS, '0')}"

    def validate(self, input: str, pos: int) -> tuple[QValidator.State, str, int]:  # noqa: A002  Qt's names
        """Replace the text for no limit when a digit is typed into it."""
        if input != self.specialValueText() and any(character.isalpha() for character in input):
            typed = "".join(character for character in input if not character.isalpha() and not character.isspace())
            input = self.prefix() + typed.removeprefix(self.prefix().strip())  # noqa: A001
            pos = len(input)
        return super().validate(input, pos)

    def stepBy(self, steps: int) -> None:  # Qt's name
        """Step by at least one cent."""
        super().stepBy(steps)
        if 0 < self.value() < _CENT:
            self.setValue(_CENT if steps > 0 else 0.0)


RESULTS_FILTER: Final = "CSV (*.csv);;Excel workbook (*.xlsx);;JSON lines (*.jsonl);;All files (*)"
SIZE: Final = QSize(1120, 720)
_MAX_CONCURRENCY: Final = 64


class BatchWindow(QDialog):
    """The batch window.

    Args:
        workflow: The workflow to run.
        options: Returns the options of the batch according to the current preferences.
        folder: Default folder for the results.

    Signals:
        open_wanted: The user wants to open the run of a row; its ID.
        run_ended: A batch ended, so the history has more runs.
    """

    open_wanted = Signal(str)
    run_ended = Signal()

    def __init__(
        self,
        engine: EngineThread,
        workflow: Workflow,
        title: str,
        options: Callable[[], BatchOptions],
        asker: FileDialogs,
        folder: Path | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"Batch run · {title}")
        self.setWindowFlags(Qt.WindowType.Window)  # a dialog would stay in front of the run that it opens
        self._engine, self._workflow, self._options = engine, workflow, options
        self._asker, self._folder = asker, folder or Path.home()
        self._worker = Worker(self)
        self._out: Path | None = None
        self._is_closing = False
        self.table: Table | None = None
        self.batch: BatchRunner | None = None
        self.notice = MessageBar("", "bad", self)
        self.notice.hide()
        self.source = TableField(asker, self)
        self.source.read_requested.connect(self._read)
        self.form = ColumnsForm(declared_inputs(workflow), self)
        self.form.changed.connect(self._update_enabled)
        self.target = ElidedLabel("History only", self, look="dim")
        self.choose_target = push_button("Choose file…", self._ask_for_target, self)
        self.choose_target.setAccessibleName("Choose the results file")
        self.others = QCheckBox("Include other columns", self)
        self.others.setToolTip("Copy columns that are not inputs to the results file")
        self.others.setChecked(True)
        self.concurrency = QSpinBox(self, minimum=1, maximum=_MAX_CONCURRENCY, value=CONCURRENCY_DEFAULT)
        self.concurrency.setAccessibleName("Concurrent rows")
        inset_number(self.concurrency)
        self.budget = BudgetField(self)
        self.bar = ProgressBar(self, textVisible=False)
        self.bar.setAccessibleName("Completed rows")
        self.progress = PlainLabel("", self, look="dim small")
        self.model = BatchResultsModel(self)
        self.view = BatchResultsView(self.model, self)
        self.view.activated.connect(self._open_run)
        self.view.selectionModel().currentChanged.connect(lambda _now, _before: self._update_enabled())
        self.summary = PlainLabel("", self, wrap=True, selectable=True)
        self.start = push_button("Run", self.run_batch, self, look="primary")
        self.stop = push_button("Stop", self._stop, self)
        self.open_button = push_button("Open run", lambda: self._open_run(self.view.currentIndex()), self)
        self.install = InstallButton(self.run_batch)
        self.setAcceptDrops(True)
        self._arrange()
        style().changed.connect(self._align_label)
        self._update_enabled()

    def show_table(self, path: Path) -> None:
        """Read a table in a thread and show its columns."""
        self.source.read(path)

    def write_to(self, path: Path) -> None:
        """Also write the results to a file."""
        self._out = path
        self.target.set_full_text(str(path))
        if any(self.model.results):
            self.progress.setText("Click Run to write the results file. Completed rows are reused.")

    def run_batch(self) -> None:
        """Run the rows that are not done yet."""
        table, columns, workflow, extra = self.table, self.form.columns, self._workflow, self.others.isChecked()
        if table is None or self._is_busy:
            return
        self.notice.hide()
        self.summary.clear()

        def read() -> list[dict[str, Value]]:
            return list(inputs_of_table(workflow, table, columns, extra_columns=extra))

        self._worker.ask(read, self._start, self._show_error)
        self._update_enabled()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop running rows first."""
        if self.batch is None:
            super().closeEvent(event)
        else:
            self.reject()
            event.ignore()

    def reject(self) -> None:
        """Handle Esc like the close button."""
        if self.batch is None:
            super().reject()
        else:
            self._is_closing = True
            self._stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Align the labels."""
        super().showEvent(event)
        self._align_label()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Paste a table."""
        if event.matches(QKeySequence.StandardKey.Paste) and not self._is_busy:
            self.source.paste_table()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a file."""
        if dropped_files(event.mimeData()) and not self._is_busy:
            accept_copy(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Accept a file."""
        accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        """Read a dropped table."""
        accept_copy(event)
        self.show_table(dropped_files(event.mimeData())[0])

    def _arrange(self) -> None:
        limits = hbox(self.concurrency, 4, PlainLabel("Budget", self), self.budget, STRETCH, spacing=4)
        self._inputs_label = PlainLabel("Inputs", self)
        self._inputs = self._scrolled_inputs()
        form = QGridLayout()
        form.setHorizontalSpacing(4 * UNIT)
        form.setVerticalSpacing(3 * UNIT)
        form.setColumnStretch(1, 1)
        form.addWidget(PlainLabel("Table", self), 0, 0)
        form.addWidget(self.source, 0, 1)
        form.addWidget(self._inputs_label, 1, 0, Qt.AlignmentFlag.AlignTop)
        form.addWidget(self._inputs, 1, 1)
        form.addWidget(PlainLabel("Results", self), 2, 0)
        form.addLayout(hbox((self.target, 1), self.others, self.choose_target, spacing=2), 2, 1)
        form.addWidget(PlainLabel("Concurrent rows", self), 3, 0)
        form.addLayout(limits, 3, 1)
        vbox(
            self.notice,
            form,
            self.bar,
            self.progress,
            (self.view, 1),
            self.summary,
            hbox(self.open_button, self.install, STRETCH, self.stop, self.start, spacing=2),
            spacing=3,
            margins=(6, 6, 6, 4),
            parent=self,
        )
        resize_on_screen(self, SIZE)

    def _scrolled_inputs(self) -> QScrollArea:
        """Return the form for the inputs in a scroll area."""
        area = scroll_area(self.form, self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return area

    def _align_label(self) -> None:
        """Align the label of the inputs with the first of them; show that one at least, and no gap below them all."""
        for widget in (self._inputs_label, self._inputs):
            widget.setMinimumHeight(self.form.line_height)
        self._inputs.setMaximumHeight(self.form.sizeHint().height())

    @property
    def _is_busy(self) -> bool:
        """Whether rows are running, or a table is being read or prepared."""
        return self.batch is not None or self._worker.is_busy

    def _ask_for_target(self) -> None:
        self._asker.save_file(self, self._folder / "results.csv", RESULTS_FILTER, self.write_to, is_replaced=False)

    def _read(self, read: Callable[[], Table]) -> None:
        self._worker.ask(read, self._table_read, self._read_failed)
        self._update_enabled()

    def _table_read(self, table: Table) -> None:
        self.source.show_table(table)
        self._folder = self.source.folder or self._folder
        self._show_table(table)

    def _read_failed(self, error: EngineError) -> None:
        self.source.show_failure(error)
        self._show_table(None)
        self._show_error(error)

    def _show_table(self, table: Table | None) -> None:
        self.notice.hide()
        self.table = table
        self.model.show_rows(() if table is None else table.rows)
        self.bar.reset()
        self.progress.clear()
        self.form.show_table(table)

    def _start(self, inputs: list[dict[str, Value]]) -> None:
        chosen = self.view.currentIndex().row()
        self.model.show_rows(inputs)
        if chosen >= 0:
            self.view.selectRow(chosen)
        self.bar.setRange(0, len(inputs))
        self.bar.setValue(0)
        concurrency, budget = self.concurrency.value(), self.budget.usd
        options = replace(self._options(), concurrency=concurrency, budget_usd=budget, out=self._out)
        self.batch = BatchRunner(self._engine, self._workflow, inputs, options, self)
        self.batch.rows_started.connect(self.model.mark_running)
        self.batch.rows_completed.connect(self._show_results)
        self.batch.finished.connect(self._batch_finished)
        self.batch.failed.connect(self._show_error)
        self._update_progress()
        self._update_enabled()

    def _show_results(self, results: list[RowResult]) -> None:
        self.model.set_results(results)
        self.bar.setValue(self.bar.value() + len(results))
        self._update_progress()
        self._update_enabled()

    def _update_progress(self) -> None:
        self.progress.setText(f"{self.bar.value()} of {self.bar.maximum()} rows completed")

    def _stop(self) -> None:
        if self.batch is not None:
            self.batch.stop()

    def _batch_finished(self, result: BatchResult) -> None:
        self.summary.setText(summary_text(result.summary))
        notes = list(result.notes)
        if result.summary.is_budget_spent:
            notes.insert(0, "The budget is used up. Raise it and run again to continue; completed rows are reused.")
        if notes:
            self.notice.say(" ".join(notes), "warning")
            self.notice.show()
        self._release_batch()
        self.run_ended.emit()

    def _show_error(self, error: EngineError) -> None:
        self.notice.say(str(error), "bad")
        self.notice.show()
        self._release_batch()

    def _release_batch(self) -> None:
        self.model.finish()
        if self.batch is not None:
            self.batch.deleteLater()
            self.batch = None
        self._update_enabled()
        if self._is_closing:
            self.close()

    def _open_run(self, index: QModelIndex) -> None:
        result = self.model.result_at(index)
        if result is not None and result.run_id:
            self.open_wanted.emit(result.run_id)

    def _update_enabled(self) -> None:
        result = self.model.result_at(self.view.currentIndex())
        self.start.setEnabled(not self._is_busy and self.table is not None and not self.form.missing)
        self.stop.setEnabled(self.batch is not None)
        self.open_button.setEnabled(result is not None and bool(result.run_id))
        results = self.model.results if result is None else (result,)
        self.install.offer("" if self._is_busy else next((one.fix for one in results if is_install(one.fix)), ""))
        others = self.table is not None and not set(self.table.columns) <= set(self.form.columns.values())
        self.others.setVisible(others)
        for widget in (self.source, self.form, self.choose_target, self.others, self.concurrency, self.budget):
            widget.setEnabled(not self._is_busy)
