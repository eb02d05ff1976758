"""A text that may be very long, to read and to copy: the beginning at once, the rest when it is asked for."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QTimer
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from app.inspector.editors.base import name_widget
from app.inspector.editors.texts import GrowingEdit
from app.inspector.units import from_units
from app.theme.tokens import UNIT

FIRST: Final = 20_000
"""How many characters are shown at first."""

_PIECE: Final = 20_000
_LONGEST_LINE: Final = 2_000
"""Where a line is broken for the eye: Qt lays out a whole line at once, however long it is."""


class LongText(QWidget):
    """A text to read.

    Args:
        name: Its accessible name.
        fills: Whether it takes all the room that there is, and not only what the text needs.

    Attributes:
        view: Shows it, or its beginning.
        more: Shows the rest; hidden where there is none.
    """

    def __init__(self, name: str, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self.text = ""
        self._place = 0
        self._wants_all = False
        self.view = GrowingEdit(least=1, most=14, fills=fills)
        self.view.setReadOnly(True)
        name_widget(self.view, name)
        self.more = QToolButton()
        self.more.setProperty("link", True)
        self.more.clicked.connect(self._show_all)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(UNIT)
        box.addWidget(self.view)
        box.addWidget(self.more)
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._add_piece)
        self._offer_more()

    @property
    def is_complete(self) -> bool:
        """Whether all of the text is shown."""
        return self._place >= len(self.text)

    def set_text(self, text: str) -> None:
        """Show another text."""
        if text == self.text:
            return
        grows = self._wants_all and bool(self.text) and text.startswith(self.text)
        self.text = text
        if grows:
            self._timer.start()
            return
        self._timer.stop()
        self._wants_all = False
        self._place = min(len(text), FIRST)
        self.view.set_text(shown(text[:FIRST]))
        self._offer_more()

    def _offer_more(self) -> None:
        self.more.setVisible(not self.is_complete and not self._wants_all)
        words = f"Show all {len(self.text):,} characters"
        self.more.setText(words)
        name_widget(self.more, words)

    def _show_all(self) -> None:
        self._wants_all = True
        self._offer_more()
        self.view.setFocus()
        self._timer.start()

    def _add_piece(self) -> None:
        piece = self.text[self._place : self._place + _PIECE]
        self._place += len(piece)
        cursor = QTextCursor(self.view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(shown(piece))
        if self.is_complete:
            self._timer.stop()


def shown(text: str) -> str:
    """A text as it can be shown: no half characters, and no line so long that laying it out would take a while."""
    lines = from_units(text).split("\n")
    if max(map(len, lines)) <= _LONGEST_LINE:
        return "\n".join(lines)
    pieces: list[str] = []
    for line in lines:
        pieces.extend(line[start : start + _LONGEST_LINE] for start in range(0, max(len(line), 1), _LONGEST_LINE))
    return "\n".join(pieces)
