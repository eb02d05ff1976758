"""View of one section of a result: heading, copy button and text."""

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
    """Shows one section.

    Args:
        fills: Whether the text fills the available height.

    Attributes:
        copy: Copies the whole text, including what is not shown yet.
        content: The text.
        details: A line below the text.
        expand: Expands and collapses a collapsible section; hidden for others.
    """

    def __init__(self, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self._value: Any = _NOTHING
        self.heading = PlainLabel(look="fieldname", wrap=True)
        self.details = PlainLabel(look="dim small", wrap=True)
        self.copy = QToolButton()
        self.content = LongTextView("", fills=fills)
        self.expand = QToolButton()
        self.expand.setCheckable(True)
        self.expand.setArrowType(Qt.ArrowType.RightArrow)
        self.expand.setVisible(False)
        line = QHBoxLayout()
        line.setSpacing(UNIT)
        line.addWidget(self.expand)
        line.addWidget(self.heading, 1)
        line.addWidget(self.copy)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(UNIT)
        box.addLayout(line)
        box.addWidget(self.content)
        box.addWidget(self.details)
        self.copy.clicked.connect(self._copy)
        self.expand.toggled.connect(self._show_content)
        ThemedIcon(self.copy, "mdi6.content-copy", "dim")

    def show_section(self, section: ResultSection) -> None:
        """Show a section; does nothing if it is unchanged."""
        if self.heading.text() != section.heading:
            self.heading.setText(section.heading)
            describe_widget(self.copy, f"Copy: {section.heading}", "Copy text")
            self.content.view.setAccessibleName(section.heading)
            describe_widget(self.expand, f"Expand or collapse: {section.heading}", "Expand or collapse")
        if section.is_collapsible is self.expand.isHidden():
            self.expand.setVisible(section.is_collapsible)
            self._show_content(not section.is_collapsible or self.expand.isChecked())
        self.details.setText(section.details)
        self.details.setVisible(bool(section.details))
        if section.value is not self._value:
            self._value = section.value
            self.content.set_text(section.text)

    def _show_content(self, is_shown: bool) -> None:
        self.content.setVisible(is_shown)
        self.expand.setArrowType(Qt.ArrowType.DownArrow if is_shown else Qt.ArrowType.RightArrow)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(from_utf16_units(self.content.text))
