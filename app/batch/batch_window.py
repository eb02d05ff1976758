"""The window for a batch: choose a table, say which column goes where, run its rows, look at what comes out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDoubleSpinBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.batch.batch_input import ColumnsForm, TableField, dropped_files
from app.batch.batch_results import BatchResultsModel, BatchResultsView, summary_text
from app.batch.batch_runner import BatchRunner
from app.dialogs import FileDialogs
from app.engine_thread import EngineThread
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import ElidedLabel, MessageBar, PlainLabel, ProgressBar, ignore_wheel_in_fields, inset_number
from app.worker import Worker
from engine.batch.batch import CONCURRENCY_DEFAULT, BatchOptions, BatchResult
from engine.batch.result import RowResult
from engine.batch.rows import inputs_of_table
from engine.batch.table import Table
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.runner.declared import declared_inputs
from engine.values import Value

_MOST_USD: Final = 100_000.0
_DECIMALS: Final = 6
"""With two of them, half a cent would be nothing, and so no limit."""
_SHOWN_DECIMALS: Final = 2
_CENT: Final = 0.01


class BudgetField(QDoubleSpinBox):
    """An amount of US dollars; nothing for no limit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRange(0.0, _MOST_USD)
        self.setDecimals(_DECIMALS)
        self.setPrefix("$ ")
        self.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        self.setSpecialValueText("No limit")
        self.setAccessibleName("Budget of all rows in US dollars")
        self.setToolTip("Once all rows together have spent this, no more are begun. Those under way come to their end.")
        inset_number(self)

    @property
    def usd(self) -> float | None:
        """The amount; None for no limit."""
        return self.value() or None

    def textFromValue(self, value: float) -> str:  # Qt's name
        """Dollars and cents, and more places where it has them."""
        point = self.locale().decimalPoint()
        whole, _, places = super().textFromValue(value).partition(point)
        return f"{whole}{point}{places.rstrip('0').ljust(_SHOWN_DECIMALS, '0')}"

    def validate(self, text: str, position: int) -> object:  # Qt's name
        """A digit that is typed into the words for no limit takes their place."""
        if text != self.specialValueText() and any(sign.isalpha() for sign in text):
            typed = "".join(sign for sign in text if not sign.isalpha() and not sign.isspace())
            text = self.prefix() + typed.removeprefix(self.prefix().strip())
            position = len(text)
        return super().validate(text, position)

    def stepBy(self, steps: int) -> None:  # Qt's name
        """Never to a part of a cent."""
        super().stepBy(steps)
        if 0 < self.value() < _CENT:
            self.setValue(_CENT if steps > 0 else 0.0)


RESULTS_FILTER: Final = "CSV (*.csv);;Excel workbook (*.xlsx);;JSON lines (*.jsonl);;All files (*)"
SIZE: Final = QSize(1120, 720)
_MOST_AT_ONCE: Final = 64


class BatchWindow(QDialog):
    """The window.

    Args:
        engine: The engine's thread.
        workflow: The document, as it is now.
        options: Says how it is to be done, as the person's settings are when it starts.
        asker: Asks for files.
        folder: Where results go unless another place is chosen.

    Signals:
        open_wanted: A person wants to see the run of a row; its id.
        run_ended: A batch is over, so that the history has more runs.
    """

    open_wanted = Signal(str)
    run_ended = Signal()

    def __init__(
        self,
        engine: EngineThread,
        workflow: Workflow,
        options: Callable[[], BatchOptions],
        asker: FileDialogs,
        folder: Path | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"Run for a table · {workflow.name or 'workflow'}")
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
        self.source.read_wanted.connect(self._read)
        self.form = ColumnsForm(declared_inputs(workflow), self)
        self.form.changed.connect(self._show_possible)
        self.target = ElidedLabel("in the history only", self, look="dim")
        self.choose_target = self._button("Choose file…", self._ask_for_target)
        self.choose_target.setAccessibleName("Choose the file for the results")
        self.others = QCheckBox("Include other columns", self)
        self.others.setToolTip("Columns of the table that are not inputs are carried through to the file of results")
        self.others.setChecked(True)
        self.concurrency = QSpinBox(self)
        self.concurrency.setRange(1, _MOST_AT_ONCE)
        self.concurrency.setValue(CONCURRENCY_DEFAULT)
        self.concurrency.setAccessibleName("Rows at once")
        inset_number(self.concurrency)
        self.budget = BudgetField(self)
        self.bar = ProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Rows that have ended")
        self.progress = PlainLabel("", self, look="dim small")
        self.model = BatchResultsModel(self)
        self.view = BatchResultsView(self.model, self)
        self.view.activated.connect(self._open)
        self.view.selectionModel().currentChanged.connect(lambda _now, _before: self._show_possible())
        self.summary = PlainLabel("", self, wrap=True, selectable=True)
        self.start = self._button("Run", self.run_batch)
        self.start.setProperty("primary", True)
        self.stop = self._button("Stop", self._stop)
        self.open = self._button("Open run", lambda: self._open(self.view.currentIndex()))
        self.setAcceptDrops(True)
        self._arrange()
        style().changed.connect(self._dress)
        self._show_possible()

    def show_table(self, path: Path) -> None:
        """Read a table, in a thread, and offer its columns."""
        self.source.read_file(path)

    def send_to(self, path: Path) -> None:
        """Write results to that file, too."""
        self._out = path
        self.target.set_full_text(str(path))

    def run_batch(self) -> None:
        """Run the rows that are not done yet."""
        table, columns, workflow, extra = self.table, self.form.columns, self._workflow, self.others.isChecked()
        if table is None or self._is_busy:
            return
        self.notice.hide()
        self.summary.clear()
        self._worker.ask(
            lambda: inputs_of_table(workflow, table, columns, extra_columns=extra), self._start, self._refuse
        )
        self._show_possible()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Rows under way are stopped first."""
        if self.batch is None:
            super().closeEvent(event)
        else:
            self.reject()
            event.ignore()

    def reject(self) -> None:
        """Escape closes the window as its button does."""
        if self.batch is None:
            super().reject()
        else:
            self._is_closing = True
            self._stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Now the sizes are known."""
        super().showEvent(event)
        self._dress()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take a table that is pasted."""
        if event.matches(QKeySequence.StandardKey.Paste) and not self._is_busy:
            self.source.paste_table()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take the file of a table."""
        if dropped_files(event.mimeData()) and not self._is_busy:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Read the table that was dropped."""
        event.acceptProposedAction()
        self.show_table(dropped_files(event.mimeData())[0])

    # Making it

    def _button(self, text: str, pressed: Callable[[], object]) -> QPushButton:
        button = QPushButton(text, self)
        button.setAutoDefault(False)
        button.clicked.connect(lambda _checked=False: pressed())
        return button

    def _arrange(self) -> None:
        limits = QHBoxLayout()
        limits.setSpacing(4 * UNIT)
        limits.addWidget(self.concurrency)
        limits.addSpacing(4 * UNIT)
        limits.addWidget(PlainLabel("Budget", self))
        limits.addWidget(self.budget)
        limits.addStretch(1)
        self._inputs_label = PlainLabel("Inputs", self)
        form = QGridLayout()
        form.setHorizontalSpacing(4 * UNIT)
        form.setVerticalSpacing(3 * UNIT)
        form.setColumnStretch(1, 1)
        form.addWidget(PlainLabel("Table", self), 0, 0)
        form.addWidget(self.source, 0, 1)
        form.addWidget(self._inputs_label, 1, 0, Qt.AlignmentFlag.AlignTop)
        form.addWidget(self._scrolled_inputs(), 1, 1)
        form.addWidget(PlainLabel("Results", self), 2, 0)
        form.addLayout(_beside(self.target, self.others, self.choose_target), 2, 1)
        form.addWidget(PlainLabel("Rows at once", self), 3, 0)
        form.addLayout(limits, 3, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        buttons.addWidget(self.open)
        buttons.addStretch(1)
        buttons.addWidget(self.stop)
        buttons.addWidget(self.start)
        column = QVBoxLayout(self)
        column.setContentsMargins(6 * UNIT, 6 * UNIT, 6 * UNIT, 4 * UNIT)
        column.setSpacing(3 * UNIT)
        column.addWidget(self.notice)
        column.addLayout(form)
        column.addWidget(self.bar)
        column.addWidget(self.progress)
        column.addWidget(self.view, 1)
        column.addWidget(self.summary)
        column.addLayout(buttons)
        self.resize((SIZE * style().scale).boundedTo(self.screen().availableSize() * 0.9))

    def _scrolled_inputs(self) -> QScrollArea:
        """The form for the inputs: as high as it is, and scrolled where a workflow has many."""
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        area.setWidget(self.form)
        ignore_wheel_in_fields(area)
        return area

    def _dress(self) -> None:
        """Put the label of the inputs beside the first of them, at any size of letters."""
        self._inputs_label.setMinimumHeight(self.form.line_height)

    # What happens

    @property
    def _is_busy(self) -> bool:
        """Whether rows are run, or a table is being read or prepared: a second batch would run beside the first."""
        return self.batch is not None or self._worker.is_busy

    def _ask_for_target(self) -> None:
        self._asker.save_file(self, self._folder / "results.csv", RESULTS_FILTER, self.send_to)

    def _read(self, read: Callable[[], Table]) -> None:
        self._worker.ask(read, self._take_table, self._refuse_table)
        self._show_possible()

    def _take_table(self, table: Table) -> None:
        self.source.show_table(table)
        self._folder = self.source.folder or self._folder
        self._show_table(table)

    def _refuse_table(self, error: EngineError) -> None:
        self.source.show_failure(error)
        self._show_table(None)
        self._refuse(error)

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
        usual = self._options()
        options = BatchOptions(
            run=usual.run,
            concurrency=self.concurrency.value(),
            budget_usd=self.budget.usd,
            out=self._out,
            store=usual.store,
            models=usual.models,
        )
        self.batch = BatchRunner(self._engine, self._workflow, lambda: inputs, options, self)
        self.batch.rows_begun.connect(self.model.begin)
        self.batch.rows_ended.connect(self._take_rows)
        self.batch.ended.connect(self._end)
        self.batch.refused.connect(self._refuse)
        self._say_progress()
        self._show_possible()

    def _take_rows(self, results: list[RowResult]) -> None:
        self.model.take(results)
        self.bar.setValue(self.bar.value() + len(results))
        self._say_progress()
        self._show_possible()

    def _say_progress(self) -> None:
        self.progress.setText(f"{self.bar.value()} of {self.bar.maximum()} rows have ended")

    def _stop(self) -> None:
        if self.batch is not None:
            self.batch.stop()

    def _end(self, result: BatchResult) -> None:
        self.summary.setText(summary_text(result.summary))
        notes = list(result.notes)
        if result.summary.is_budget_spent:
            notes.insert(0, "The budget is spent. Raise it and run again to continue; completed rows are kept.")
        if notes:
            self.notice.say(" ".join(notes), "warning")
            self.notice.show()
        self._let_go()
        self.run_ended.emit()

    def _refuse(self, error: EngineError) -> None:
        self.notice.say(str(error), "bad")
        self.notice.show()
        self._let_go()

    def _let_go(self) -> None:
        self.model.end()
        if self.batch is not None:
            self.batch.deleteLater()
            self.batch = None
        self._show_possible()
        if self._is_closing:
            self.close()

    def _open(self, index: QModelIndex) -> None:
        result = self.model.result_at(index)
        if result is not None and result.run_id:
            self.open_wanted.emit(result.run_id)

    def _show_possible(self) -> None:
        """Switch on what can be done now."""
        result = self.model.result_at(self.view.currentIndex())
        self.start.setEnabled(not self._is_busy and self.table is not None and not self.form.missing)
        self.stop.setEnabled(self.batch is not None)
        self.open.setEnabled(result is not None and bool(result.run_id))
        others = self.table is not None and not set(self.table.columns) <= set(self.form.columns.values())
        self.others.setVisible(others)
        for widget in (self.source, self.form, self.choose_target, self.others, self.concurrency, self.budget):
            widget.setEnabled(not self._is_busy)


def _beside(widget: QWidget, *others: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(2 * UNIT)
    row.addWidget(widget, 1)
    for other in others:
        row.addWidget(other)
    return row
