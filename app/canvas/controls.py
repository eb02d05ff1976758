"""What lies over the view: the zoom buttons, what is said beside the mouse, and how to begin on empty ground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel

if TYPE_CHECKING:
    from app.canvas.viewer import CanvasViewer

HINT_WIDTH: Final = 280
HINT_OFFSET: Final = QPoint(16, 20)
HOW_TO_BEGIN: Final = "Drag a node here, press Tab to add one, or open a template."


class ZoomControls(QFrame):
    """Smaller, 100 %, larger, fit."""

    def __init__(self, viewer: CanvasViewer, actions: dict[str, QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self.setProperty("card", True)
        row = QHBoxLayout(self)
        row.setContentsMargins(UNIT, UNIT, UNIT, UNIT)
        row.setSpacing(UNIT)
        self.buttons: dict[str, QToolButton] = {}
        for name, sign in (("zoom_out", "mdi6.minus"), ("zoom_100", ""), ("zoom_in", "mdi6.plus"), ("fit_all", "")):
            button = QToolButton(self)
            action = actions[name]
            button.setAccessibleName(action.toolTip())
            keys = action.shortcut().toString()
            button.setToolTip(f"{action.toolTip()} ({keys})" if keys else action.toolTip())
            button.clicked.connect(action.trigger)
            if sign:
                ThemedIcon(button, sign)
            row.addWidget(button)
            self.buttons[name] = button
        self.buttons["fit_all"].setText("Fit")
        self.percent = self.buttons["zoom_100"]
        viewer.view_moved.connect(self.refresh)
        style().changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Say how large things are seen."""
        words = f"{round(self._viewer.zoom * 100)} %"
        if words != self.percent.text():
            self.percent.setText(words)
        self.percent.setMinimumWidth(self.fontMetrics().horizontalAdvance("000 %") + 6 * UNIT)
        self.adjustSize()


class Hint(PlainLabel):
    """A short text beside the mouse, such as why an edge may not end here."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent, wrap=True)
        self.setObjectName("canvas_hint")
        self.setProperty("hint", "bad")
        self.setMargin(2 * UNIT)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def say(self, text: str, place: QPoint) -> None:
        """Say something at a place of the parent; nothing hides it."""
        self.setText(text)
        if not text:
            self.hide()
            return
        self.setFixedWidth(round(HINT_WIDTH * style().scale))
        self.adjustSize()
        room = self.parentWidget().rect()
        place = place + HINT_OFFSET
        self.move(min(place.x(), room.width() - self.width() - 8), min(place.y(), room.height() - self.height() - 8))
        self.show()
        self.raise_()


class Beginning(PlainLabel):
    """What to do first, in the middle of a canvas with nothing on it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(HOW_TO_BEGIN, parent, look="dim", wrap=True)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def stand_in_the_middle(self) -> None:
        """Take the middle of the parent, on one line where there is room."""
        room = self.parentWidget().rect()
        one_line = self.fontMetrics().horizontalAdvance(HOW_TO_BEGIN) + 2 * UNIT
        width = max(min(one_line, room.width() - 8 * UNIT), UNIT)
        self.resize(width, self.heightForWidth(width))
        self.move((room.width() - self.width()) // 2, (room.height() - self.height()) // 2)
