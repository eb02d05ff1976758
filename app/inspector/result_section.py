"""One part of a result: its heading, a button that copies it, and the text."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from app.inspector.editors.editor import describe_widget
from app.inspector.result_text import ResultSection
from app.inspector.text_widgets import LongTextView, from_utf16_units
from app.theme.style import ThemedIcon
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel

_NOTHING: Any = object()


class ResultSectionView(QWidget):
    """Shows one part.

    Args:
        fills: Whether the text takes all the room that there is.

    Attributes:
        copy: Copies the whole text, also what is not shown yet.
        content: The text.
        unfold: Shows or hides the text of a part that is folded; hidden for any other.
    """

    def __init__(self, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self._value: Any = _NOTHING
        self.heading = PlainLabel(look="fieldname", wrap=True)
        self._facts = PlainLabel(look="dim small", wrap=True)
        self.copy = QToolButton()
        self.content = LongTextView("", fills=fills)
        self.unfold = QToolButton()
        self.unfold.setCheckable(True)
        self.unfold.setArrowType(Qt.ArrowType.RightArrow)
        self.unfold.setVisible(False)
        line = QHBoxLayout()
        line.setSpacing(UNIT)
        line.addWidget(self.unfold)
        line.addWidget(self.heading, 1)
        line.addWidget(self.copy)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(UNIT)
        box.addLayout(line)
        box.addWidget(self.content)
        box.addWidget(self._facts)
        self.copy.clicked.connect(self._copy)
        self.unfold.toggled.connect(self._show_content)
        ThemedIcon(self.copy, "mdi6.content-copy", "dim")

    def show_part(self, part: ResultSection) -> None:
        """Show a part; one that is the same as before costs nothing."""
        if self.heading.text() != part.heading:
            self.heading.setText(part.heading)
            describe_widget(self.copy, f"Copy: {part.heading}", "Copy this text.")
            self.content.view.setAccessibleName(part.heading)
            describe_widget(self.unfold, f"Show: {part.heading}", "Show or hide this text.")
        if part.is_folded is self.unfold.isHidden():
            self.unfold.setVisible(part.is_folded)
            self._show_content(not part.is_folded or self.unfold.isChecked())
        self._facts.setText(part.details)
        self._facts.setVisible(bool(part.details))
        if part.value is not self._value:
            self._value = part.value
            self.content.set_text(part.text)

    def _show_content(self, is_shown: bool) -> None:
        self.content.setVisible(is_shown)
        self.unfold.setArrowType(Qt.ArrowType.DownArrow if is_shown else Qt.ArrowType.RightArrow)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(from_utf16_units(self.content.text))
