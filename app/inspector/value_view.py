"""View of a value: as plain text, or formatted where that improves it; and a window for it with a search."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut, QTextCursor, QTextDocument
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QTextBrowser, QToolButton, QWidget

from app.inspector.editor import describe_widget
from app.inspector.json_tree import JsonTree
from app.inspector.markdown_view import MarkdownView, has_markdown
from app.inspector.result_text import json_container, value_text
from app.inspector.text_widgets import LongTextView, from_utf16_units, mark_matches, to_utf16_units
from app.theme.style import ThemedIcon, reading_mode, style
from app.theme.widgets import STRETCH, PlainLabel, hbox, icon_button, resize_on_screen, search_field, vbox
from engine.formatting import format_count
from engine.values import Value

_NOTHING: Final[Any] = object()
_SIZE: Final = QSize(860, 640)


class ValueView(QWidget):
    """The view.

    Args:
        name: Accessible name.
        fills: Whether it fills the available height.

    Attributes:
        plain: The value as plain text, hidden while it is formatted.
        can_format: Whether the value can be shown formatted.

    Signals:
        changed: It is shown in another way.
    """

    changed = Signal()

    def __init__(self, name: str, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self._name, self._fills = name, fills
        self.value: Value = _NOTHING
        self.can_format = False
        self._container: Value = None
        self.plain = LongTextView(name, fills=fills)
        self._box = vbox(self.plain, spacing=0, parent=self)
        reading_mode().changed.connect(self._show)

    @cached_property
    def markdown(self) -> MarkdownView:
        """The view of a text with Markdown."""
        return self._added(MarkdownView(self._name, self, fills=self._fills))

    @cached_property
    def tree(self) -> JsonTree:
        """The view of an object or a list."""
        return self._added(JsonTree(self._name, self, fills=self._fills))

    @property
    def shown(self) -> LongTextView | MarkdownView | JsonTree:
        """The visible one of these views."""
        if not self.can_format or not reading_mode().is_formatted:
            return self.plain
        return self.markdown if self._container is None else self.tree

    def set_name(self, name: str) -> None:
        """Change the accessible name."""
        self._name = name
        for view in (self.plain.view, *self._formatted):
            view.setAccessibleName(name)

    def show_value(self, value: Value, *, is_exact: bool = False) -> None:
        """Show a value; does nothing if it is the same object.

        Args:
            value: The value.
            is_exact: Always show it as plain text.
        """
        if value is self.value:
            return
        self.value = value
        text = value_text(value)
        self._container = None if is_exact else json_container(value)
        self.can_format = self._container is not None or (not is_exact and has_markdown(text))
        self.plain.set_text(text)
        self._show()

    @property
    def _formatted(self) -> list[QWidget]:
        """The formatted views that were created."""
        return [vars(self)[name] for name in ("markdown", "tree") if name in vars(self)]

    def _added(self, view: Any) -> Any:
        self._box.addWidget(view)
        return view

    def _show(self) -> None:
        shown = self.shown
        if isinstance(shown, MarkdownView):
            shown.show_text(value_text(self.value))
        elif isinstance(shown, JsonTree):
            shown.show_value(self._container)
        for view in (self.plain, *self._formatted):
            view.setVisible(view is shown)
        self.changed.emit()


class FormatButton(QToolButton):
    """Switches all views between formatted and plain text; hidden where a view has only one of them."""

    def __init__(self, view: ValueView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self._icon = ThemedIcon(self, "mdi6.text", "dim")
        self.clicked.connect(lambda: reading_mode().choose(is_formatted=not reading_mode().is_formatted))
        view.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Offer the other way to show the value."""
        is_formatted = reading_mode().is_formatted
        self.setVisible(self._view.can_format)
        self._icon.show("mdi6.text" if is_formatted else "mdi6.format-text")
        title = "Show as plain text" if is_formatted else "Show formatted"
        describe_widget(self, title, title)


class ValueViewer(QDialog):
    """A window with one value and a search in it.

    Args:
        title: What the value is.
        value: The value.
        is_exact: Whether it is always shown as plain text.

    Attributes:
        view: The value.
        search: What to search for.
        count: Which of the hits is shown, and how many there are.
    """

    def __init__(self, title: str, value: Value, parent: QWidget | None = None, *, is_exact: bool = False) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self.setWindowTitle(title)
        self.view = ValueView(title, self, fills=True)
        self.view.show_value(value, is_exact=is_exact)
        self.search = search_field("Find", "Find in this text", self)
        self.count = PlainLabel("", self, look="dim small")
        previous, following = "Previous match", "Next match"
        self.previous = icon_button(
            "mdi6.chevron-up", previous, lambda: self.step(-1), self, tip=f"{previous} (Shift+F3)"
        )
        self.next = icon_button("mdi6.chevron-down", following, lambda: self.step(1), self, tip=f"{following} (F3)")
        self.copy = icon_button("mdi6.content-copy", "Copy all", self._copy, self)
        self._hits: list[Any] = []
        self._at = -1
        self._arrange()
        self.search.textChanged.connect(self._find)
        self.view.changed.connect(self._find)
        self.view.plain.completed.connect(self._find)
        style().changed.connect(self._restyle)
        self._restyle()
        self.view.plain.show_all()
        self._find()

    @property
    def hits(self) -> int:
        """Number of hits."""
        return len(self._hits)

    def step(self, distance: int) -> None:
        """Go to the next or previous hit, wrapping around."""
        if self._hits:
            self._at = (self._at + distance) % len(self._hits)
            self._show_hit()

    def _arrange(self) -> None:
        format_button = FormatButton(self.view, self)
        row = hbox(self.search, self.previous, self.next, self.count, STRETCH, format_button, self.copy, spacing=2)
        vbox(row, (self.view, 1), spacing=2, margins=(3, 3, 3, 3), parent=self)
        for keys, act in (
            (QKeySequence.StandardKey.Find, self._focus_search),
            (QKeySequence("F3"), lambda: self.step(1)),
            (QKeySequence("Shift+F3"), lambda: self.step(-1)),
        ):
            QShortcut(keys, self, act)
        self.search.returnPressed.connect(lambda: self.step(1))
        resize_on_screen(self, _SIZE)
        self.view.setFocus()

    def _focus_search(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(from_utf16_units(value_text(self.view.value)))

    def _find(self) -> None:
        term, shown = self.search.text(), self.view.shown
        if not term:
            self._hits = []
        elif isinstance(shown, JsonTree):
            self._hits = list(shown.occurrences(term))
        else:
            self._hits = matches(_edit(shown).document(), term)
        self._at = 0 if self._hits else -1
        self._show_hit()

    def _show_hit(self) -> None:
        has_hits = bool(self._hits)
        for button in (self.previous, self.next):
            button.setEnabled(has_hits)
        number = f"{format_count(self._at + 1)} of {format_count(len(self._hits))}" if has_hits else "No matches"
        self.count.setText(number if self.search.text() else "")
        shown = self.view.shown
        if isinstance(shown, JsonTree):
            if has_hits:
                shown.go_to(self._hits[self._at])
        else:
            self._mark_hits()
            if has_hits:
                cursor = QTextCursor(_edit(shown).document())
                cursor.setPosition(self._hits[self._at][0])
                _edit(shown).setTextCursor(cursor)
                _edit(shown).ensureCursorVisible()

    def _restyle(self) -> None:
        self.search.setMinimumWidth(round(220 * style().scale))
        self._mark_hits()

    def _mark_hits(self) -> None:
        """Highlight the hits of a text in the colors of the theme."""
        shown = self.view.shown
        if not isinstance(shown, JsonTree):
            mark_matches(_edit(shown), self._hits, self._at)


def _edit(view: LongTextView | MarkdownView) -> QPlainTextEdit | QTextBrowser:
    return view.view if isinstance(view, LongTextView) else view


def matches(document: QTextDocument, term: str) -> list[tuple[int, int]]:
    """Return start and end of each occurrence of a text in a document, ignoring case."""
    units = to_utf16_units(document.toRawText())
    found = re.finditer(re.escape(to_utf16_units(term)), units, re.IGNORECASE)
    return [match.span() for match in found]
