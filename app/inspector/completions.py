"""The list of names that opens beside the text cursor. The editor keeps the keyboard and moves the choice."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QListView, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.inspector.names import Name
from app.theme.style import style
from app.theme.tokens import FONT_SIZE_SMALL, UNIT
from app.theme.widgets import plain_tool_tip

_NAME_ROLE = Qt.ItemDataRole.UserRole
_MOST_ROWS = 7


def fitting(names: list[Name], typed: str) -> list[Name]:
    """The names that a typed beginning may become: those that start with it, then those that have it inside."""
    wanted = typed.lower()
    starts = [name for name in names if name.text.lower().startswith(wanted)]
    inside = [name for name in names if wanted in name.text.lower() and name not in starts]
    return [name for name in [*starts, *inside] if name.text != typed]


class Completions(QListView):
    """Names with a line of help each.

    Signals:
        picked: A name was chosen with the mouse.
    """

    picked = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowFlags(Qt.WindowType.ToolTip | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Names that may stand here")
        self.setItemDelegate(_Rows(self))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setUniformItemSizes(True)
        self._model = QStandardItemModel(self)
        self.setModel(self._model)
        self.clicked.connect(lambda index: self.picked.emit(index.data(_NAME_ROLE)))

    @property
    def texts(self) -> list[str]:
        """The names that are offered."""
        return [self._model.index(row, 0).data() for row in range(self._model.rowCount())]

    @property
    def chosen(self) -> Name | None:
        """The name that Enter would take."""
        return self.currentIndex().data(_NAME_ROLE)

    def offer(self, names: list[Name], place: QPoint, line_height: int, width: int) -> None:
        """Open beside a place of the screen."""
        self._model.clear()
        for name in names:
            item = QStandardItem(name.text)
            item.setData(name, _NAME_ROLE)
            item.setData(name.help, Qt.ItemDataRole.AccessibleDescriptionRole)
            item.setToolTip(plain_tool_tip(name.help))
            self._model.appendRow(item)
        self.setCurrentIndex(self._model.index(0, 0))
        self.ensurePolished()  # before, a row is as high as letters of another font
        frame = self.height() - self.viewport().height() if self.isVisible() else 2 * self.frameWidth()
        height = min(len(names), _MOST_ROWS) * self.sizeHintForRow(0) + frame
        wanted = QRect(place + QPoint(0, line_height), QSize(width, height))
        screen = QGuiApplication.screenAt(place) or QGuiApplication.primaryScreen()
        room = screen.availableGeometry()
        if wanted.bottom() > room.bottom():
            wanted.moveBottom(place.y())
        wanted.moveLeft(max(room.left(), min(wanted.left(), room.right() - width)))
        self.setGeometry(wanted)
        self.show()

    def move_choice(self, steps: int) -> None:
        """Go up or down, round and round."""
        row = (self.currentIndex().row() + steps) % self._model.rowCount()
        self.setCurrentIndex(self._model.index(row, 0))


class _Rows(QStyledItemDelegate):
    """A name, and its help in the colour of lesser texts."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Two lines."""
        return QSize(120, round(2.7 * option.fontMetrics.height()) + UNIT)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """The name over its help."""
        theme = style().theme
        name: Name = index.data(_NAME_ROLE)
        is_chosen = index == self.parent().currentIndex()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if is_chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.accent))
            painter.drawRoundedRect(option.rect, UNIT, UNIT)
        room = option.rect.adjusted(2 * UNIT, UNIT, -2 * UNIT, -UNIT)
        top, bottom = QRect(room), QRect(room)
        top.setHeight(room.height() // 2)
        bottom.setTop(top.bottom())
        painter.setFont(style().font())
        painter.setPen(QColor(theme.on_accent if is_chosen else theme.text))
        painter.drawText(top, Qt.AlignmentFlag.AlignVCenter, name.text)
        painter.setFont(style().font(FONT_SIZE_SMALL))
        painter.setPen(QColor(theme.on_accent if is_chosen else theme.dim))
        words = painter.fontMetrics().elidedText(name.help, Qt.TextElideMode.ElideRight, bottom.width())
        painter.drawText(bottom, Qt.AlignmentFlag.AlignVCenter, words)
        painter.restore()
