"""Drag and drop, with the events that a widget gets from the desktop."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, qVersion
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget

# Before PySide6 6.12 the first two events take whole pixels only, and from then on that is deprecated.
_Place = QPointF if tuple(map(int, qVersion().split(".")[:2])) >= (6, 12) else QPoint


def drag_and_drop(target: QWidget, data: QMimeData, place: QPoint) -> bool:
    """Drag data over a widget and drop it; return whether the widget accepts it.

    A move is proposed, as by some file managers, which then remove the file unless it is accepted as a copy.
    """
    actions = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
    how = (actions, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier)
    enter = QDragEnterEvent(_Place(place), *how)
    QApplication.sendEvent(target, enter)
    if not enter.isAccepted():
        return False
    move, drop = QDragMoveEvent(_Place(place), *how), QDropEvent(QPointF(place), *how)
    for event in (move, drop):
        QApplication.sendEvent(target, event)
    return all(event.isAccepted() and event.dropAction() is Qt.DropAction.CopyAction for event in (enter, move, drop))
