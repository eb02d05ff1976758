"""The card of a template: its picture, what it does, when to use it, and a button that opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.gallery.picture import DiagramPicture
from app.gallery.templates import Template
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel

ARROWS: Final = frozenset({Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down})


class CardButton(QPushButton):
    """A button that leaves the arrow keys to the grid around its card."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Act on all keys but the arrows."""
        if event.key() in ARROWS:
            event.ignore()
        else:
            super().keyPressEvent(event)


class TemplateCard(QFrame):
    """One template. A double click anywhere on it opens it, and so do its button and Enter.

    Signals:
        opened: It is to be opened; the path of its file.
    """

    opened = Signal(Path)

    def __init__(self, template: Template, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.template = template
        self.setProperty("card", True)
        self.picture = DiagramPicture(template.title)
        self.button = CardButton("Open")
        self.button.setAccessibleName(f"Open {template.title}")
        self.button.setAccessibleDescription(f"{template.about} {template.when}".strip())
        self.button.clicked.connect(self._open)
        self.setFocusProxy(self.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(3 * UNIT, 3 * UNIT, 3 * UNIT, 3 * UNIT)
        layout.setSpacing(2 * UNIT)
        layout.addWidget(self.picture)
        layout.addSpacing(UNIT)
        layout.addWidget(PlainLabel(template.title, look="title"))
        if template.about:
            layout.addWidget(PlainLabel(template.about, wrap=True))
        layout.addStretch(1)
        foot = QHBoxLayout()
        foot.setSpacing(3 * UNIT)
        foot.addWidget(PlainLabel(template.when, look="dim small", wrap=True), 1)
        foot.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        layout.addLayout(foot)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Open it."""
        if event.button() == Qt.MouseButton.LeftButton:
            event.accept()
            self._open()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open it with Enter; the space bar is the button's own."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            event.accept()
            self._open()
        else:
            super().keyPressEvent(event)

    def _open(self) -> None:
        self.opened.emit(self.template.path)
