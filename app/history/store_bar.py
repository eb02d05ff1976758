"""The bar over a run of the history: what it is, how it differs from today's document, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.theme.style import set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import ElidedLabel


class PastBar(QFrame):
    """The bar."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = ElidedLabel("")
        self._more = ElidedLabel("", look="dim small")
        self._more.hide()
        self._origin = ""
        self._differences = ""
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(2 * UNIT)
        self._by_title: dict[str, QPushButton] = {}
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self._title)
        words.addWidget(self._more)
        row = QHBoxLayout(self)
        row.setContentsMargins(3 * UNIT, UNIT, 2 * UNIT, UNIT)
        row.setSpacing(2 * UNIT)
        row.addLayout(words, 1)
        row.addLayout(self._buttons)
        set_style_properties(self, hint="info")

    @property
    def text(self) -> str:
        """What run it says that this is."""
        return self._title.full_text

    @property
    def origin(self) -> str:
        """What it says of where the run comes from; empty where it is no fork."""
        return self._origin

    @property
    def differences(self) -> str:
        """What it says of the differences; empty where there are none."""
        return self._differences

    def say(self, text: str, origin: str = "") -> None:
        """Say what run this is, and below it where it comes from."""
        self._title.set_full_text(text)
        self._origin = origin
        self._show_more()

    def show_differences(self, lines: list[str]) -> None:
        """Say how the document has changed since; nothing where it has not, as far as is known."""
        count = len(lines)
        words = f"{count} difference{'' if count == 1 else 's'} from today's document: {' '.join(lines)}"
        self._differences = words if lines else ""
        self._show_more()

    def add_button(self, title: str, pressed: Callable[[], object]) -> QPushButton:
        """Add a button for something that can be done."""
        button = QPushButton(title)
        button.setAccessibleName(title.rstrip("…"))
        button.clicked.connect(lambda _checked=False: pressed())
        self._buttons.addWidget(button)
        self._by_title[title] = button
        return button

    def offer(self, title: str, *, can: bool) -> None:
        """Show a button, or not."""
        self._by_title[title].setVisible(can)

    def _show_more(self) -> None:
        more = " · ".join(part for part in (self._origin, self._differences) if part)
        self._more.set_full_text(more)
        self._more.setVisible(bool(more))
        self.setAccessibleName(" · ".join(part for part in (self.text, more) if part))
