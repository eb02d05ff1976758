"""One part of a result: its heading, a button that copies it, and the text."""

from __future__ import annotations

from typing import Any

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from app.inspector.editors.base import name_widget
from app.inspector.long_text import LongText
from app.inspector.result_parts import Part
from app.inspector.units import from_units
from app.theme.icons import ThemedIcon
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel

_NOTHING: Any = object()


class PartView(QWidget):
    """Shows one part.

    Args:
        fills: Whether the text takes all the room that there is.

    Attributes:
        copy: Copies the whole text, also what is not shown yet.
        content: The text.
    """

    def __init__(self, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self._value: Any = _NOTHING
        self.heading = PlainLabel(look="fieldname", wrap=True)
        self._facts = PlainLabel(look="dim small", wrap=True)
        self.copy = QToolButton()
        self.content = LongText("", fills=fills)
        line = QHBoxLayout()
        line.setSpacing(UNIT)
        line.addWidget(self.heading, 1)
        line.addWidget(self.copy)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(UNIT)
        box.addLayout(line)
        box.addWidget(self.content)
        box.addWidget(self._facts)
        self.copy.clicked.connect(self._copy)
        ThemedIcon(self.copy, "mdi6.content-copy", "dim")

    def show_part(self, part: Part) -> None:
        """Show a part; one that is the same as before costs nothing."""
        if self.heading.text() != part.heading:
            self.heading.setText(part.heading)
            name_widget(self.copy, f"Copy: {part.heading}", "Copy this text.")
            self.content.view.setAccessibleName(part.heading)
        self._facts.setText(part.facts)
        self._facts.setVisible(bool(part.facts))
        if part.value is not self._value:
            self._value = part.value
            self.content.set_text(part.text)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(from_units(self.content.text))
