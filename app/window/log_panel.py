"""The Log panel: questions of the run, and its log lines, which can be filtered by node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QRegularExpression,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QListView, QPushButton, QVBoxLayout, QWidget

from app.session import Session
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import plain_tool_tip
from app.window.log_lines import MOST_LINES, LogLine, LogWriter, titles_of
from app.window.question_cards import QuestionStack
from engine.events import AnyEvent, RunStarted

NODE_ROLE: Final = Qt.ItemDataRole.UserRole
_Index = QModelIndex | QPersistentModelIndex
_MARKS: Final = {"info": "", "warning": "mdi6.alert-outline", "error": "mdi6.alert-circle-outline"}


class LogModel(QAbstractListModel):
    """The lines; beyond `MOST_LINES` the oldest go."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.lines: list[LogLine] = []

    def append(self, lines: list[LogLine]) -> None:
        """Append lines."""
        lines = lines[-MOST_LINES:]
        too_many = len(self.lines) + len(lines) - MOST_LINES
        if too_many > 0:
            self.beginRemoveRows(QModelIndex(), 0, too_many - 1)
            del self.lines[:too_many]
            self.endRemoveRows()
        self.beginInsertRows(QModelIndex(), len(self.lines), len(self.lines) + len(lines) - 1)
        self.lines.extend(lines)
        self.endInsertRows()

    def clear(self) -> None:
        """Remove all lines."""
        self.beginResetModel()
        self.lines.clear()
        self.endResetModel()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008, D102 - Qt's own
        return 0 if parent.isValid() else len(self.lines)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:  # noqa: D102
        line = self.lines[index.row()]
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole}:
            return line.written if role == Qt.ItemDataRole.DisplayRole else plain_tool_tip(line.written)
        if role == NODE_ROLE:
            return line.node
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return line.written if line.level == "info" else f"{line.level}: {line.written}"
        theme = style().theme
        colour = {"info": theme.text, "warning": theme.warning, "error": theme.bad}[line.level]
        if role == Qt.ItemDataRole.ForegroundRole:
            return QBrush(QColor(colour))
        if role == Qt.ItemDataRole.DecorationRole and _MARKS[line.level]:
            return icon(_MARKS[line.level], colour)
        return None


class LogView(QListView):
    """The lines in sight."""

    def arrange(self) -> None:
        """Lay out new lines now.

        Qt would do it later, perhaps while the wheel scrolls to the last line, which would stop the log from following.
        """
        self.executeDelayedItemsLayout()


class LogPanel(QWidget):
    """The log of one document.

    Signals:
        node_chosen: The user wants to see that node.

    Attributes:
        questions: The questions of the run.
    """

    node_chosen = Signal(str)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.questions = QuestionStack(session, self)
        self.questions.node_chosen.connect(self.node_chosen)
        self._writer = LogWriter()
        self.model = LogModel(self)
        self.shown = QSortFilterProxyModel(self)
        self.shown.setFilterRole(NODE_ROLE)
        self.shown.setSourceModel(self.model)
        self.view = LogView(self)
        self.view.setModel(self.shown)
        self.view.setUniformItemSizes(True)
        self.view.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.view.setAccessibleName("Log lines")
        self._follows = True
        self.view.verticalScrollBar().valueChanged.connect(self._note_scroll)
        self.view.verticalScrollBar().rangeChanged.connect(self._keep_up)
        self.view.doubleClicked.connect(lambda index: self.node_chosen.emit(index.data(NODE_ROLE)))
        self.filter = QComboBox(self)
        self.filter.setAccessibleName("Show the lines of")
        self.filter.addItem("All nodes", "")
        self.filter.currentIndexChanged.connect(self._choose_node)
        caption = QLabel("Show", self)
        caption.setBuddy(self.filter)
        self._clear = QPushButton("Clear", self)
        self._clear.setAccessibleName("Clear the log")
        self._clear.clicked.connect(self.model.clear)
        self._copy = QPushButton("Copy", self)
        self._copy.setAccessibleName("Copy the selected lines, or all")
        self._copy.clicked.connect(self.copy)
        QShortcut(QKeySequence.StandardKey.Copy, self.view, self.copy, context=Qt.ShortcutContext.WidgetShortcut)
        self._arrange(caption)
        session.shown.started.connect(self._follow)
        session.refused.connect(self._note_refusal)

    def _arrange(self, caption: QLabel) -> None:
        row = QHBoxLayout()
        row.setSpacing(2 * UNIT)
        row.addWidget(caption)
        row.addWidget(self.filter)
        row.addStretch(1)
        row.addWidget(self._copy)
        row.addWidget(self._clear)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * UNIT, 2 * UNIT, 3 * UNIT, 2 * UNIT)
        column.setSpacing(2 * UNIT)
        column.addWidget(self.questions, 3)
        column.addLayout(row)
        column.addWidget(self.view, 1)

    def take(self, events: Iterable[AnyEvent]) -> None:
        """Append the lines of a batch of events."""
        lines: list[LogLine] = []
        for event in events:
            if self._session.is_past and isinstance(event, RunStarted):  # resumed: its past events are replayed
                self.model.clear()
            lines += self._writer.lines(event)
        self.show_lines(lines)

    def show_lines(self, lines: list[LogLine]) -> None:
        """Append lines."""
        if not lines:
            return
        self.model.append(lines)
        known = {self.filter.itemData(place) for place in range(self.filter.count())}
        titles = titles_of(self._session.shown.workflow)
        for node in dict.fromkeys(line.node for line in lines):
            if node not in known:
                self.filter.addItem(titles.get(node, node), node)
        self.view.arrange()

    def show_past(self, lines: list[LogLine]) -> None:
        """Show the lines of a stored run, replacing earlier ones."""
        self.model.clear()
        self.show_lines(lines)

    def copy(self) -> None:
        """Copy the selected lines, or all visible ones."""
        rows = sorted(index.row() for index in self.view.selectedIndexes()) or range(self.shown.rowCount())
        lines = [self.shown.index(row, 0).data() for row in rows]
        QGuiApplication.clipboard().setText("\n".join(lines))

    def _note_scroll(self, value: int) -> None:
        self._follows = value >= self.view.verticalScrollBar().maximum()

    def _keep_up(self) -> None:
        if self._follows:
            self.view.scrollToBottom()

    def _follow(self) -> None:
        self._writer = LogWriter(self._session.shown.workflow)
        if self._session.shown.live is not None:  # a run of the history is handed over by whoever read it
            self._session.shown.live.events.connect(self.take)

    def _note_refusal(self, text: str) -> None:
        import time

        self.show_lines([LogLine(time.time(), "", "warning", " ".join(text.split()))])

    def _choose_node(self) -> None:
        node = self.filter.currentData()
        pattern = f"^{QRegularExpression.escape(node)}$" if node else ""
        self.shown.setFilterRegularExpression(QRegularExpression(pattern))
        self.view.scrollToBottom()
