"""The Runs panel: find, open, compare, resume, export and delete stored runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QAction, QContextMenuEvent, QCursor, QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QMenu,
    QMessageBox,
    QPushButton,
    QTreeView,
    QWidget,
)

from app.dialogs import FileDialogs, ask_question, confirm_overwrite, file_name_of, with_suffix
from app.history.run_labels import STATUS_LABELS, can_resume, run_title, short_id, totals_label, workflow_name
from app.history.runs_model import (
    COLUMNS,
    PAGE,
    SUMMARY_ROLE,
    Page,
    RunListFilter,
    RunsModel,
    read_page,
    read_update,
)
from app.history.store_client import StoreClient
from app.theme.style import ICON_SIZE, ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import (
    STRETCH,
    MessageBar,
    PlainLabel,
    ResponsiveRow,
    plain_tool_tip,
    push_button,
    search_field,
    vbox,
)
from app.worker import Worker
from engine.errors import EngineError, reason_of
from engine.safe_file_io import replace_file
from engine.store.export_csv import BYTE_ORDER_MARK, run_to_csv
from engine.store.export_markdown import run_to_markdown
from engine.store.run_file import head_of, import_run_file, run_to_json
from engine.store.run_sections import state_of
from engine.store.store_protocol import RunStatus, RunSummary, Store, StoreError, Totals

EXPORT_FORMATS: Final = {
    "markdown": ("md", "Markdown (*.md)"),
    "json": ("json", "JSON (*.json)"),
    "csv": ("csv", "CSV (*.csv)"),
}
"""Export formats: the file extension, and the filter of the file dialog."""


def export_run(store: Store, run_id: str, form: str, path: Path) -> None:
    """Write a run to a file.

    Args:
        store: The history.
        run_id: The run.
        form: `markdown`, `json` or `csv`.
        path: The file.

    Raises:
        StoreError: The run cannot be read, or the file cannot be written.
    """
    try:
        replace_file(path, (piece.encode("utf-8", "backslashreplace") for piece in _pieces(store, run_id, form)))
    except (OSError, ValueError) as error:
        raise StoreError(f"Cannot write {path.name}: {reason_of(error)}.", "Choose another folder or name.") from error


def _pieces(store: Store, run_id: str, form: str) -> Iterable[str]:
    if form == "json":
        return run_to_json(head_of(store, run_id), store.events(run_id))
    state = state_of(store, run_id)
    if form == "csv":
        return chain([BYTE_ORDER_MARK], run_to_csv(state, store.document(run_id)))
    return run_to_markdown(store.find(run_id), store.document(run_id), state)


_Role = QMessageBox.ButtonRole


class RunActions(QObject):
    """Pins, deletes, exports and imports runs. The history does the work in a thread.

    Args:
        access: Access to the history.
        dialogs: Shows file dialogs.
        parent: Parent of the dialogs.

    Signals:
        reported: Something is done or failed; the text, and `info` or `bad`.
        exported: A run was exported; the text says to which file.
        export_failed: A run was not exported; the text says why.
    """

    reported = Signal(str, str)
    exported = Signal(str)
    export_failed = Signal(str)

    def __init__(self, access: StoreClient, dialogs: FileDialogs, parent: QWidget) -> None:
        super().__init__(parent)
        self._access = access
        self._dialogs = dialogs
        self._widget = parent

    def pin(self, runs: Sequence[RunSummary]) -> None:
        """Pin runs, or unpin them if all are pinned."""
        pinned = not all(run.pinned for run in runs)

        def work(store: Store) -> None:
            for run in runs:
                store.pin(run.run_id, pinned=pinned)

        self._access.ask(work, lambda _done: self._access.changed.emit(), self._fail)

    def delete(self, runs: Sequence[RunSummary]) -> None:
        """Delete runs after confirmation."""
        if not runs:
            return
        what = f"the run “{run_title(runs[0])}”" if len(runs) == 1 else f"these {len(runs)} runs"
        pinned = sum(run.pinned for run in runs)
        more = f" {pinned} of them {'is' if pinned == 1 else 'are'} pinned." if pinned and len(runs) > 1 else ""
        ids = [run.run_id for run in runs]
        ask_question(
            self._widget,
            f"Delete {what}?",
            f"The run is deleted from the history. This cannot be undone.{more}"
            if len(runs) == 1
            else f"The runs are deleted from the history. This cannot be undone.{more}",
            [("Delete", _Role.DestructiveRole, lambda: self._delete(ids))],
        )

    def export(self, runs: Sequence[RunSummary], form: str) -> None:
        """Export a run to a file that the user chooses.

        Args:
            runs: A list with one run.
            form: `markdown`, `json` or `csv`.
        """
        if len(runs) != 1:
            return
        ending, filters = EXPORT_FORMATS[form]
        run = runs[0]
        name = file_name_of(workflow_name(run), "run")
        suggestion = Path.home() / f"{name}-{short_id(run.run_id)}.{ending}"

        def write(path: Path) -> None:
            target = with_suffix(path, f".{ending}")
            confirm_overwrite(self._widget, path, target, lambda: self._write(run.run_id, form, target))

        self._dialogs.save_file(self._widget, suggestion, filters, write)

    def choose_format(self, runs: Sequence[RunSummary]) -> QMenu:
        """Show a menu of export formats at the pointer, and export a run."""
        menu = QMenu(self._widget)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for form, (_, words) in EXPORT_FORMATS.items():
            action = menu.addAction(f"Export as {words.partition(' ')[0]}…")
            action.triggered.connect(lambda _checked=False, form=form: self.export(runs, form))
        menu.popup(QCursor.pos())
        return menu

    def import_file(self) -> None:
        """Import a run from a JSON file that the user chooses."""

        def imported(_ids: tuple[str, str]) -> None:
            self.reported.emit("The run was imported.", "info")
            self._access.changed.emit()

        def import_file(path: Path) -> None:
            self._access.ask(lambda store: import_run_file(store, path), imported, self._fail)

        self._dialogs.open_text(self._widget, import_file)

    def _write(self, run_id: str, form: str, target: Path) -> None:
        self._access.ask(
            lambda store: export_run(store, run_id, form, target),
            lambda _done: self.exported.emit(f"Exported to {target}."),
            lambda error: self.export_failed.emit(str(error)),
        )

    def _delete(self, run_ids: list[str]) -> None:
        self._access.ask(lambda store: store.delete(run_ids), lambda _done: self._access.changed.emit(), self._fail)

    def _fail(self, error: EngineError) -> None:
        self.reported.emit(str(error), "bad")
        self._access.changed.emit()  # part of it may be done


WIDTHS: Final = (160, 0, 112, 80, 0, 80, 72, 72, 104)
_KEYS: Final = frozenset({Qt.Key.Key_Delete, Qt.Key.Key_Return, Qt.Key.Key_Enter})
WORKFLOW_COLUMN: Final = 1
EXIT_REASON_COLUMN: Final = 4
MIN_WIDTHS: Final = {WORKFLOW_COLUMN: 240, EXIT_REASON_COLUMN: 120}
"""Minimum widths, at the default text size, of the two columns that share the remaining width."""
STARTED_SLACK: Final = 40
"""How much narrower the first column may get, at the default text size, once all columns of `HIDE_ORDER` are hidden."""
HIDE_ORDER: Final = (8, 7, 6, 3, 5, EXIT_REASON_COLUMN)
"""Columns hidden in a narrow table, in this order: model, duration, tokens, iterations, cost, exit reason."""


class RunsView(QTreeView):
    """Tree view of the runs, with context menu and keyboard shortcuts.

    Signals:
        opened: The user wants to open a run; its ID.
        delete_wanted: The Delete key was pressed.
        selection_changed: The selection changed.
        end_reached: The last loaded row came into view.
    """

    opened = Signal(str)
    delete_wanted = Signal()
    selection_changed = Signal()
    end_reached = Signal()

    def __init__(self, model: RunsModel, actions: list[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._actions = actions
        self._runs = model
        self._scale = 0.0  # the text size that the columns fit
        self._is_squeezed = False  # whether the first column is narrower because of the others
        self.setModel(model)
        self.setAccessibleName("Runs")
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setExpandsOnDoubleClick(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.header().setStretchLastSection(False)
        self.header().setSectionsMovable(False)
        self.header().setHighlightSections(False)
        self.doubleClicked.connect(self._open)
        model.rowsInserted.connect(self._open_new)
        self.verticalScrollBar().valueChanged.connect(lambda _value: self._note_end())
        self.verticalScrollBar().rangeChanged.connect(lambda _least, _most: self._note_end())
        style().changed.connect(self._apply_theme)
        self._apply_theme()

    @property
    def selected(self) -> list[RunSummary]:
        """The selected runs, from top to bottom."""
        rows = sorted(self.selectionModel().selectedRows(), key=lambda index: self.visualRect(index).top())
        return [index.data(SUMMARY_ROLE) for index in rows]

    def select(self, run_ids: list[str]) -> None:
        """Select runs, if they are listed."""
        chosen = QItemSelection()
        flags = QItemSelectionModel.SelectionFlag
        for run_id in run_ids:
            index = self._runs.index_of(run_id)
            if index.isValid():
                chosen.select(index, index)
        self.selectionModel().select(chosen, flags.ClearAndSelect | flags.Rows)
        if chosen.indexes():
            self.selectionModel().setCurrentIndex(chosen.indexes()[0], flags.NoUpdate)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        """Emit `selection_changed`."""
        super().selectionChanged(selected, deselected)
        self.selection_changed.emit()

    def event(self, event: QEvent) -> bool:
        """Reserve the keys of this view that the canvas also uses."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and event.key() in _KEYS:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle Enter and Delete."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._open(self.currentIndex())
        elif event.key() == Qt.Key.Key_Delete:
            self.delete_wanted.emit()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Show the actions for the selected runs."""
        if not self.selected:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setToolTipsVisible(True)
        menu.addActions(self._actions)
        menu.popup(event.globalPos())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the less important columns of a narrow table."""
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        """Hide columns until the others fit; the workflow's and the exit reason share what remains."""
        widths = {
            column: round((WIDTHS[column] or MIN_WIDTHS[column]) * style().scale) for column in range(len(WIDTHS))
        }
        room = self.viewport().width() - sum(widths.values())
        for column in HIDE_ORDER:
            self.setColumnHidden(column, room < 0)
            room += widths[column] if room < 0 else 0
        first = widths[0] + max(min(room, 0), -round(STARTED_SLACK * style().scale))
        if room < 0 or self._is_squeezed:  # otherwise the width is the user's choice
            self.header().resizeSection(0, first)
        self._is_squeezed = room < 0
        more = min(max(room, 0), max((room + widths[WORKFLOW_COLUMN] - widths[EXIT_REASON_COLUMN]) // 2, 0))
        self.header().resizeSection(EXIT_REASON_COLUMN, widths[EXIT_REASON_COLUMN] + more)

    def _open(self, index: QModelIndex | QPersistentModelIndex) -> None:
        if index.isValid():
            self.opened.emit(index.data(SUMMARY_ROLE).run_id)

    def _open_new(self, parent: QModelIndex, first: int, last: int) -> None:
        """Expand new rows, so that forks are visible."""
        if parent.isValid():
            self.expand(parent)
        for row in range(first, last + 1):
            index = self._runs.index(row, 0, parent)
            if self._runs.rowCount(index):
                self.expandRecursively(index)

    def _note_end(self) -> None:
        bar = self.verticalScrollBar()
        if bar.value() >= bar.maximum() - bar.pageStep():
            self.end_reached.emit()

    def _apply_theme(self) -> None:
        modes = {WORKFLOW_COLUMN: QHeaderView.ResizeMode.Stretch, EXIT_REASON_COLUMN: QHeaderView.ResizeMode.Fixed}
        for column in range(len(COLUMNS)):
            self.header().setSectionResizeMode(column, modes.get(column, QHeaderView.ResizeMode.Interactive))
            if column not in modes and style().scale != self._scale:
                self.header().resizeSection(column, round(WIDTHS[column] * style().scale))
        self._scale = style().scale
        side = round(ICON_SIZE * style().scale)
        self.setIconSize(QSize(side, side))
        self.setIndentation(5 * UNIT)
        self._fit_columns()


POLL_MS: Final = 2000
TYPING_MS: Final = 200
PINNED: Final = "pinned"
_WRITING: Final = ("resume", "pin", "delete", "import")
"""Actions that write to the history."""
MAX_RELOADED: Final = 1000
"""Maximum number of runs to reload at once; the others are loaded when scrolled to."""
_SINCE: Final = {"Any time": None, "Today": 0, "Last 7 days": 6, "Last 30 days": 29}
"""How far back runs are listed, in days before today."""


class RunsPanel(QWidget):
    """The Runs panel.

    Args:
        access: Access to the history.
        dialogs: Shows file dialogs.

    Signals:
        open_wanted: The user wants to open a run; its ID.
        resume_wanted: The user wants to resume a run; its summary.
        compare_wanted: The user wants to compare two runs, or a fork with its original; their IDs.
        other_history_wanted: The user wants to open another history than the one that cannot be opened.

    Attributes:
        listed: The list is up to date.
    """

    open_wanted = Signal(str)
    resume_wanted = Signal(object)
    compare_wanted = Signal(str, str)
    other_history_wanted = Signal()
    listed = Signal()

    def __init__(self, access: StoreClient, dialogs: FileDialogs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._access = access
        self._worker = Worker(self)
        self._totals: Totals | None = None
        self._is_reading_more = False
        self._sought = ""
        self.run_actions = RunActions(access, dialogs, self)
        self.model = RunsModel(self)
        self.notice = MessageBar("", "warning", self)
        self.notice.hide()
        self.actions_by_name = self._make_actions()
        self.view = RunsView(self.model, list(self.actions_by_name.values())[:-1], self)
        self.view.end_reached.connect(self._read_more)
        self.view.opened.connect(self.open_wanted)
        self.view.selection_changed.connect(self._update_actions)
        self.view.delete_wanted.connect(self.actions_by_name["delete"].trigger)
        self._without_rows = QWidget(self)
        self.empty = PlainLabel("", self, look="dim", wrap=True)
        self.other_history = push_button("Choose another history…", self.other_history_wanted.emit, self)
        self.total = PlainLabel("", self, look="dim small")
        self._make_filters()
        self._arrange()
        self._poll = QTimer(self, interval=POLL_MS)
        self._poll.timeout.connect(self._poll_changes)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._typing.timeout.connect(self.reload)
        self.run_actions.reported.connect(self._report)
        access.opened.connect(self._reload_if_shown)
        access.failed.connect(lambda _text: self._reload_if_shown())
        access.changed.connect(self._reload_if_shown)
        self._update_actions()
        self._show_empty()

    @property
    def run_filter(self) -> RunListFilter:
        """The current filters."""
        state = self.status.currentData()  # a text, because Qt cannot hold our enums
        statuses = frozenset({RunStatus(state)}) if state and state != PINNED else frozenset[RunStatus]()
        return RunListFilter(self.text.text().strip(), statuses, self.since.currentData(), state == PINNED)

    def reload(self) -> None:
        """Reload the list and keep the selection."""
        self._worker.supersede()
        self._is_reading_more, run_filter = False, self.run_filter
        size = min(max(PAGE, self.model.fetched), MAX_RELOADED)

        def work(store: Store) -> tuple[Page, Totals]:
            return read_page(store, run_filter, 0, (), size), store.totals(run_filter.filter())

        self._access.ask(work, lambda found: self._show(*found), self._fail, worker=self._worker)

    def seek(self, run_id: str) -> None:
        """Clear the filters, and select and focus a run once it is listed."""
        self._sought = run_id
        self.text.clear()
        for box in (self.status, self.since):
            box.setCurrentIndex(0)
        self.reload()

    def showEvent(self, event: QShowEvent) -> None:
        """Load the list and poll for changes while it is visible."""
        super().showEvent(event)
        self.reload()
        self._poll.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop polling."""
        super().hideEvent(event)
        self._poll.stop()

    def _make_actions(self) -> dict[str, QAction]:
        specs = (
            ("open", "Open", "mdi6.folder-open-outline", self._open),
            ("resume", "Resume…", "mdi6.play", self._resume),
            ("compare", "Compare", "mdi6.compare-horizontal", self._compare),
            ("pin", "Pin", "mdi6.pin", lambda: self.run_actions.pin(self.view.selected)),
            ("export_md", "Export as Markdown…", "", lambda: self.run_actions.export(self.view.selected, "markdown")),
            ("export_json", "Export as JSON…", "", lambda: self.run_actions.export(self.view.selected, "json")),
            ("export_csv", "Export as CSV…", "", lambda: self.run_actions.export(self.view.selected, "csv")),
            ("delete", "Delete…", "mdi6.delete-outline", lambda: self.run_actions.delete(self.view.selected)),
            ("import", "Import…", "mdi6.import", self.run_actions.import_file),
        )
        made: dict[str, QAction] = {}
        for name, text, sign, act in specs:
            action = QAction(text, self)
            if sign:
                ThemedIcon(action, sign)
            action.triggered.connect(lambda _checked=False, act=act: act())
            made[name] = action
        return made

    def _make_filters(self) -> None:
        self.text = search_field("Workflow", "Filter by workflow name", self)
        self.text.setMaximumWidth(60 * UNIT)
        self.text.textChanged.connect(lambda _text: self._typing.start())
        self.status = QComboBox(self)
        self.status.setAccessibleName("Filter by status")
        self.status.addItem("Any status", "")
        for status, word in STATUS_LABELS.items():
            self.status.addItem(word, status.value)
        self.status.addItem("Pinned", PINNED)
        self.since = QComboBox(self)
        self.since.setAccessibleName("Filter by date")
        for word, days in _SINCE.items():
            self.since.addItem(word, days)
        for box in (self.status, self.since):
            box.currentIndexChanged.connect(lambda _at: self.reload())

    def _arrange(self) -> None:
        self.buttons = {name: self._button(name) for name in ("open", "resume", "compare", "import")}
        self.more = QPushButton("More", self)
        self.more.setProperty("menu", True)
        self.more.setAccessibleName("More actions for the selected runs")
        menu = QMenu(self.more)
        menu.setToolTipsVisible(True)
        menu.addActions([self.actions_by_name[name] for name in ("pin", "export_md", "export_json", "export_csv")])
        menu.addSeparator()
        menu.addAction(self.actions_by_name["delete"])
        self.more.setMenu(menu)
        buttons = [*(self.buttons[name] for name in ("open", "resume", "compare")), self.more, self.buttons["import"]]
        controls = ResponsiveRow([self.text, self.status, self.since], buttons, self)
        button = (self.other_history, Qt.AlignmentFlag.AlignLeft)
        vbox(STRETCH, self.empty, button, STRETCH, spacing=2, parent=self._without_rows)
        parts = (self.notice, controls, (self.view, 1), (self._without_rows, 1), self.total)
        vbox(*parts, spacing=2, margins=(3, 2, 3, 2), parent=self)

    def _button(self, name: str) -> QPushButton:
        action = self.actions_by_name[name]
        button = push_button(action.text(), action.trigger, self)
        button.setAccessibleName(action.text().rstrip("…"))
        action.changed.connect(lambda: button.setEnabled(action.isEnabled()))
        return button

    def _read_more(self) -> None:
        if not self.model.has_more or self._is_reading_more:
            return
        run_filter, offset = self.run_filter, self.model.fetched
        known = {summary.run_id for summary in self.model.summaries()}

        def answered(page: Page) -> None:
            self._is_reading_more = False
            if offset == self.model.fetched:  # a reload may have left out some in between
                self.model.append(page)
                self.listed.emit()

        self._is_reading_more = self._access.ask(
            lambda store: read_page(store, run_filter, offset, known), answered, self._fail, worker=self._worker
        )

    def _poll_changes(self) -> None:
        if self._worker.is_busy:
            return
        run_filter = self.run_filter

        def answered(update: tuple[list[RunSummary], Totals]) -> None:
            runs, totals = update
            same = self._totals is not None and totals.count == self._totals.count
            if not self.model.update(runs) or not same:
                self.reload()
            else:
                self._show_totals(totals)
            self._update_actions()

        self._access.ask(lambda store: read_update(store, run_filter), answered, self._fail, worker=self._worker)

    def _show(self, page: Page, totals: Totals) -> None:
        selected = [summary.run_id for summary in self.view.selected]
        place = self.view.verticalScrollBar().value()
        self.model.show(page)
        self.view.expandAll()
        self.view.select(selected)
        self.view.verticalScrollBar().setValue(place)
        self._select_sought()
        self._show_totals(totals)
        self._show_empty()
        self._update_actions()
        self.listed.emit()

    def _select_sought(self) -> None:
        index = self.model.index_of(self._sought)
        if index.isValid():
            self.view.setVisible(True)  # it is hidden before the first run
            self.view.select([self._sought])
            self.view.scrollTo(index)
            self.view.setFocus()
            self._sought = ""

    def _show_totals(self, totals: Totals) -> None:
        self._totals = totals
        self.total.setText(totals_label(totals))

    def _show_empty(self) -> None:
        has_rows = self.model.rowCount() > 0
        self.view.setVisible(has_rows)
        self.total.setVisible(has_rows)
        self._without_rows.setVisible(not has_rows)
        self.other_history.setVisible(bool(self._access.failure))
        if self._access.failure:
            text = f"Runs are not stored. {self._access.failure}"
        elif self._access.store is None:
            text = "Opening the history…"
        elif self.run_filter.is_all:
            text = "No runs yet. Every run of a workflow is stored here."
        else:
            text = "No matching runs. Change the filters."
        self.empty.setText(text)

    def _update_actions(self) -> None:
        chosen, actions, is_writable = self.view.selected, self.actions_by_name, self._access.writable is not None
        one = len(chosen) == 1
        actions["open"].setEnabled(one)
        actions["resume"].setEnabled(is_writable and one and can_resume(chosen[0]))
        actions["compare"].setEnabled(len(chosen) == 2 or one)
        for name in ("export_md", "export_json", "export_csv"):
            actions[name].setEnabled(one)
        actions["pin"].setEnabled(is_writable and bool(chosen))
        actions["pin"].setText("Unpin" if chosen and all(run.pinned for run in chosen) else "Pin")
        is_idle = all(run.status is not RunStatus.RUNNING for run in chosen)
        actions["delete"].setEnabled(is_writable and bool(chosen) and is_idle)
        actions["import"].setEnabled(is_writable)
        for name in _WRITING:
            for part in (actions[name], self.buttons.get(name)):
                if part is not None:
                    part.setToolTip(plain_tool_tip(self._access.failure))
        self.more.setEnabled(bool(chosen))

    def _open(self) -> None:
        self.open_wanted.emit(self.view.selected[0].run_id)

    def _resume(self) -> None:
        self.resume_wanted.emit(self.view.selected[0])

    def _compare(self) -> None:
        chosen: list[RunSummary] = self.view.selected
        if len(chosen) == 2:
            older, newer = sorted(chosen, key=lambda run: run.started)
        else:
            older = newer = chosen[0]
        self.compare_wanted.emit(older.run_id if older is not newer else newer.parent or newer.run_id, newer.run_id)

    def _reload_if_shown(self) -> None:
        if self.isVisible():
            self.reload()
        self._show_empty()
        self._update_actions()

    def _report(self, text: str, kind: str) -> None:
        self.notice.say(text, kind)
        self.notice.show()

    def _fail(self, error: EngineError) -> None:
        self._is_reading_more = False
        self._report(str(error), "bad")
