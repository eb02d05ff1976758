"""The palette: what can be put on the canvas, and the templates; with a filter, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QDrag, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QLineEdit, QListView, QVBoxLayout, QWidget

from app.gallery.templates import bundled_templates
from app.palette.drawing import RowDelegate, drag_picture
from app.palette.model import PaletteModel
from app.palette.rows import Row, RowKind, rows
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.nodes.registry import Registry


def carry(drag: QDrag) -> None:
    """Let a person drag until the button is released."""
    drag.exec(Qt.DropAction.CopyAction)


class RowList(QListView):
    """The list of rows.

    Signals:
        row_chosen: A row is to be placed or opened.
        left_at_top: The arrow up was pressed on the first row.

    Attributes:
        carry: What holds a drag while it lasts.
    """

    row_chosen = Signal(object)
    left_at_top = Signal()

    def __init__(self, model: PaletteModel) -> None:
        super().__init__()
        self.carry: Callable[[QDrag], None] = carry
        self._rows = model
        self.setModel(model)
        self.setItemDelegate(RowDelegate(self))
        self.setProperty("bare", "rows")
        self.setAccessibleName("Nodes and templates")
        self.setDragEnabled(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragOnly)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.doubleClicked.connect(self._choose)

    def startDrag(self, _actions: Qt.DropAction) -> None:
        """Drag the row under the pointer as a card."""
        index = self.currentIndex()
        row = self._rows.row_at(index)
        if row is None or row.kind is RowKind.HEADER:
            return
        drag = QDrag(self)
        drag.setMimeData(self._rows.mimeData([index]))
        drag.setPixmap(drag_picture(row, self.devicePixelRatioF()))
        drag.setHotSpot(QPoint(4 * UNIT, 4 * UNIT))
        self.carry(drag)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose with Enter, and go back to the filter above the first row."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            event.accept()
            self._choose(self.currentIndex())
        elif event.key() == Qt.Key.Key_Up and self.currentIndex() == self._rows.first():
            event.accept()
            self.left_at_top.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width may take other lines of help."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.scheduleDelayedItemsLayout()

    def _choose(self, index: QModelIndex) -> None:
        row = self._rows.row_at(index)
        if row is not None and row.kind is not RowKind.HEADER:
            self.row_chosen.emit(row)


class Palette(QWidget):
    """What can be put on the canvas.

    Signals:
        node_chosen: A node of that type is to be placed.
        template_chosen: A template is to be opened; the path of its file.
    """

    node_chosen = Signal(str)
    template_chosen = Signal(Path)

    def __init__(self, registry: Registry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._registry = registry
        self._templates, _problems = bundled_templates()
        self._model = PaletteModel()
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter nodes")
        self.filter.setAccessibleName("Filter nodes and templates")
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self._show)
        self.filter.returnPressed.connect(self._choose_first)
        self.filter.installEventFilter(self)
        self.list = RowList(self._model)
        self.list.row_chosen.connect(self._chosen)
        self.list.left_at_top.connect(self.filter.setFocus)
        self._nothing = PlainLabel("Nothing fits. Try other letters.", look="dim", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._nothing.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2 * UNIT, 3 * UNIT, 2 * UNIT, UNIT)
        layout.setSpacing(2 * UNIT)
        layout.addWidget(self.filter)
        layout.addWidget(self._nothing, 1)
        layout.addWidget(self.list, 1)
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        style().changed.connect(self._look_changed)
        self._show("")

    def sizeHint(self) -> QSize:
        """Wide enough for the names and a few words of help."""
        return QSize(round(248 * style().scale), 560)

    def eventFilter(self, watched: QWidget, event: QEvent) -> bool:
        """From the filter, the arrow down goes to the list, and Escape empties the filter."""
        if watched is self.filter and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Down:
                self._go_to_list()
                return True
            if event.key() == Qt.Key.Key_Escape and self.filter.text():
                self.filter.clear()
                return True
        return super().eventFilter(watched, event)

    def _go_to_list(self) -> None:
        first = self._model.first()
        if first.isValid():
            self.list.setCurrentIndex(first)
            self.list.setFocus(Qt.FocusReason.TabFocusReason)

    def refresh(self) -> None:
        """List anew what there is: a server or a plugin has come or gone."""
        self._show(self.filter.text())

    def _show(self, typed: str) -> None:
        self._model.show_rows(rows(self._registry, self._templates, typed))
        is_empty = self._model.rowCount() == 0
        self._nothing.setVisible(is_empty)
        self.list.setVisible(not is_empty)
        self.list.scrollToTop()

    def _choose_first(self) -> None:
        row = self._model.row_at(self._model.first())
        if row is not None and self.filter.text().strip():
            self._chosen(row)

    def _chosen(self, row: Row) -> None:
        if row.kind is RowKind.NODE:
            self.node_chosen.emit(row.key)
        else:
            self.template_chosen.emit(Path(row.key))

    def _look_changed(self) -> None:
        self.list.doItemsLayout()
        self.list.viewport().update()
